# Generated from the registry by `make docs`. Do not edit.
"""Fields of the operations of `memory`."""

from datetime import datetime
from typing import Literal, NotRequired, Required

from loom.canonical import Json
from loom.edges.client.core import Identity
from loom.planes.memory.messages import SaidMessage


class MemoryDeleteFields(Identity):
    """What `memory.delete` takes."""

    memory_key: Required[str]
    """The memory's key."""
    source_trace: NotRequired[str]
    """Why it is deleted, in your own words."""
    if_match_sha256: NotRequired[str]
    """Delete only while the live value has this content_sha256, else 409; empty for no check."""


class MemoryDeleteVersionFields(Identity):
    """What `memory.delete_version` takes."""

    memory_key: Required[str]
    """The memory's key."""
    version_text: Required[str]
    """The version to erase, as the version_text of an answer."""


class MemoryGetFields(Identity):
    """What `memory.get` takes."""

    memory_key: Required[str]
    """The memory's key."""
    as_of: NotRequired[datetime | None]
    """Read the memory as it was at this moment; null for now."""
    version_text: NotRequired[str]
    """Read this version of it; empty for the live one."""
    if_version: NotRequired[str]
    """The version_text you have: while that is still the one, unchanged is true and no value is..."""
    read_scope: NotRequired[Literal["namespace", "own_user", "own_session"]]
    """How far the read reaches across users: every user, this user_id, or this session; rows of no..."""


class MemoryHistoryFields(Identity):
    """What `memory.history` takes."""

    memory_key: NotRequired[str]
    """The memory's key; or send memory_id."""
    memory_id: NotRequired[str]
    """The row's id; it says which row where many have a key."""
    limit: NotRequired[int]
    """At most this many versions, the newest first."""
    before_version_text: NotRequired[str]
    """Only versions older than this; empty for all."""
    read_scope: NotRequired[Literal["namespace", "own_user", "own_session"]]
    """How far the read reaches across users: every user, this user_id, or this session; rows of no..."""


class MemoryListFields(Identity):
    """What `memory.list` takes."""

    prefix: NotRequired[str]
    """Only keys that begin with this text."""
    memory_types: NotRequired[list[str] | None]
    """Only these types; null for all but profile sections, which are listed when named."""
    tags: NotRequired[list[str] | None]
    """Only memories with these tags; see tags_match."""
    tags_match: NotRequired[Literal["every", "any"]]
    """Whether every tag is needed, or any."""
    contains: NotRequired[str]
    """Only memories whose key or value holds this text, upper and lower case alike. No wildcards."""
    agents: NotRequired[list[str] | None]
    """Only rows these agents wrote; null for everybody's."""
    statuses: NotRequired[list[Literal["live", "expired", "tombstoned", "redacted"]] | None]
    """Which rows: live, expired, tombstoned, redacted; null for live ones."""
    as_of: NotRequired[datetime | None]
    """List what lived at this moment; null for now."""
    order: NotRequired[Literal["memory_key", "newest"]]
    """By memory_key, or the newest version first."""
    bodies: NotRequired[Literal["excerpt", "full", "none"]]
    """What each row carries: the first 200 characters, the whole value, or neither."""
    limit: NotRequired[int]
    """At most this many rows."""
    cursor: NotRequired[str]
    """next_cursor of the answer before, with the same filters; empty for the first page."""
    counted: NotRequired[bool]
    """Whether to count all that pass; without, total is a floor, and the answer is quick."""
    read_scope: NotRequired[Literal["namespace", "own_user", "own_session"]]
    """How far the read reaches across users: every user, this user_id, or this session; rows of no..."""


class MemoryLockFields(Identity):
    """What `memory.lock` takes."""

    memory_key: Required[str]
    """The memory's key."""
    mode: NotRequired[Literal["", "no_delete", "read_only"]]
    """read_only: no change at all; no_delete: changes, but no deletion; empty: unlock (admin)."""
    reason: NotRequired[str]
    """Why it is locked, shown to those who read it."""


class MemoryNextPageFields(Identity):
    """What `memory.next_page` takes."""

    page: Required[str]
    """next_page of the answer before, as it is."""
    read_scope: NotRequired[Literal["namespace", "own_user", "own_session"]]
    """How far the read reaches across users: every user, this user_id, or this session; rows of no..."""


class MemoryPinFields(Identity):
    """What `memory.pin` takes."""

    memory_key: Required[str]
    """The memory's key."""
    pinned: NotRequired[bool]
    """true to pin, false to unpin."""


class MemoryRedactFields(Identity):
    """What `memory.redact` takes."""

    memory_key: Required[str]
    """The memory's key."""


class MemoryRestoreFields(Identity):
    """What `memory.restore` takes."""

    memory_key: Required[str]
    """The memory's key."""


class MemorySearchFields(Identity):
    """What `memory.search` takes."""

    query: Required[str]
    """What to look for, in plain words. Nothing in it is syntax."""
    top_k: NotRequired[int]
    """At most this many hits, 1 to 100."""
    tags: NotRequired[list[str] | None]
    """Only memories that have all of these tags."""
    memory_types: NotRequired[list[str] | None]
    """Only memories of these types; null for any."""
    agents: NotRequired[list[str] | None]
    """Only memories these agents wrote; null for everybody's."""
    namespace_scope: NotRequired[Literal["this", "all_mine"]]
    """this: the named namespace alone. all_mine: the caller's other memory namespaces as well."""
    recipe: NotRequired[Literal["", "fast", "balanced", "quality", "verbatim", "code", "temporal", "graph"]]
    """How to rank: fast, balanced (the default), quality, verbatim (exact words and phrases..."""
    bodies: NotRequired[Literal["full", "excerpt", "none", "unit"]]
    """What each hit carries: excerpt, the first 200 characters (a decision or constraint whole);..."""
    explain: NotRequired[bool]
    """Show where each hit's rank comes from."""
    read_scope: NotRequired[Literal["namespace", "own_user", "own_session"]]
    """How far the read reaches across users: every user, this user_id, or this session; rows of no..."""


class MemorySetFields(Identity):
    """What `memory.set` takes."""

    memory_key: Required[str]
    """The readable name of the claim, for instance user/diet."""
    value: Required[Json]
    """The claim: a text or any other JSON, at most 262,144 characters."""
    memory_type: NotRequired[str]
    """semantic, episodic, procedural, decision, constraint, profile, or a word of your own."""
    tags: NotRequired[list[str]]
    """Words to filter by; kept sorted, each once."""
    confidence: NotRequired[float]
    """How sure the claim is, from 0 to 1."""
    source_trace: NotRequired[str]
    """Where the claim comes from, in your own words."""
    sensitivity: NotRequired[Literal["normal", "high"]]
    """high keeps the memory out of every search and prompt; get and list show it."""
    valid_at: NotRequired[datetime | None]
    """From when the claim holds; null if not known."""
    valid_to: NotRequired[datetime | None]
    """Until when the claim holds; null for no end."""
    ttl_seconds: NotRequired[int]
    """Forget the memory after this many seconds; 0 to keep it."""
    char_limit: NotRequired[int | None]
    """For type profile alone: the section's cap in characters of JSON; null for 8192."""
    if_match_sha256: NotRequired[str]
    """Write only while the live value has this content_sha256, else 409; empty for no check."""
    dry_run: NotRequired[bool]
    """Check everything, say what would happen, write nothing."""


class MemorySetFromMessagesFields(Identity):
    """What `memory.set_from_messages` takes."""

    messages: Required[list[SaidMessage]]
    """1 to 200 messages, in the order they were said."""
    session: NotRequired[str]
    """The conversation's name, for the trace of each claim; empty for session_id."""
    tags: NotRequired[list[str]]
    """Tags that every memory made of the messages gets."""
    sensitivity: NotRequired[Literal["normal", "high"]]
    """high keeps what is made of the messages out of every search and prompt."""
    deferred: NotRequired[bool]
    """Answer at once and read the messages later; they are kept until then, and no longer."""


class MemorySetManyFields(Identity):
    """What `memory.set_many` takes."""

    items: Required[list[Json]]
    """The memories, each with the fields of memory.set."""


class MemoryTouchFields(Identity):
    """What `memory.touch` takes."""

    memory_key: Required[str]
    """The memory's key."""
    ttl_seconds: NotRequired[int | None]
    """Forget the memory after this many seconds from now; 0 or null: never."""


class MemoryUpdateFields(Identity):
    """What `memory.update` takes."""

    memory_key: Required[str]
    """The memory's key."""
    value: NotRequired[Json]
    """The new value; left out or null, the old one stays."""
    memory_type: NotRequired[str | None]
    """The new type; null keeps it."""
    tags: NotRequired[list[str] | None]
    """The new tags, all of them; null keeps them."""
    confidence: NotRequired[float | None]
    """How sure the claim is now; null keeps it."""
    source_trace: NotRequired[str | None]
    """Where the change comes from; null keeps it."""
    sensitivity: NotRequired[Literal["normal", "high"] | None]
    """normal or high; null keeps it."""
    valid_at: NotRequired[datetime | None]
    """From when the claim holds; null keeps it."""
    valid_to: NotRequired[datetime | None]
    """Until when the claim holds; null keeps it."""
    ttl_seconds: NotRequired[int | None]
    """Forget the memory after this many seconds; 0 never, null keeps it."""
    char_limit: NotRequired[int | None]
    """A section's new cap; null keeps it."""
    if_match_sha256: NotRequired[str]
    """Change only while the live value has this content_sha256, else 409; empty for no check."""
