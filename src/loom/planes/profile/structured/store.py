"""Where structured profiles are kept: schemas, what is known of a user, builds and their sources."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from loom.ledger import store
from loom.ledger.rules import DERIVED_KEY, LIVE, NORMAL, Item
from loom.planes.profile.structured import queries
from loom.storage.interface import Row, Transaction


@dataclass(frozen=True, slots=True)
class StoredSchema:
    """One version of a namespace's schema.

    Attributes:
        version: its number.
        text: the schema as JSON; empty where it was deleted.
        sha256: the hash of its canonical form; empty where it was deleted.
        updated_by: the principal who set or deleted it.
        updated_at: when, in microseconds UTC.
    """

    version: int
    text: str
    sha256: str
    updated_by: str
    updated_at: int


@dataclass(frozen=True, slots=True)
class User:
    """What is known of a user; see the table `derived_user`."""

    changes: int = 0
    waiting_since: int = 0
    read_at: int = 0
    building_until: int = 0
    wanted: bool = False
    failures: int = 0
    failed_at: int = 0


@dataclass(frozen=True, slots=True)
class Build:
    """What a build read.

    Attributes:
        built_at: when it read, in microseconds UTC.
        changes: the user's count of changes then.
        schema_version: the schema it was for.
        builder: the builder's name.
        exact: whether its sources name all that its values come from.
        unserved: how many facts there were that it could not be given, as far as was counted.
        turns_at: when a fact begins or ends to hold; None when nothing says so.
    """

    built_at: int
    changes: int
    schema_version: int
    builder: str = ""
    exact: bool = True
    unserved: int = 0
    turns_at: int | None = None


@dataclass(frozen=True, slots=True)
class StoredSource:
    """Where a part of a profile comes from, and what became of that.

    Attributes:
        property: the property.
        source_id: the memory's row.
        source_version: the version that was read.
        span: where in its text the value stands, and how long that is; (-1, 0) where that is not known.
        memory_key: its key; empty when it is gone.
        value_text: that version's value as JSON; None when it is gone or may not be shown any more.
        current: whether the version is the row's latest.
        live: whether the row is still served.
    """

    property: str
    source_id: int
    source_version: int
    span: tuple[int, int]
    memory_key: str
    value_text: str | None
    current: bool
    live: bool


def schemas(tx: Transaction, namespace: str, most: int, before: int = store.BEFORE_ALL) -> list[StoredSchema]:
    """Versions of the namespace's schema, the latest first."""
    return [_schema(row) for row in tx.rows(queries.SCHEMAS, namespace=namespace, most=most, before=before)]


def latest_schema(tx: Transaction, namespace: str) -> StoredSchema | None:
    """The schema that the namespace has now, or None."""
    found = schemas(tx, namespace, 1)
    return found[0] if found and found[0].text else None


def schema_version(tx: Transaction, namespace: str, version: int) -> StoredSchema | None:
    """One version of it."""
    row = tx.row(queries.SCHEMA, namespace=namespace, version=version)
    return None if row is None else _schema(row)


def put_schema(tx: Transaction, namespace: str, made: StoredSchema) -> None:
    """Add a version."""
    tx.run(
        queries.PUT_SCHEMA,
        namespace=namespace,
        version=made.version,
        definition=made.text,
        schema_sha256=made.sha256,
        updated_by=made.updated_by,
        updated_at=made.updated_at,
    )


def user(tx: Transaction, namespace: str, user_id: str) -> User:
    """What is known of a user."""
    row = tx.row(queries.USER, namespace=namespace, user_id=user_id)
    if row is None:
        return User()
    return User(
        changes=cast("int", row["changes"]),
        waiting_since=cast("int", row["waiting_since"]),
        read_at=cast("int", row["read_at"]),
        building_until=cast("int", row["building_until"]),
        wanted=bool(row["wanted"]),
        failures=cast("int", row["failures"]),
        failed_at=cast("int", row["failed_at"]),
    )


def held(tx: Transaction, namespace: str, user_id: str) -> tuple[Item | None, Build | None]:
    """The row that holds the user's profile, whatever became of it, and the build its latest version is of."""
    row = tx.row(queries.HELD, namespace=namespace, user_id=user_id, memory_key=DERIVED_KEY)
    if row is None:
        return None, None
    return store.item_of(row), None if row["built_at"] is None else _build(row)


def last_build(tx: Transaction, item_id: int) -> Build | None:
    """The row's latest build."""
    row = tx.row(queries.LAST_BUILD, item_id=item_id)
    if row is None:
        return None
    return Build(cast("int", row["built_at"]), cast("int", row["changes"]), cast("int", row["schema_version"]))


def free_moment(tx: Transaction, item_id: int, now_us: int) -> int:
    """The first moment from now on that no version of the row has for its build's."""
    taken = {row["valid_at"] for row in tx.rows(queries.MOMENTS, item_id=item_id, now=now_us)}
    while now_us in taken:
        now_us += 1
    return now_us


def facts_now(tx: Transaction, namespace: str, user_id: str, since_us: int, now_us: int) -> tuple[bool, bool]:
    """Whether the user has facts, and whether one expired since a moment and was not ended yet."""
    row = cast("Row", tx.row(queries.FACTS_NOW, namespace=namespace, user_id=user_id, since=since_us, now=now_us))
    return bool(row["present"]), bool(row["turned"])


def facts(tx: Transaction, namespace: str, user_id: str, now_us: int, most: int) -> list[Item]:
    """The user's facts, the last written first."""
    return [
        store.item_of(row)
        for row in tx.rows(queries.FACTS, namespace=namespace, user_id=user_id, now=now_us, most=most)
    ]


def users(tx: Transaction, namespace: str, after: str, most: int) -> list[str]:
    """Users of the namespace who have facts, in the engine's order of names; those after a name."""
    return [cast("str", row["user_id"]) for row in tx.rows(queries.USERS, namespace=namespace, after=after, most=most)]


def has_facts(tx: Transaction, namespace: str, user_id: str) -> bool:
    """Whether `users` names this user."""
    return tx.row(queries.ANY_FACT, namespace=namespace, user_id=user_id) is not None


def put_build(tx: Transaction, item: Item, build: Build, sources: Sequence[Mapping[str, str | int]]) -> None:
    """Keep what a build read; a source has the columns of `queries.PUT_SOURCE` that say which, and where."""
    own = {"item_id": item.item_id, "built_at": build.built_at, "namespace": item.place.namespace}
    tx.run(
        queries.PUT_BUILD,
        **own,
        changes=build.changes,
        schema_version=build.schema_version,
        builder=build.builder,
        exact=int(build.exact),
        unserved=build.unserved,
        turns_at=build.turns_at,
    )
    tx.run_many(queries.PUT_SOURCE, [{**own, **source} for source in sources])


def sources(tx: Transaction, item: Item, built_at: int, now_us: int, only: str = "") -> list[StoredSource]:
    """Where the build's values come from; of all properties, or of one."""
    rows = tx.rows(queries.SOURCES, item_id=item.item_id, built_at=built_at, any_property=int(not only), property=only)
    return [_source(row, now_us) for row in rows]


def unchanged(tx: Transaction, read: Mapping[int, int]) -> bool:
    """Whether every row is still a fact, in the version that was read: by id."""
    if not read:
        return True
    rows = tx.rows(queries.HEADS, ids=list(read))
    return {row["item_id"]: row["version"] for row in rows if row["served"]} == read


def still_said(tx: Transaction, read: Mapping[int, int]) -> bool:
    """Whether every row is still a fact, and what was read of it is not erased: it may have been written anew."""
    if not read:
        return True
    served = {row["item_id"] for row in tx.rows(queries.HEADS, ids=list(read)) if row["served"]}
    said = {row["item_id"] for row in tx.rows(queries.STILL_SAID, ids=list(read), versions=list(read.values()))}
    return served == set(read) and said == set(read)


def ask(tx: Transaction, kind: str, subjects: Sequence[str], now_us: int) -> None:
    """Enqueue jobs that are due at once, except for subjects that have one due or under way."""
    stamp = tx.stamp()
    wanted = [{"kind": kind, "subject": subject, "generation": stamp, "now": now_us} for subject in sorted(subjects)]
    tx.run_many(queries.ASK_ONCE, wanted)


def purge_namespace(tx: Transaction, namespace: str) -> int:
    """Remove all that is kept of a namespace; no item of its own goes with it."""
    for sql in queries.PURGES:
        tx.run(sql, namespace=namespace)
    return 0


def _schema(row: Row) -> StoredSchema:
    return StoredSchema(
        version=cast("int", row["version"]),
        text=cast("str", row["definition"]),
        sha256=cast("str", row["schema_sha256"]),
        updated_by=cast("str", row["updated_by"]),
        updated_at=cast("int", row["updated_at"]),
    )


def _build(row: Row) -> Build:
    return Build(
        built_at=cast("int", row["built_at"]),
        changes=cast("int", row["build_changes"]),
        schema_version=cast("int", row["schema_version"]),
        builder=cast("str", row["builder"]),
        exact=bool(row["exact"]),
        unserved=cast("int", row["unserved"]),
        turns_at=cast("int | None", row["turns_at"]),
    )


def _source(row: Row, now_us: int) -> StoredSource:
    ends = cast("int | None", row["expires_at"])
    live = row["item_status"] == LIVE and row["sensitivity"] == NORMAL and (ends is None or ends > now_us)
    shown = live and row["read_sensitivity"] == NORMAL
    return StoredSource(
        property=cast("str", row["property"]),
        source_id=cast("int", row["source_id"]),
        source_version=cast("int", row["source_version"]),
        span=(cast("int", row["span_start"]), cast("int", row["span_characters"])),
        memory_key=cast("str", row["memory_key"] or ""),
        value_text=cast("str | None", row["value"]) if shown else None,
        current=row["head_version"] == row["source_version"],
        live=live,
    )
