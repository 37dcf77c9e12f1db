# Generated from the registry by `make docs`. Do not edit.
"""Fields of the operations of `search`."""

from typing import Literal, NotRequired, Required

from loom.edges.client.core import Identity


class SearchQueryFields(Identity):
    """What `search.query` takes."""

    query: Required[str]
    """What to look for, in plain words; every plane gets it."""
    top_k: NotRequired[int]
    """Most hits in a section, 1 to 100; the tracker gives 10 at most."""
    tags: NotRequired[list[str]]
    """Tags that memories and documents must have; the other planes know none."""
    namespace_scope: NotRequired[Literal["this", "all_mine"]]
    """this: the named namespace alone. all_mine: the caller's other memory namespaces as well."""
    recipe: NotRequired[Literal["", "fast", "balanced", "quality", "verbatim", "code", "temporal", "graph"]]
    """The way memories are ranked, as in memory.search; empty for the usual one."""
    bodies: NotRequired[Literal["full", "excerpt", "none", "unit"]]
    """How much of each memory to give: excerpt its first 200 characters (decisions and constraints..."""
    explain: NotRequired[bool]
    """Hold nothing back, and show where each memory's rank comes from."""
    page: NotRequired[str]
    """memory.next_page of an earlier answer, to go on from there; empty to begin."""
    read_scope: NotRequired[Literal["namespace", "own_user", "own_session"]]
    """Whose rows: every user's, or this user_id's or session's beside those of no user."""
