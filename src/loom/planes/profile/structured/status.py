"""Whether a user's structured profile is current, what of it may be shown, and whether it is to be built.

Pure, but for `look`, which reads what is asked of it in four short statements, however many facts there are.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal, cast

from loom.canonical import Json
from loom.ledger import telling
from loom.ledger.rules import DELETED_VERSION_TRACE, HIGH, READ_ONLY, REDACTED, Item
from loom.planes.profile.structured import schema as schemas
from loom.planes.profile.structured import store
from loom.planes.profile.structured.schema import Schema
from loom.planes.profile.structured.store import Build, StoredSchema, User
from loom.storage.interface import Transaction

Status = Literal["ready", "stale", "pending", "no_schema"]

FAILURES_MAX: Final = 5
"""Builds that fail in a row before no more are tried on their own, until something changes."""

RETRY_AFTER_US: Final = 600 * 1_000_000
"""How long after the last failure a reader's question has it tried again all the same."""


class Work(Enum):
    """What there is to do for a user."""

    NOTHING = "nothing"
    BUILD = "build"
    END = "end"


@dataclass(frozen=True, slots=True)
class InForce:
    """A namespace's schema.

    Attributes:
        stored: as it is kept; None when there is none.
        schema: the same, opened; None when this version of Loom cannot use it.
    """

    stored: StoredSchema | None
    schema: Schema | None


@dataclass(frozen=True, slots=True)
class Look:
    """What is known of a user's profile at one moment.

    Attributes:
        stored: the namespace's schema; None when it has none.
        schema: the same, opened; None when this version of Loom cannot use it.
        user: what is known of the user.
        item: the row that holds the profile, whatever became of it.
        build: the build that the row's latest version is of.
        last: the row's latest build, where the row lives no more.
        has_facts: whether the user has facts.
        turned: whether a fact expired since the build.
        now_us: the moment.
    """

    stored: StoredSchema | None
    schema: Schema | None
    user: User
    item: Item | None
    build: Build | None
    last: Build | None
    has_facts: bool
    turned: bool
    now_us: int

    @property
    def live(self) -> Item | None:
        """The row, while it can be shown."""
        item = self.item
        if item is None or not item.is_live(self.now_us) or item.head.attributes.sensitivity == HIGH:
            return None
        return item

    @property
    def shows(self) -> Item | None:
        """The row, while it is what a reader is shown: there are facts behind it, and a schema that shapes it."""
        return self.live if self.schema is not None and self.has_facts else None

    @property
    def may_build(self) -> bool:
        """Whether a builder may write the row: it is neither locked against it nor sensitive."""
        item = self.item
        if item is None or not item.is_live(self.now_us):
            return item is None or item.lock_mode != READ_ONLY
        return item.lock_mode != READ_ONLY and item.head.attributes.sensitivity != HIGH

    @property
    def moved(self) -> bool:
        """Whether something changed since the build, or nothing is known of that."""
        build = self.build
        if build is None or self.stored is None:
            return True
        turned = self.turned or (build.turns_at is not None and build.turns_at <= self.now_us)
        return turned or self._differs(build)

    @property
    def status(self) -> Status:
        """The status, as profile.structured says it."""
        if self.schema is None:
            return "no_schema"
        if not self.has_facts:
            return "ready"
        if self.live is None:
            return "pending"
        return "stale" if self.moved or (self.build is not None and self.build.unserved) else "ready"

    @property
    def work(self) -> Work:
        """What a builder would do now.

        A row that was made sensitive or locked is left alone. One whose text was erased is built again
        only when what it is built from has changed since, so that an erased text does not come back at once.
        """
        item = self.item
        if self.schema is None or not self.may_build:
            return Work.NOTHING
        if not self.has_facts:
            return Work.END if self.ends else Work.NOTHING
        if self.user.wanted:
            return Work.BUILD
        if item is not None and is_erased(item):
            return Work.BUILD if self._differs_since_erased(item) else Work.NOTHING
        return Work.BUILD if self.live is None or self.moved else Work.NOTHING

    @property
    def ends(self) -> bool:
        """Whether a row is left that no fact stands behind: it goes, or is emptied where it may not."""
        item = self.item
        if item is None or not item.is_live(self.now_us):
            return False
        return self.moved if item.pinned or item.lock_mode else True

    @property
    def asks(self) -> bool:
        """Whether a reader's question should enqueue a build: one is needed, none is on its way, none keeps failing."""
        if self.work is Work.NOTHING or self.user.waiting_since or self.user.building_until > self.now_us:
            return False
        return self.user.failures < FAILURES_MAX or self.user.failed_at + RETRY_AFTER_US <= self.now_us

    def _differs_since_erased(self, item: Item) -> bool:
        """Whether something changed since a row's text was taken away; of one from an import, since it came."""
        if self.last is not None:
            return self._differs(self.last)
        return self.user.changes > 0 or (self.stored is not None and self.stored.version > item.head.version)

    def _differs(self, build: Build) -> bool:
        version = self.stored.version if self.stored else 0
        return build.schema_version != version or build.changes != self.user.changes


def is_erased(item: Item) -> bool:
    """Whether the row's text was taken away for good, by a redaction or with its last version."""
    if item.status == REDACTED:
        return True
    gone = item.head.value_text is None
    return gone and item.head.attributes.source_trace.startswith(DELETED_VERSION_TRACE)


def in_force(tx: Transaction, namespace: str) -> InForce:
    """The schema that the namespace has now."""
    stored = store.latest_schema(tx, namespace)
    return InForce(stored, schemas.opened(stored.text) if stored else None)


def look(tx: Transaction, namespace: str, user_id: str, now_us: int) -> Look:
    """Read what is known of a user's profile."""
    return look_under(tx, in_force(tx, namespace), (namespace, user_id), now_us)


def look_under(tx: Transaction, shape: InForce, who: tuple[str, str], now_us: int) -> Look:
    """The same for one of many users (namespace and name), with the namespace's schema read once for all of them."""
    namespace, user_id = who
    stored, schema = shape.stored, shape.schema
    if schema is None:
        return Look(stored, None, User(), None, None, None, has_facts=False, turned=False, now_us=now_us)
    user = store.user(tx, namespace, user_id)
    item, build = store.held(tx, namespace, user_id)
    has_facts, turned = store.facts_now(tx, namespace, user_id, build.built_at if build else now_us, now_us)
    last = store.last_build(tx, item.item_id) if item is not None and is_erased(item) else None
    return Look(stored, schema, user, item, build, last, has_facts=has_facts, turned=turned, now_us=now_us)


def shown(tx: Transaction, found: Look) -> dict[str, Json]:
    """Every property of the schema, with its value where the profile may be shown and settles it.

    Of a profile that is out of date, what comes from a memory that is served no more is
    left out, and what the schema has another meaning for now.
    """
    if found.schema is None:
        return {}
    empty: dict[str, Json] = dict.fromkeys(found.schema.properties)
    item = found.shows
    if item is None:
        return empty
    value = cast("Mapping[str, Json]", json.loads(item.head.value_text or "{}"))
    told = {name: value.get(name) for name in found.schema.properties}
    build, stored = found.build, found.stored
    if found.status == "ready" or stored is None:
        return empty | told
    if build is None:
        return empty
    hidden = set(telling.lost(tx, item, [build.built_at], found.now_us).get(build.built_at, ()))
    if build.schema_version != stored.version:
        before = store.schema_version(tx, item.place.namespace, build.schema_version)
        known = schemas.unchanged(schemas.opened(before.text) if before else None, found.schema)
        hidden |= {name for name in told if name not in known}
    return {name: None if name in hidden else one for name, one in told.items()}
