"""Namespaces: named parts of an org, each of one kind, made when first written to."""

import re
from collections.abc import Collection, Mapping, Sequence
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

AFTER = """
SELECT name, kind, description, created_at, last_version FROM namespace
WHERE org = :org AND (:every = 1 OR name IN (:names)) AND name > :after
ORDER BY name LIMIT :most
"""

CREATE = """
INSERT INTO namespace (org, name, kind, description, created_at, last_version)
VALUES (:org, :name, :kind, :description, :created_at, 0)
ON CONFLICT (org, name) DO NOTHING
"""

DESCRIBE = "UPDATE namespace SET description = :description WHERE org = :org AND name = :name"

DELETE = "DELETE FROM namespace WHERE org = :org AND name = :name"

BIND = """
INSERT INTO namespace_binding (org, name, repository, tracker) VALUES (:org, :name, :repository, :tracker)
ON CONFLICT (org, name) DO UPDATE SET repository = excluded.repository, tracker = excluded.tracker
"""

BOUND = "SELECT name, repository, tracker FROM namespace_binding WHERE org = :org AND name = :name"

BOUND_OF = "SELECT name, repository, tracker FROM namespace_binding WHERE org = :org AND name IN (:names)"

OF_REPOSITORY = """
SELECT namespace.name FROM namespace_binding
JOIN namespace ON namespace.org = namespace_binding.org AND namespace.name = namespace_binding.name
WHERE namespace_binding.org = :org AND namespace_binding.repository = :repository AND namespace.kind = :kind
ORDER BY namespace.last_version DESC, namespace.name LIMIT :most
"""

UNBIND = "DELETE FROM namespace_binding WHERE org = :org AND name = :name"

HOST = re.compile(r"[^/@\s]+@[^/:\s]+:|(?:[^/@\s]+@)?[^/:\s]+\.[^/:\s]+(?::\d+)?[:/]")
"""`host.org/`, `git@host.org:` or `host.org:22/` before a path, where no scheme says that a host follows."""

REPOSITORY_LENGTH_MAX = 512


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


@dataclass(frozen=True, slots=True)
class Binding:
    """What a namespace stands for outside Loom.

    Attributes:
        name: the namespace.
        repository: the repository it is bound to, as `repository_key` gives it.
        tracker: the tracker namespace to ask, for a code namespace; empty for the one of the same repository.
    """

    name: str
    repository: str
    tracker: str


def enter(tx: Transaction, name: str) -> None:
    """Keep the namespace from being deleted until the transaction ends.

    Taken by whoever goes on from what a row in it says, before that row's own lock: what was deleted meanwhile would
    be written anew.
    """
    tx.share("namespace", name)


def close(tx: Transaction, name: str) -> None:
    """Wait for everybody who is in the namespace, and let nobody in until the transaction ends."""
    tx.lock("namespace", name)


def touch(tx: Transaction, name: str, version: int, kind: NamespaceKind = "memory") -> None:
    """Note a write to the namespace; make it, of `kind`, when it is new."""
    tx.send_last(TOUCH, name=name, kind=kind, created_at=version // 1000, version=version)


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


def after(tx: Transaction, reached: Collection[str] | None, name: str, most: int) -> Sequence[Namespace]:
    """The next namespaces by name, after this one, of those that the caller reaches; at most `most`."""
    names = list(reached or ("",))
    return [_namespace(row) for row in tx.rows(AFTER, every=int(reached is None), names=names, after=name, most=most)]


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
    """Remove the namespace's own row and binding; False when there is none. Its contents are the caller's to remove."""
    tx.run(UNBIND, name=name)
    return tx.run(DELETE, name=name) == 1


def repository_key(repository: str) -> str:
    """A repository's name, so that spellings of one meet: `git@host.org:Acme/App.git` is `acme/app`.

    A clone address loses its scheme, user, host and `.git`; a bare name or `owner/name` is only folded. At most 512
    characters; empty when nothing is left.
    """
    scheme, _, rest = repository.strip().replace("\\", "/").rpartition("://")
    host = HOST.match(rest)
    after_host = rest[host.end() :] if host else rest
    path = rest.partition("/")[2] if scheme and scheme.lower() != "file" else after_host
    return path.strip("/").removesuffix(".git").lower()[:REPOSITORY_LENGTH_MAX]


def bind(tx: Transaction, name: str, repository: str, tracker: str = "") -> None:
    """Bind the namespace to a repository, in place of the one it was bound to."""
    tx.run(BIND, name=name, repository=repository_key(repository), tracker=tracker)


def unbind(tx: Transaction, name: str) -> None:
    """Let the namespace stand for nothing; no error when it stood for nothing."""
    tx.run(UNBIND, name=name)


def binding(tx: Transaction, name: str) -> Binding | None:
    """What the namespace is bound to, or None."""
    row = tx.row(BOUND, name=name)
    return None if row is None else _binding(row)


def bindings(tx: Transaction, names: Collection[str]) -> Mapping[str, Binding]:
    """What these namespaces are bound to, by name."""
    rows = tx.rows(BOUND_OF, names=list(names)) if names else ()
    return {one.name: one for one in map(_binding, rows)}


def code_scope(tx: Transaction, name: str) -> Binding | None:
    """The binding of a namespace of kind code that stands for one repository; None for every other namespace."""
    space = read(tx, name)
    return binding(tx, name) if space is not None and space.kind == "code" else None


def of_repository(tx: Transaction, repository: str, kind: str, most: int = LISTED_MAX) -> Sequence[str]:
    """Namespaces of a kind that are bound to a repository, the last written first."""
    rows = tx.rows(OF_REPOSITORY, repository=repository_key(repository), kind=kind, most=most)
    return [cast("str", row["name"]) for row in rows]


def _binding(row: Row) -> Binding:
    return Binding(cast("str", row["name"]), cast("str", row["repository"]), cast("str", row["tracker"]))


def _namespace(row: Row) -> Namespace:
    return Namespace(
        cast("str", row["name"]),
        cast("NamespaceKind", row["kind"]),
        cast("str", row["description"]),
        cast("int", row["created_at"]),
        cast("int", row["last_version"]),
    )
