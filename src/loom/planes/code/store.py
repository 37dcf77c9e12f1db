"""The plane's tables: the repository of a namespace, what is left to index, and its files."""

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from loom.access import namespaces
from loom.planes.code.sources import Entry
from loom.storage.interface import Param, Row, Transaction

WAITING, INDEXING, READY, FAILED = "waiting", "indexing", "ready", "failed"
DEFLATE_LEVEL: Final = 1
NAMED_FILES_MAX: Final = 50_000

_REPOSITORY: Final = """
SELECT namespace, repository_id, source, source_kind, revision, name, commit_id, vectors, state, generation, tries,
    files_total, files_done, skipped, problem, requested_at, finished_at, trusted FROM code_repository
"""
OF_NAMESPACE: Final = _REPOSITORY + "WHERE org = :org AND namespace = :namespace"
BY_ID: Final = _REPOSITORY + "WHERE org = :org AND repository_id = :repository_id"
AFTER: Final = (
    _REPOSITORY
    + """WHERE org = :org AND (:every = 1 OR namespace IN (:namespaces)) AND repository_id > :after
ORDER BY repository_id LIMIT :most
"""
)
EVERY: Final = _REPOSITORY + "WHERE org = :org ORDER BY repository_id LIMIT :most"

ASK: Final = """
INSERT INTO code_repository (org, namespace, repository_id, source, source_kind, revision, name, commit_id, vectors,
    state, generation, tries, files_total, files_done, skipped, problem, requested_at, finished_at, trusted)
VALUES (:org, :namespace, :stamp, :source, :source_kind, :revision, :name, '', :vectors, 'waiting', :stamp, 0, 0, 0,
    '{}', '', :now, NULL, :trusted)
ON CONFLICT (org, namespace) DO UPDATE SET source = excluded.source, source_kind = excluded.source_kind,
    revision = excluded.revision, name = excluded.name, vectors = excluded.vectors, state = 'waiting',
    generation = excluded.generation, tries = 0, problem = '', requested_at = excluded.requested_at,
    trusted = excluded.trusted
"""

PUT: Final = """
INSERT INTO code_repository (org, namespace, repository_id, source, source_kind, revision, name, commit_id, vectors,
    state, generation, tries, files_total, files_done, skipped, problem, requested_at, finished_at, trusted)
VALUES (:org, :namespace, :repository_id, :source, :source_kind, :revision, :name, :commit_id, :vectors,
    :state, :generation, :tries, :files_total, :files_done, :skipped, :problem, :requested_at, :finished_at, :trusted)
ON CONFLICT (org, namespace) DO UPDATE SET source = excluded.source, source_kind = excluded.source_kind,
    revision = excluded.revision, name = excluded.name, commit_id = excluded.commit_id, vectors = excluded.vectors,
    state = excluded.state, generation = excluded.generation, tries = excluded.tries,
    files_total = excluded.files_total, files_done = excluded.files_done, skipped = excluded.skipped,
    problem = excluded.problem, requested_at = excluded.requested_at, finished_at = excluded.finished_at,
    trusted = excluded.trusted
"""

PLANNED: Final = """
UPDATE code_repository SET state = 'indexing', commit_id = :commit_id, tries = 0, files_total = :total,
    files_done = :done, skipped = :skipped
WHERE org = :org AND repository_id = :repository_id AND generation = :generation
"""
WENT_ON: Final = """
UPDATE code_repository SET tries = 0, files_done = :done, skipped = :skipped
WHERE org = :org AND repository_id = :repository_id AND generation = :generation
"""
TRYING: Final = """
UPDATE code_repository SET tries = tries + 1
WHERE org = :org AND repository_id = :repository_id AND generation = :generation
"""
ENDED: Final = """
UPDATE code_repository SET state = :state, problem = :problem, finished_at = :now
WHERE org = :org AND repository_id = :repository_id AND generation = :generation
"""

PENDING: Final = """
SELECT path, digest, byte_size FROM code_pending WHERE org = :org AND namespace = :namespace ORDER BY path LIMIT :most
"""
ADD_PENDING: Final = """
INSERT INTO code_pending (org, namespace, path, digest, byte_size) VALUES (:org, :namespace, :path, :digest, :byte_size)
"""
DONE_PENDING: Final = "DELETE FROM code_pending WHERE org = :org AND namespace = :namespace AND path IN (:paths)"
NO_PENDING: Final = "DELETE FROM code_pending WHERE org = :org AND namespace = :namespace"

DIGESTS: Final = "SELECT path, digest FROM code_file WHERE org = :org AND namespace = :namespace"
FILE: Final = """
SELECT path, file_id, language, line_count, broken, content FROM code_file
WHERE org = :org AND namespace = :namespace AND path = :path
"""
FILES_AFTER: Final = """
SELECT path, file_id, language, line_count, broken, content, digest FROM code_file
WHERE org = :org AND namespace = :namespace AND file_id > :after ORDER BY file_id LIMIT :most
"""
FILES_BY_ID: Final = """
SELECT path, file_id, language, line_count, broken, content FROM code_file
WHERE org = :org AND namespace = :namespace AND file_id IN (:ids)
"""
PATHS_BY_ID: Final = """
SELECT file_id, path, language FROM code_file WHERE org = :org AND namespace = :namespace AND file_id IN (:ids)
"""
LIKE_NAMED: Final = """
SELECT path FROM code_file WHERE org = :org AND namespace = :namespace ORDER BY path LIMIT :most
"""
ADD_FILE: Final = """
INSERT INTO code_file (org, namespace, path, file_id, digest, language, line_count, broken, content)
VALUES (:org, :namespace, :path, :file_id, :digest, :language, :line_count, :broken, :content)
"""
DROP_FILE: Final = "DELETE FROM code_file WHERE org = :org AND namespace = :namespace AND path = :path"
ADD_USE: Final = """
INSERT INTO code_use (org, namespace, name, file_id, role, receiver, lines)
VALUES (:org, :namespace, :name, :file_id, :role, :receiver, :lines)
"""
DROP_USES: Final = "DELETE FROM code_use WHERE org = :org AND file_id = :file_id"

LANGUAGES: Final = """
SELECT language, count(*) AS files, sum(line_count) AS line_total FROM code_file
WHERE org = :org AND namespace = :namespace GROUP BY language ORDER BY language
"""
SYMBOLS: Final = """
SELECT count(*) AS symbols, COALESCE(sum(CASE WHEN vector_space = '' THEN 0 ELSE 1 END), 0) AS embedded
FROM code_symbol WHERE org = :org AND namespace = :namespace
"""
DROP_ALL: Final = (
    "DELETE FROM code_use WHERE org = :org AND namespace = :namespace",
    "DELETE FROM code_symbol WHERE org = :org AND namespace = :namespace",
    "DELETE FROM code_file WHERE org = :org AND namespace = :namespace",
    "DELETE FROM code_pending WHERE org = :org AND namespace = :namespace",
    "DELETE FROM code_repository WHERE org = :org AND namespace = :namespace",
)


@dataclass(frozen=True, slots=True)
class Repository:
    """The repository of a namespace, and how far its index is.

    Attributes:
        namespace: the namespace it is bound to.
        repository_id: names it in jobs.
        source: a folder or a git address.
        source_kind: `folder` or `git`.
        revision: the branch, tag or commit that is fetched; empty for the usual one.
        name: what people call it.
        commit_id: the commit that is indexed; empty when not known.
        vectors: whether it is to be found by meaning.
        state: `waiting`, `indexing`, `ready` or `failed`.
        generation: tells this request for an index from a later one.
        tries: how often the next files were begun and not finished.
        files_total: files that belong in the index.
        files_done: of them, those that are in it.
        skipped: how many were left out, by reason.
        problem: why it failed.
        requested_at: microseconds UTC.
        finished_at: when the index was last whole or failed; None for never.
        trusted: whether whoever asked can read the server's own files anyway, as a caller without a token can: then it
            may be read from anywhere.
    """

    namespace: str
    repository_id: int
    source: str
    source_kind: str
    revision: str
    name: str
    commit_id: str
    vectors: bool
    state: str
    generation: int
    tries: int
    files_total: int
    files_done: int
    skipped: Mapping[str, int]
    problem: str
    requested_at: int
    finished_at: int | None
    trusted: bool


@dataclass(frozen=True, slots=True)
class File:
    """A file as it was indexed."""

    path: str
    file_id: int
    language: str
    line_count: int
    broken: bool
    content: str

    def lines(self) -> list[str]:
        """Its lines, without what ends them."""
        return lines_of(self.content)


def lines_of(text: str) -> list[str]:
    """A text's lines, without what ends them; a last empty one does not count."""
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    return lines[:-1] if lines[-1] == "" else lines


def of_namespace(tx: Transaction, namespace: str) -> Repository | None:
    """The repository that a namespace holds."""
    row = tx.row(OF_NAMESPACE, namespace=namespace)
    return None if row is None else _repository(row)


def by_id(tx: Transaction, repository_id: int) -> Repository | None:
    """A repository by its number."""
    row = tx.row(BY_ID, repository_id=repository_id)
    return None if row is None else _repository(row)


def every(tx: Transaction, most: int) -> Sequence[Repository]:
    """The org's repositories."""
    return [_repository(row) for row in tx.rows(EVERY, most=most)]


def after(tx: Transaction, reach: Mapping[str, Param], repository_id: int, most: int) -> Sequence[Repository]:
    """The next repositories after one, within a reach; see `planes.cargo.Reach`."""
    return [_repository(row) for row in tx.rows(AFTER, after=repository_id, most=most, **reach)]


def put(tx: Transaction, repository: Repository) -> None:
    """Write a repository's row as it is: what an import does."""
    tx.run(
        PUT,
        namespace=repository.namespace,
        repository_id=repository.repository_id,
        source=repository.source,
        source_kind=repository.source_kind,
        revision=repository.revision,
        name=repository.name,
        commit_id=repository.commit_id,
        vectors=int(repository.vectors),
        state=repository.state,
        generation=repository.generation,
        tries=repository.tries,
        files_total=repository.files_total,
        files_done=repository.files_done,
        skipped=json.dumps(dict(repository.skipped), sort_keys=True),
        problem=repository.problem,
        requested_at=repository.requested_at,
        finished_at=repository.finished_at,
        trusted=int(repository.trusted),
    )


def _repository(row: Row) -> Repository:
    return Repository(
        namespace=cast("str", row["namespace"]),
        repository_id=cast("int", row["repository_id"]),
        source=cast("str", row["source"]),
        source_kind=cast("str", row["source_kind"]),
        revision=cast("str", row["revision"]),
        name=cast("str", row["name"]),
        commit_id=cast("str", row["commit_id"]),
        vectors=bool(row["vectors"]),
        state=cast("str", row["state"]),
        generation=cast("int", row["generation"]),
        tries=cast("int", row["tries"]),
        files_total=cast("int", row["files_total"]),
        files_done=cast("int", row["files_done"]),
        skipped=cast("dict[str, int]", json.loads(cast("str", row["skipped"]))),
        problem=cast("str", row["problem"]),
        requested_at=cast("int", row["requested_at"]),
        finished_at=cast("int | None", row["finished_at"]),
        trusted=bool(row["trusted"]),
    )


def current(tx: Transaction, repository: Repository) -> Repository | None:
    """The repository as it is now, locked for this write; None when it is gone or was asked for anew."""
    namespaces.enter(tx, repository.namespace)
    tx.lock("code", repository.namespace)
    now = by_id(tx, repository.repository_id)
    return now if now is not None and now.generation == repository.generation else None


def plan(tx: Transaction, repository: Repository, left: Iterable[Entry]) -> None:
    """Put down what is to be done, in place of what was."""
    tx.run(NO_PENDING, namespace=repository.namespace)
    namespace = repository.namespace
    rows = [
        {"namespace": namespace, "path": one.path, "digest": one.digest, "byte_size": one.byte_size} for one in left
    ]
    tx.run_many(ADD_PENDING, rows)


def pending(tx: Transaction, namespace: str, most: int) -> list[Entry]:
    """The next files to be done; one without a digest is to be removed."""
    return [
        Entry(cast("str", row["path"]), cast("int", row["byte_size"]), cast("str", row["digest"]))
        for row in tx.rows(PENDING, namespace=namespace, most=most)
    ]


def digests(tx: Transaction, namespace: str) -> dict[str, str]:
    """The digest of every file that is indexed, by path."""
    return {cast("str", row["path"]): cast("str", row["digest"]) for row in tx.rows(DIGESTS, namespace=namespace)}


def file(tx: Transaction, namespace: str, path: str) -> File | None:
    """A file by its path."""
    row = tx.row(FILE, namespace=namespace, path=path)
    return None if row is None else _file(row)


def files_after(tx: Transaction, namespace: str, file_id: int, most: int) -> list[tuple[File, str]]:
    """The next files after one by number, each with its digest."""
    rows = tx.rows(FILES_AFTER, namespace=namespace, after=file_id, most=most)
    return [(_file(row), cast("str", row["digest"])) for row in rows]


def files_by_id(tx: Transaction, namespace: str, ids: Sequence[int]) -> dict[int, File]:
    """Files by number."""
    rows = tx.rows(FILES_BY_ID, namespace=namespace, ids=list(ids)) if ids else ()
    return {found.file_id: found for found in map(_file, rows)}


def paths_by_id(tx: Transaction, namespace: str, ids: Sequence[int]) -> dict[int, tuple[str, str]]:
    """Path and language of files by number, without reading them."""
    rows = tx.rows(PATHS_BY_ID, namespace=namespace, ids=list(ids)) if ids else ()
    return {cast("int", row["file_id"]): (cast("str", row["path"]), cast("str", row["language"])) for row in rows}


def like_named(tx: Transaction, namespace: str, path: str, most: int) -> list[str]:
    """Paths that end as this one does, or have its file's name."""
    name = path.rpartition("/")[2].casefold()
    rows = tx.rows(LIKE_NAMED, namespace=namespace, most=NAMED_FILES_MAX)
    found = [held for row in rows if (held := cast("str", row["path"])).rpartition("/")[2].casefold() == name]
    return found[:most]


def _file(row: Row) -> File:
    return File(
        cast("str", row["path"]),
        cast("int", row["file_id"]),
        cast("str", row["language"]),
        cast("int", row["line_count"]),
        bool(row["broken"]),
        zlib.decompress(cast("bytes", row["content"])).decode(),
    )


def deflated(content: str) -> bytes:
    """A text as files keep it."""
    return zlib.compress(content.encode(), DEFLATE_LEVEL)
