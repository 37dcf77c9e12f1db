"""What a row of the ledger is and may become. Pure: no database, no clock."""

from dataclasses import dataclass

from loom.access.caller import ReadScope, Role
from loom.canonical import Json, Measured, measured
from loom.errors import Denied, KindConflict, Locked, PinnedConflict, Rejected, ShaMismatch, TooLong

PROFILE = "profile"
"""The memory type of a profile section."""

DERIVED = "structured_profile"
"""The memory type of a row that is built from its user's other rows."""

DERIVED_KEY = "loom/structured-profile"
"""Its key; nothing else is written under it."""

LIVE, TOMBSTONED, REDACTED, SUPERSEDED = "live", "tombstoned", "redacted", "superseded"
NORMAL, HIGH = "normal", "high"
UNLOCKED, NO_DELETE, READ_ONLY = "", "no_delete", "read_only"
LOCK_STRENGTH = {UNLOCKED: 0, NO_DELETE: 1, READ_ONLY: 2}

DELETED_VERSION_TRACE = "memory.delete_version:"
"""What the trace of a version begins with that `memory.delete_version` took away."""

CHAR_LIMIT_DEFAULT = 8192


@dataclass(frozen=True, slots=True)
class Place:
    """Whose row it is, besides the org. `-` stands for none."""

    namespace: str
    agent: str
    user_id: str


@dataclass(frozen=True, slots=True)
class Reader:
    """Who reads, and how far: the scope across users."""

    scope: ReadScope
    user_id: str
    session_id: str


@dataclass(frozen=True, slots=True)
class Attributes:
    """What a version says about its value. Times are microseconds UTC.

    Attributes:
        memory_type: semantic, episodic, procedural, decision, constraint, profile or another word.
        tags: sorted, without repeats.
        confidence: 0 to 1.
        source_trace: where the value came from.
        sensitivity: `normal` or `high`; high is never rendered nor searched.
        valid_at: from when the claim holds.
        valid_to: until when it holds.
        expires_at: when it is to be forgotten.
        char_limit: cap on the encoded value's length, in characters; None for no cap.
    """

    memory_type: str = "semantic"
    tags: tuple[str, ...] = ()
    confidence: float = 1.0
    source_trace: str = ""
    sensitivity: str = NORMAL
    valid_at: int | None = None
    valid_to: int | None = None
    expires_at: int | None = None
    char_limit: int | None = None


@dataclass(frozen=True, slots=True)
class Draft:
    """A value about to be written, measured once."""

    value: Json
    measured: Measured
    attributes: Attributes
    session_id: str = "-"
    run_id: str = "-"


@dataclass(frozen=True, slots=True)
class Version:
    """One stored version. `value_text` is canonical JSON, None when there is no value (any more)."""

    version: int
    status: str
    session_id: str
    run_id: str
    value_text: str | None
    content_sha256: str
    value_length: int
    attributes: Attributes
    created_at: int


@dataclass(frozen=True, slots=True)
class Item:
    """A key and its latest version, whatever its status."""

    item_id: int
    place: Place
    memory_key: str
    head: Version
    status: str
    expires_at: int | None
    ended_at: int | None
    pinned: bool
    lock_mode: str
    lock_reason: str

    @property
    def memory_id(self) -> str:
        """The row's id as callers see it."""
        return memory_id_of(self.item_id)

    def is_live(self, now_us: int) -> bool:
        """Whether reads may serve it now."""
        return self.status == LIVE and (self.expires_at is None or self.expires_at > now_us)

    @property
    def is_section(self) -> bool:
        """Whether it is a profile section."""
        return self.head.attributes.memory_type == PROFILE

    @property
    def is_derived(self) -> bool:
        """Whether it is built from other rows, and not written by anybody."""
        return self.head.attributes.memory_type == DERIVED


def memory_id_of(item_id: int) -> str:
    """A row's id as callers see it: `mem_` and 16 hex digits."""
    return f"mem_{item_id:016x}"


def item_id_of(memory_id: str) -> int | None:
    """The number behind a memory id, or None when it is not one."""
    digits = memory_id.removeprefix("mem_")
    if digits == memory_id or len(digits) != 16 or not set(digits) <= set("0123456789abcdef"):  # noqa: PLR2004  # 16 hex digits
        return None
    number = int(digits, 16)
    return number if number < 1 << 63 else None


def draft(value: Json, attributes: Attributes, session_id: str = "-", run_id: str = "-", field: str = "value") -> Draft:
    """A value ready to be written.

    The one rule that every write path passes: the cap on the encoded length,
    and that a profile section is a text. `field` is the request's field that a
    refusal names.

    Raises:
        TooLong: the encoded value is over `char_limit`.
        Rejected: a profile section that is not a text, or a trace that only `memory.delete_version` may leave.
    """
    sized = measured(value)
    if attributes.memory_type == PROFILE and not isinstance(value, str):
        raise Rejected(f"{field}: a profile section is a text", field=field)
    check_trace(attributes.source_trace)
    limit = attributes.char_limit
    if limit is not None and sized.length > limit:
        raise TooLong(
            f"{field}: {sized.length} characters when encoded, the cap is {limit}; shorten it or raise char_limit",
            field=field,
            value_length=sized.length,
            char_limit=limit,
        )
    return Draft(value, sized, attributes, session_id, run_id)


def check_trace(source_trace: str) -> None:
    """Rejected when a caller's trace is one that only `memory.delete_version` may leave."""
    if source_trace.startswith(DELETED_VERSION_TRACE):
        raise Rejected(f"source_trace: may not begin with {DELETED_VERSION_TRACE}", field="source_trace")


def check_match(current: Item | None, if_match_sha256: str, now_us: int) -> None:
    """ShaMismatch unless the live value has this hash; an empty hash asks for no check."""
    if not if_match_sha256:
        return
    live = current is not None and current.is_live(now_us)
    now = current.head.content_sha256 if live and current is not None else ""
    if now != if_match_sha256.lower():
        what = "the live value has another hash (current_sha256); read it again" if now else "there is no live value"
        raise ShaMismatch(f"if_match_sha256: {what}", field="if_match_sha256", current_sha256=now)


def check_writable(item: Item | None) -> None:
    """Locked when the row is read-only."""
    if item is not None and item.lock_mode == READ_ONLY:
        raise Locked("the row is locked read_only; an admin can unlock it", lock=READ_ONLY)


def check_deletable(item: Item) -> None:
    """Locked or PinnedConflict when the row may not go away."""
    if item.lock_mode:
        raise Locked(f"the row is locked {item.lock_mode}; an admin can unlock it", lock=item.lock_mode)
    if item.pinned:
        raise PinnedConflict("the memory is pinned; unpin it first, with memory.pin and pinned=false")


def check_kind(item: Item | None, now_us: int, *, section: bool) -> None:
    """KindConflict when a live row of the other kind has the key."""
    if item is None or not item.is_live(now_us) or item.is_section == section:
        return
    if section:
        raise KindConflict("label: a memory that is not a profile section has this key; choose another label")
    raise KindConflict("memory_key: a profile section has this key; write it with profile.set or memory.update")


def check_own_words(memory_key: str, memory_type: str, field: str = "memory_key") -> None:
    """Rejected when a caller would write a row that is built from others."""
    if memory_key == DERIVED_KEY:
        raise Rejected(
            f"{field}: {DERIVED_KEY} is the structured profile's, which is built; choose another", field=field
        )
    if memory_type == DERIVED:
        raise Rejected(f"memory_type: {DERIVED} is built, not written; choose another", field="memory_type")


def check_reach(item: Item | None, reader: Reader) -> None:
    """Denied when the row belongs to another user's or session's part of the ledger."""
    if item is None or sees(reader, item):
        return
    raise Denied("the row belongs to another user or session than this token reaches")


def visible(user_id: str, session_id: str, reader: Reader) -> bool:
    """Whether a row of `user_id` and `session_id` is inside the reader's scope."""
    if reader.scope is ReadScope.NAMESPACE or user_id == "-":
        return True
    if user_id != reader.user_id:
        return False
    return reader.scope is ReadScope.OWN_USER or session_id == reader.session_id


def sees(reader: Reader, item: Item, version: Version | None = None) -> bool:
    """Whether a version of a row of the ledger is inside the reader's scope; its latest one where none is given.

    A derived row tells of every session of its user, whichever session a reader is in.
    """
    user_id = item.place.user_id
    if item.is_derived and reader.scope is ReadScope.OWN_SESSION and user_id != "-":
        return False
    return visible(user_id, (item.head if version is None else version).session_id, reader)


def loosens(item: Item, lock_mode: str) -> bool:
    """Whether `lock_mode` takes protection away."""
    return LOCK_STRENGTH[lock_mode] < LOCK_STRENGTH[item.lock_mode]


def check_lock_change(item: Item, lock_mode: str, role: Role) -> None:
    """Locked unless the change tightens the lock, or an admin makes it."""
    if loosens(item, lock_mode) and role < Role.ADMIN:
        raise Locked("only an admin can loosen a lock", lock=item.lock_mode)
