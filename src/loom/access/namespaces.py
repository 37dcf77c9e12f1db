"""Namespaces: named parts of an org, each of one kind, made when first written to."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal, cast, get_args

from loom.access.caller import Caller
from loom.storage.interface import Row, Transaction

NamespaceKind = Literal["memory", "code", "tracker", "knowledge"]
"""What a namespace can hold."""

KINDS: Sequence[NamespaceKind] = get_args(NamespaceKind)
LISTED_MAX = 1000

TOUCH = """
INSERT INTO namespace (org, name, kind, description, created_at, last_version)
VALUES (:org, :name, :kind, '', :created_at, :version)
ON CONFLICT (org, name) DO UPDATE SET last_version = excluded.last_version
WHERE excluded.last_version > namespace.last_version
"""

READ = """
SELECT name, kind, description, created_at, last_version FROM namespace WHERE org = :org AND name = :name
"""

LIST = """
SELECT name, kind, description, created_at, last_version FROM namespace
WHERE org = :org AND (:kind = '' OR kind = :kind) AND (:every = 1 OR name IN (:names))
ORDER BY last_version DESC, name LIMIT :most
"""

CREATE = """
INSERT INTO namespace (org, name, kind, description, created_at, last_version)
VALUES (:org, :name, :kind, :description, :created_at, 0)
ON CONFLICT (org, name) DO NOTHING
"""

DESCRIBE = "UPDATE namespace SET description = :description WHERE org = :org AND name = :name"

DELETE = "DELETE FROM namespace WHERE org = :org AND name = :name"


@dataclass(frozen=True, slots=True)
class Namespace:
    """One namespace.

    Attributes:
        name: 1 to 256 characters.
        kind: what it holds.
        description: what it is for, in a person's words.
        created_at: microseconds UTC.
        last_version: the stamp of the last write to it; 0 when there was none.
    """

    name: str
    kind: NamespaceKind
    description: str
    created_at: int
    last_version: int


def touch(tx: Transaction, name: str, version: int, kind: NamespaceKind = "memory") -> None:
    """Note a write to the namespace; make it, of `kind`, when it is new."""
    tx.send(TOUCH, name=name, kind=kind, created_at=version // 1000, version=version)


def read(tx: Transaction, name: str) -> Namespace | None:
    """The namespace called `name`, or None."""
    row = tx.row(READ, name=name)
    return None if row is None else _namespace(row)


def listed(
    tx: Transaction, reached: Collection[str] | None, kind: str = "", most: int = LISTED_MAX
) -> Sequence[Namespace]:
    """Namespaces, of one kind or of all, the most recently written first.

    Args:
        tx: a transaction.
        reached: those the caller reaches, None for every one; others neither come nor count.
        kind: of this kind; empty for all.
        most: at most this many.
    """
    names = list(reached or ("",))
    return [_namespace(row) for row in tx.rows(LIST, kind=kind, every=int(reached is None), names=names, most=most)]


@dataclass(frozen=True, slots=True)
class FanOut:
    """Which namespaces a search reads: the named one first. `skipped` did not fit."""

    read: tuple[str, ...]
    skipped: tuple[str, ...]


def fan_out(tx: Transaction, caller: Caller, named: str, most: int) -> FanOut:
    """The caller's own memory-kind namespaces: `named`, then the most recently written, `most` in all."""
    own = [space.name for space in listed(tx, caller.namespaces, kind="memory") if space.name != named]
    return FanOut((named, *own[: most - 1]), tuple(own[most - 1 :]))


def create(tx: Transaction, name: str, kind: NamespaceKind, description: str, now_us: int) -> bool:
    """Make a namespace; False when the name is taken."""
    return tx.run(CREATE, name=name, kind=kind, description=description, created_at=now_us) == 1


def describe(tx: Transaction, name: str, description: str) -> bool:
    """Change what the namespace is for; False when there is none of that name."""
    return tx.run(DESCRIBE, name=name, description=description) == 1


def delete(tx: Transaction, name: str) -> bool:
    """Remove the namespace's own row; False when there is none. Its contents are the caller's to remove first."""
    return tx.run(DELETE, name=name) == 1


def _namespace(row: Row) -> Namespace:
    return Namespace(
        cast("str", row["name"]),
        cast("NamespaceKind", row["kind"]),
        cast("str", row["description"]),
        cast("int", row["created_at"]),
        cast("int", row["last_version"]),
    )
