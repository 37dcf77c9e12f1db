"""Repositories as lines of an export: each with some of its files. Symbols and uses are read out of them again."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Annotated, ClassVar, Final, Literal, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from loom.access import namespaces
from loom.errors import Rejected
from loom.jobs import outbox
from loom.ops.spec import Context
from loom.planes import cargo
from loom.planes.cargo import Cargo, Carried, Count, IdentityText, Key, Line, Moment, Reach, Stamp
from loom.planes.code import embeds, files, git, indexing, store, symbols
from loom.planes.code.extract import SYMBOLS_MAX
from loom.planes.code.fields import plain
from loom.planes.code.files import FILE_BYTES_MAX, PATH_CHARACTERS_MAX, Text
from loom.planes.code.indexing import INDEX
from loom.planes.code.sources import FOLDER, GIT
from loom.planes.code.store import File, Repository
from loom.planes.code.symbols import Ids, Made
from loom.storage.interface import Transaction

FILES_MAX: Final = 50
"""Files in one line; a repository with more has several lines."""

LINE_CHARACTERS_MAX: Final = 1_000_000
"""Characters of files in one line, about; one file always fits."""

PROBLEM_LENGTH_MAX: Final = 10_000
REASONS_MAX: Final = 64
REASON_LENGTH_MAX: Final = 64
DIGEST_LENGTH_MAX: Final = 128
SOURCE_LENGTH_MAX: Final = 4_096

COUNT = """
SELECT count(*) AS total FROM code_repository WHERE org = :org AND (:every = 1 OR namespace IN (:namespaces))
"""

SYMBOL_IDS = "SELECT item_id FROM code_symbol WHERE org = :org AND file_id = :file_id ORDER BY +item_id"

FILES_HERE = """
SELECT path, file_id, digest FROM code_file WHERE org = :org AND namespace = :namespace AND path IN (:paths)
"""

IDS_TAKEN = """
SELECT namespace, path FROM code_file WHERE org = :org AND file_id IN (:ids)
"""

SYMBOLS_TAKEN = """
SELECT namespace, file_id FROM code_symbol WHERE org = :org AND item_id IN (:ids)
"""

_COMMIT = re.compile(r"([0-9a-f]{40,64})?")


def _commit(value: str) -> str:
    if not _COMMIT.fullmatch(value):
        raise ValueError("is not the id of a commit")
    return value


def _revision(value: str) -> str:
    if value and not git.is_revision(value):
        raise ValueError("is not the name of a branch, a tag or a commit")
    return value


class FilePart(BaseModel):
    """A file as it was indexed, and the ids of its symbols in their order."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    file_id: Stamp
    path: Annotated[str, Field(min_length=1, max_length=PATH_CHARACTERS_MAX)]
    digest: Annotated[str, Field(min_length=1, max_length=DIGEST_LENGTH_MAX), AfterValidator(plain)]
    content: Annotated[str, Field(max_length=FILE_BYTES_MAX)]
    symbol_ids: Annotated[list[Stamp], Field(max_length=SYMBOLS_MAX + 1)] = Field(default_factory=list[int])


class RepositoryLine(Line):
    """A repository and some of its files."""

    KIND: ClassVar[str] = "repository"

    kind: Literal["repository"]
    namespace: IdentityText
    repository_id: Stamp
    source: Annotated[str, Field(min_length=1, max_length=SOURCE_LENGTH_MAX), AfterValidator(plain)]
    source_kind: Literal["folder", "git"]
    revision: Annotated[str, AfterValidator(_revision)] = ""
    name: Annotated[str, Field(max_length=namespaces.REPOSITORY_LENGTH_MAX)] = ""
    commit_id: Annotated[str, AfterValidator(_commit)] = ""
    vectors: bool
    state: Literal["waiting", "indexing", "ready", "failed"]
    generation: Stamp
    files_total: Count
    files_done: Count
    skipped: Annotated[
        dict[Annotated[str, Field(max_length=REASON_LENGTH_MAX)], Count], Field(max_length=REASONS_MAX)
    ] = Field(default_factory=dict[str, int])
    problem: Annotated[str, Field(max_length=PROBLEM_LENGTH_MAX)] = ""
    requested_at: Moment
    finished_at: Moment | None = None
    files: Annotated[list[FilePart], Field(max_length=FILES_MAX)]


@dataclass(frozen=True, slots=True)
class Whole:
    """A file read again, and the ids it had; without those of its symbols where other ones were found."""

    made: Made
    ids: Ids


@dataclass(frozen=True, slots=True)
class Ready:
    """A line, and its files read again."""

    line: RepositoryLine
    files: Sequence[Whole]


def read(tx: Transaction, reach: Reach, after: Key) -> Iterator[Carried]:
    """Lines after a place, which is a repository and its last file that was given; -1 for after its last line."""
    first, last = int(after[0]), int(after[1])

    def fetch(before: int) -> Sequence[Repository]:
        return store.after(tx, reach.params(), before, cargo.AT_ONCE)

    for repository in cargo.in_order(fetch, lambda one: one.repository_id, first if last < 0 else first - 1):
        yield from lines_of(tx, repository, last if repository.repository_id == first else 0)


def lines_of(tx: Transaction, repository: Repository, last: int) -> Iterator[Carried]:
    """A repository's lines, with its files after one; a repository without files has one line."""
    begins = last == 0
    while last >= 0:
        taken, last = slice_of(tx, repository.namespace, last)
        if taken or begins:
            length = sum(len(one.content) for one in taken)
            yield Carried(line_of(repository, taken), (repository.repository_id, last), length)
        begins = False


def slice_of(tx: Transaction, namespace: str, last: int) -> tuple[Sequence[FilePart], int]:
    """Files for one line, and the last of them; -1 when there are no more."""
    taken: list[FilePart] = []
    room = LINE_CHARACTERS_MAX
    while len(taken) < FILES_MAX:
        most = min(cargo.AT_ONCE, FILES_MAX - len(taken))
        found = store.files_after(tx, namespace, last, most)
        for file, digest in found:
            room -= len(file.content)
            if room < 0 and taken:
                return taken, last
            taken.append(part_of(tx, file, digest))
            last = file.file_id
        if len(found) < most:
            return taken, -1
    return taken, last


def part_of(tx: Transaction, file: File, digest: str) -> FilePart:
    """A file as part of a line."""
    ids = [cast("int", row["item_id"]) for row in tx.rows(SYMBOL_IDS, file_id=file.file_id)]
    return FilePart(file_id=file.file_id, path=file.path, digest=digest, content=file.content, symbol_ids=ids)


def line_of(repository: Repository, taken: Sequence[FilePart]) -> RepositoryLine:
    """A repository and some of its files as a line."""
    return RepositoryLine.model_validate(
        cargo.fields_of(RepositoryLine, repository)
        | {"kind": "repository", "skipped": dict(repository.skipped), "files": list(taken)}
    )


def ready(line: RepositoryLine) -> Ready:
    """The line with its files read again.

    Raises:
        Rejected: a file is none that is kept, two share a path or an id, or the source is no folder.
    """
    if line.source_kind == FOLDER:
        path = PurePath(line.source)
        if not path.is_absolute() or path == PurePath(path.anchor) or line.revision:
            raise Rejected("source: should be the absolute path of a folder, without a revision", field="source")
    if line.repository_id > line.generation:
        raise Rejected("generation: lies before the repository's own id", field="generation")
    ids = [number for one in line.files for number in (one.file_id, *one.symbol_ids)]
    if len(set(ids)) < len(ids) or len({one.path for one in line.files}) < len(line.files):
        raise Rejected("files: two share a path or an id", field="files")
    return Ready(line, [whole(part, place) for place, part in enumerate(line.files)])


def whole(part: FilePart, place: int) -> Whole:
    """A file read again."""
    text = files.kept(part.path, part.content, len(part.content))
    if files.left_out(part.path, len(part.content)) or not isinstance(text, Text):
        raise Rejected(f"files.{place}: is none that is kept", field="files")
    made = indexing.read_again(part.path, part.digest, text)
    found = part.symbol_ids if len(part.symbol_ids) == len(made.symbols) else None
    return Whole(made, Ids(part.file_id, found))


def take(ctx: Context, made: Ready) -> bool:
    """Keep the files that are missing or later than here, and the repository if it is."""
    line = made.line
    cargo.check_reached(ctx, line.namespace)
    stamps = [line.generation, *(number for one in line.files for number in (one.file_id, *one.symbol_ids))]
    cargo.check_not_ahead(ctx, *stamps, field="files")
    namespaces.enter(ctx.tx, line.namespace)
    ctx.tx.lock("code", line.namespace)
    later = is_later(ctx, line)
    new = missing(ctx.tx, made)
    if not new and not later:
        return False
    ctx.tx.outstrip(max(stamps))
    if later:
        put_repository(ctx.tx, line, trusted=ctx.caller.tokenless)
    for one in new:
        symbols.put(ctx.tx, line.namespace, one.made, one.ids)
    if line.vectors and line.state == store.READY:
        outbox.enqueue(ctx.tx, embeds.EMBED, str(line.repository_id))
    return True


def is_later(ctx: Context, line: RepositoryLine) -> bool:
    """Whether the line's repository is later than what is here.

    Raises:
        Rejected: the namespace holds another one or is of another kind, the id is another namespace's, or the
            address is not fetched here.
    """
    if line.source_kind == GIT:
        try:
            git.checked(line.source, ctx.limits.git_schemes)
        except git.BadAddress as error:
            raise Rejected(f"source: {error}", field="source") from None
    space = namespaces.read(ctx.tx, line.namespace)
    if space is not None and space.kind != "code":
        raise Rejected(f"namespace: is of kind {space.kind} here", field="namespace")
    there = store.of_namespace(ctx.tx, line.namespace)
    if there is None:
        if store.by_id(ctx.tx, line.repository_id) is not None:
            raise Rejected("repository_id: another namespace has this id here", field="repository_id")
        return True
    if there.repository_id != line.repository_id:
        raise Rejected("namespace: holds another repository here", field="namespace")
    return (line.generation, line.finished_at or 0) > (there.generation, there.finished_at or 0)


def missing(tx: Transaction, made: Ready) -> Sequence[Whole]:
    """The files that are not here, or are later than here.

    Raises:
        Rejected: an id stands for another file or symbol here.
    """
    namespace = made.line.namespace
    if not made.files:
        return ()
    rows = tx.rows(FILES_HERE, namespace=namespace, paths=[one.made.path for one in made.files])
    here = {cast("str", row["path"]): (cast("int", row["file_id"]), cast("str", row["digest"])) for row in rows}
    new = [one for one in made.files if here.get(one.made.path, (0, ""))[0] < one.ids.file_id]
    if not new:
        return ()
    ids = [one.ids.file_id for one in new]
    if tx.rows(IDS_TAKEN, ids=ids):
        raise Rejected("files: another file has the id of one here", field="files")
    wanted = [number for one in new for number in one.ids.symbol_ids or ()]
    if wanted and tx.rows(SYMBOLS_TAKEN, ids=wanted):
        raise Rejected("files: another symbol has the id of one here", field="files")
    return new


def put_repository(tx: Transaction, line: RepositoryLine, *, trusted: bool) -> None:
    """Keep the repository; an index that was under way begins anew, as if the importing caller had asked for it."""
    unfinished = line.state in (store.WAITING, store.INDEXING)
    store.put(tx, Repository(
        namespace=line.namespace,
        repository_id=line.repository_id,
        source=line.source,
        source_kind=line.source_kind,
        revision=line.revision,
        name=line.name,
        commit_id=line.commit_id,
        vectors=line.vectors,
        state=store.WAITING if unfinished else line.state,
        generation=line.generation,
        tries=0,
        files_total=line.files_total,
        files_done=line.files_done,
        skipped=line.skipped,
        problem=line.problem,
        requested_at=line.requested_at,
        finished_at=line.finished_at,
        trusted=trusted,
    ))  # fmt: skip
    namespaces.touch(tx, line.namespace, line.generation, "code")
    if namespaces.binding(tx, line.namespace) is None and line.name:
        namespaces.bind(tx, line.namespace, line.name)
    if unfinished:
        outbox.enqueue(tx, INDEX, str(line.repository_id))


CARGO = Cargo(RepositoryLine, (0, -1), COUNT, read, ready, take)
