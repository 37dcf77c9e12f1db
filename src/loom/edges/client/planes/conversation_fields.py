# Generated from the registry by `make docs`. Do not edit.
"""Fields of the operations of `conversation`."""

from datetime import datetime
from typing import Literal, NotRequired, Required

from loom.edges.client.core import Identity
from loom.planes.conversation.ops_append import MessageSent


class ConversationAppendFields(Identity):
    """What `conversation.append` takes."""

    messages: Required[list[MessageSent]]
    """1 to 500 messages, in the order they were said."""
    session: NotRequired[str]
    """The conversation's name; empty for the session the call is made in (session_id)."""
    title: NotRequired[str]
    """What to call the conversation from now on; empty leaves it, or takes the user's first words."""


class ConversationDeleteFields(Identity):
    """What `conversation.delete` takes."""

    turn_id: NotRequired[str]
    """Delete this turn; empty when another field says what."""
    session: NotRequired[str]
    """The conversation that message_ids or whole_session are about; never taken from the call."""
    message_ids: NotRequired[list[str]]
    """Delete the turns of the session with these message ids."""
    whole_session: NotRequired[bool]
    """Delete the session named in session, with every turn."""


class ConversationGetFields(Identity):
    """What `conversation.get` takes."""

    session: NotRequired[str]
    """The conversation's name; empty for the session the call is made in, or the turn's."""
    turn_id: NotRequired[str]
    """Show the turns around this one; empty to read from start."""
    start: NotRequired[int]
    """The seq of the first turn; next_start of an answer reads on."""
    limit: NotRequired[int]
    """At most this many turns, 1 to 200; with turn_id half before it."""
    bodies: NotRequired[Literal["text", "full", "none"]]
    """text: what was said; full: the content with tool calls and results as well; none: neither."""
    read_scope: NotRequired[Literal["namespace", "own_user", "own_session"]]
    """How far the read reaches: every user's conversations, this user_id's, or this session's;..."""


class ConversationListFields(Identity):
    """What `conversation.list` takes."""

    limit: NotRequired[int]
    """At most this many, 1 to 100."""
    cursor: NotRequired[str]
    """next_cursor of the answer before; empty to begin."""
    since: NotRequired[datetime | None]
    """Only conversations with a turn at or after this time."""
    until: NotRequired[datetime | None]
    """Only conversations that began before this time."""
    read_scope: NotRequired[Literal["namespace", "own_user", "own_session"]]
    """How far the read reaches: every user's conversations, this user_id's, or this session's;..."""


class ConversationSearchFields(Identity):
    """What `conversation.search` takes."""

    query: Required[str]
    """What to look for, in plain words. Nothing in it is syntax."""
    top_k: NotRequired[int]
    """At most this many hits, 1 to 100."""
    session: NotRequired[str]
    """Only turns of the conversation of this name; empty for every conversation."""
    roles: NotRequired[list[str]]
    """Only turns of these roles; empty for any."""
    since: NotRequired[datetime | None]
    """Only turns said at or after this time."""
    until: NotRequired[datetime | None]
    """Only turns said before this time."""
    neighbours: NotRequired[int]
    """Turns to show before and after each hit, 0 to 5."""
    namespace_scope: NotRequired[Literal["this", "all_mine"]]
    """this: the named namespace alone. all_mine: the caller's other memory namespaces as well."""
    bodies: NotRequired[Literal["excerpt", "full", "none"]]
    """excerpt: the part of a turn that fits best; full: the whole turn; none: no text."""
    explain: NotRequired[bool]
    """Show where each hit's rank comes from."""
    page: NotRequired[str]
    """next_page of an earlier answer, sent with the same question; empty to begin."""
    read_scope: NotRequired[Literal["namespace", "own_user", "own_session"]]
    """How far the read reaches: every user's conversations, this user_id's, or this session's;..."""
