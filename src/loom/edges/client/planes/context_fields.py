# Generated from the registry by `make docs`. Do not edit.
"""Fields of the operations of `context`."""

from typing import Literal, NotRequired, Required

from loom.edges.client.core import Identity


class ContextActivateFields(Identity):
    """What `context.activate` takes."""

    tokens_max: NotRequired[int]
    """Most tokens of the fragment, about: four characters each."""
    read_scope: NotRequired[Literal["namespace", "own_user", "own_session"]]
    """Whose rows: every user's, or this user_id's or session's beside those of no user."""


class ContextPackFields(Identity):
    """What `context.pack` takes."""

    query: Required[str]
    """What the work is about, in plain words."""
    tokens_max: NotRequired[int]
    """Most tokens of the fragment, about: four characters each."""
    budgets: NotRequired[dict[Literal["tracker", "profile", "memory", "knowledge", "conversations"], int]]
    """Tokens for a section in place of its share; 0 leaves the section out."""
    tags: NotRequired[list[str]]
    """Tags that memories and documents must have."""
    namespace_scope: NotRequired[Literal["this", "all_mine"]]
    """this: the named namespace alone. all_mine: the caller's other memory namespaces as well."""
    read_scope: NotRequired[Literal["namespace", "own_user", "own_session"]]
    """Whose rows: every user's, or this user_id's or session's beside those of no user."""
