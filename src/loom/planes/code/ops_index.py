"""code.index, code.index_status and code.delete."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from loom.access import namespaces
from loom.access.caller import Role
from loom.errors import Conflict, Denied, Rejected
from loom.jobs import outbox
from loom.ops.fields import Instant, instant, instant_or_none
from loom.ops.spec import Answer, Audited, Context, Kind, Limits, Op, OpenRequest, Prepare, prepared_as
from loom.planes.code import git, hosts, store, symbols, within
from loom.planes.code.documents import Library
from loom.planes.code.fields import Shown, plain
from loom.planes.code.indexing import INDEX
from loom.planes.code.small import content_of
from loom.planes.code.sources import CLOSED, FOLDER, GIT, SYSTEM_FOLDERS, is_within
from loom.planes.code.store import Repository
from loom.storage.interface import Transaction

FORGET = "code.forget"
"""The job that removes a fetched repository."""

SOURCE_CHARACTERS_MAX = git.ADDRESS_CHARACTERS_MAX
CONFIG_BYTES_MAX = 64 * 1024
_ORIGIN = re.compile(r'^\[remote "origin"\]\s*$(?:\n(?!\[).*)*?\n\s*url\s*=\s*(\S+)\s*$', re.MULTILINE)


def _revision(value: str) -> str:
    if value and not git.is_revision(value):
        raise ValueError("is not the name of a branch, a tag or a commit")
    return value


class IndexRequest(OpenRequest):
    """What code.index takes."""

    source: Annotated[
        Annotated[str, Field(max_length=SOURCE_CHARACTERS_MAX)],
        AfterValidator(plain),
        Field(
            description="A folder on the server, as an absolute path (the single user, and admins in folders that "
            "the setting code_folders opens), or a git address (https, ssh, file). Empty to index the namespace's "
            "repository again."
        ),
    ] = ""
    revision: Annotated[
        Annotated[str, Field(max_length=255)],
        AfterValidator(_revision),
        Field(description="Of a git address, the branch, tag or commit; empty for its usual branch."),
    ] = ""
    vectors: Annotated[
        bool | None,
        Field(
            description="Whether it is to be found by meaning too, which goes on after the rest; null to leave that "
            "as it is, and for a new repository yes."
        ),
    ] = None


class StatusRequest(OpenRequest):
    """What code.index_status takes."""


class DeleteRequest(OpenRequest):
    """What code.delete takes."""


class LanguageShown(Shown):
    """How much there is in one language."""

    language: Annotated[str, Field(description="The language; empty for files in none that is parsed.")]
    files: Annotated[int, Field(description="Files in it.")]
    lines: Annotated[int, Field(description="Lines in it.")]


class StatusAnswer(Answer):
    """How far an index is."""

    state: Annotated[
        str,
        Field(description="none (no repository), waiting, indexing, ready, or failed (what was indexed before stays)."),
    ]
    repository: Annotated[str, Field(description="The repository's name: owner/name of its address, or its folder's.")]
    source: Annotated[str, Field(description="Where it is read from; shown to admins alone.")]
    revision: Annotated[str, Field(description="The branch, tag or commit that was asked for.")]
    commit_id: Annotated[str, Field(description="The commit that is indexed; empty when it is not known.")]
    files_total: Annotated[int, Field(description="Files that belong in the index.")]
    files_done: Annotated[int, Field(description="Of them, those that are done.")]
    symbols: Annotated[int, Field(description="Definitions that can be found.")]
    vectors: Annotated[bool, Field(description="Whether they are to be found by meaning.")]
    embedded: Annotated[int, Field(description="Definitions that can be found by meaning already.")]
    languages: Annotated[list[LanguageShown], Field(description="What there is, by language.")]
    skipped: Annotated[
        dict[str, int],
        Field(
            description="Files left out, by reason: secret, binary, too_large, generated, ignored, link, odd_name, "
            "unreadable."
        ),
    ]
    problem: Annotated[str, Field(description="Why it failed; empty when it did not.")]
    requested_at: Annotated[Instant | None, Field(description="When it was last asked for; null for never.")]
    finished_at: Annotated[Instant | None, Field(description="When it was last ready or failed; null for never.")]


class DeleteAnswer(Answer):
    """What code.delete answers."""

    symbols_deleted: Annotated[int, Field(description="How many definitions were forgotten; 0 when there were none.")]


@dataclass(frozen=True, slots=True)
class Checked:
    """A source that may be indexed.

    Attributes:
        source: the folder or address; of a namespace that is indexed again, its own.
        kind: folder or git.
        name: what the repository is called.
        again: whether it is the one that the namespace has.
    """

    source: str
    kind: str
    name: str
    again: bool = False


def checked(prepare: Prepare, request: IndexRequest) -> Checked:
    """Look at the source before anything is written."""
    source = request.source.strip()
    if source:
        return _checked(prepare, source, request.revision)
    with prepare.read(request.org) as tx:
        held = store.of_namespace(tx, request.namespace)
    if held is None:
        raise Rejected("source: the namespace holds no repository yet; name one", field="source")
    local = Path(held.source) if held.source_kind == FOLDER else git.local_path(held.source)
    if local is not None:
        _check_local(prepare, local)
    return Checked(held.source, held.source_kind, held.name, again=True)


def _checked(prepare: Prepare, source: str, revision: str) -> Checked:
    if not git.is_address(source):
        return _folder(prepare, source, revision)
    limits = prepare.limits
    try:
        git.checked(source, limits.git_schemes)
    except git.BadAddress as error:
        raise Rejected(f"source: {error}", field="source") from None
    local = git.local_path(source)
    if local is not None:
        _check_local(prepare, local)
        _check_open(local, limits)
    elif not prepare.caller.tokenless and hosts.refused(source, limits.git_private_hosts):
        raise Denied(f"source: {hosts.INSIDE}", field="source")
    return Checked(source, GIT, namespaces.repository_key(source))


def _check_local(prepare: Prepare, folder: Path) -> None:
    """Denied to a token, unless an admin's names a folder that the settings open; the job looks again."""
    caller = prepare.caller
    if caller.role < Role.ADMIN:
        raise Denied("source: a folder of the server is indexed by admins only; send a git address", field="source")
    why = "" if caller.tokenless else within.refusal(folder, prepare.limits.code_folders)
    if why:
        raise Denied(f"source: {why}; or send a git address", field="source")


def _check_open(folder: Path, limits: Limits) -> None:
    """Rejected for a folder that is never read; the job looks again, for a link may have changed by then."""
    try:
        folder = folder.resolve()
    except (OSError, RuntimeError):
        return  # what cannot be followed cannot be read either, and the job says why
    if is_within(folder, (*SYSTEM_FOLDERS, *limits.closed_folders)):
        raise Rejected(f"source: {CLOSED}", field="source")


def _folder(prepare: Prepare, source: str, revision: str) -> Checked:
    _check_local(prepare, Path(source))
    if revision:
        raise Rejected("revision: a folder is indexed as it is; leave it out, or send a git address", field="revision")
    path = Path(source)
    if not path.is_absolute():
        raise Rejected("source: send an absolute path on the server, or a git address", field="source")
    try:
        path = path.resolve(strict=True)
        is_folder = path.is_dir()
    except (OSError, ValueError, RuntimeError):
        is_folder = False
    if not is_folder:
        raise Rejected("source: there is no such folder on the server", field="source")
    if path == Path(path.anchor):
        raise Rejected("source: is the whole disk; name a folder in it", field="source")
    _check_open(path, prepare.limits)
    name = namespaces.repository_key(_origin(path)) or namespaces.repository_key(path.name)
    return Checked(str(path), FOLDER, name)


def _origin(folder: Path) -> str:
    """Where a folder was cloned from, as its own settings say; empty when they do not, or are not its own."""
    own = folder / ".git"
    content = None if own.is_symlink() else content_of(own / "config", CONFIG_BYTES_MAX)
    match = _ORIGIN.search(content.decode("utf-8", "replace")) if content is not None else None
    return match[1] if match else ""


def index(ctx: Context, request: IndexRequest) -> StatusAnswer:
    """Ask for the index, and say how far it is."""
    asked = prepared_as(ctx, Checked)
    tx, namespace = ctx.tx, request.namespace
    namespaces.enter(tx, namespace)
    tx.lock("code", namespace)
    held = store.of_namespace(tx, namespace)
    if asked.again and (held is None or held.source != asked.source):
        raise Conflict("source: the namespace's repository was changed meanwhile; try again", field="source")
    _check_namespace(tx, namespace, asked, held)
    revision = request.revision or (held.revision if held is not None and asked.again else "")
    usual = held is None or held.vectors
    stamp = tx.stamp()
    tx.run(
        store.ASK,
        namespace=namespace,
        stamp=stamp,
        source=asked.source,
        source_kind=asked.kind,
        revision=revision,
        name=asked.name,
        vectors=int(usual if request.vectors is None else request.vectors),
        now=ctx.now_us,
        trusted=int(ctx.caller.tokenless),
    )
    bound = namespaces.binding(tx, namespace)
    namespaces.touch(tx, namespace, stamp, "code")
    # What an admin bound it to stays while it is read from the same place.
    same = bound is not None and held is not None and held.source == asked.source
    name = bound.repository if bound is not None and same else asked.name
    namespaces.bind(tx, namespace, name, bound.tracker if bound else "")
    repository = store.of_namespace(tx, namespace)
    if repository is not None:
        outbox.enqueue(tx, INDEX, str(repository.repository_id))
    return _status(ctx, repository)


def _check_namespace(tx: Transaction, namespace: str, asked: Checked, held: Repository | None) -> None:
    """Conflict when the namespace holds something else."""
    space = namespaces.read(tx, namespace)
    if space is not None and space.kind != "code":
        raise Conflict(
            f"namespace: is of kind {space.kind}; index into one of its own, for example named as the repository",
            field="namespace",
        )
    bound = namespaces.binding(tx, namespace)
    other = bound is not None and bound.repository != namespaces.repository_key(asked.name)
    if other and (held is None or held.source != asked.source):
        raise Conflict(
            "namespace: stands for another repository; index into another namespace, or code.delete this one first",
            field="namespace",
        )


def status(ctx: Context, request: StatusRequest) -> StatusAnswer:
    """How far the index is."""
    return _status(ctx, store.of_namespace(ctx.tx, request.namespace))


def _status(ctx: Context, repository: Repository | None) -> StatusAnswer:
    if repository is None:
        return StatusAnswer(
            state="none", repository="", source="", revision="", commit_id="", files_total=0, files_done=0, symbols=0,
            vectors=False, embedded=0, languages=[], skipped={}, problem="", requested_at=None, finished_at=None,
        )  # fmt: skip
    counts = ctx.tx.row(store.SYMBOLS, namespace=repository.namespace) or {"symbols": 0, "embedded": 0}
    languages = ctx.tx.rows(store.LANGUAGES, namespace=repository.namespace)
    return StatusAnswer(
        state=repository.state,
        repository=repository.name,
        source=repository.source if ctx.caller.role >= Role.ADMIN else "",
        revision=repository.revision,
        commit_id=repository.commit_id,
        files_total=repository.files_total,
        files_done=repository.files_done,
        symbols=int(counts["symbols"] or 0),
        vectors=repository.vectors,
        embedded=int(counts["embedded"] or 0),
        languages=[
            LanguageShown(
                language=str(row["language"]), files=int(row["files"] or 0), lines=int(row["line_total"] or 0)
            )
            for row in languages
        ],
        skipped=dict(repository.skipped),
        problem=repository.problem,
        requested_at=instant(repository.requested_at),
        finished_at=instant_or_none(repository.finished_at),
    )


def forget(tx: Transaction, namespace: str, library: Library) -> int:
    """Forget all that the plane has of a namespace, its documents included; how many symbols there were."""
    namespaces.enter(tx, namespace)
    tx.lock("code", namespace)
    held = store.of_namespace(tx, namespace)
    if held is None:
        return 0
    for path in store.digests(tx, namespace):
        library.remove(tx, namespace, path)
    namespaces.unbind(tx, namespace)
    if held.source_kind == GIT:
        outbox.enqueue(tx, FORGET, str(held.repository_id))
    return symbols.drop_all(tx, namespace)


INDEX_OP = Op(
    name="code.index",
    summary="Index a repository, a folder or a git address; call it again after changes.",
    takes=IndexRequest,
    gives=StatusAnswer,
    role=Role.WRITER,
    kind=Kind.IDEMPOTENT,
    run=index,
    example={"namespace": "project-x", "source": "https://git.example.com/acme/project-x.git"},
    prepare=checked,
    raises=(Conflict, Denied),
)

STATUS_OP = Op(
    name="code.index_status",
    summary="See how far a repository's index is, what it holds and what was left out.",
    takes=StatusRequest,
    gives=StatusAnswer,
    role=Role.VIEWER,
    kind=Kind.READ,
    run=status,
    example={"namespace": "project-x"},
)


def delete_op(library: Library) -> Op[DeleteRequest, DeleteAnswer]:
    """code.delete, with the library that a repository's documents are in."""

    def delete(ctx: Context, request: DeleteRequest) -> DeleteAnswer:
        return DeleteAnswer(symbols_deleted=forget(ctx.tx, request.namespace, library))

    return Op(
        name="code.delete",
        summary="Forget the repository of a namespace: its files, definitions, documents and vectors.",
        takes=DeleteRequest,
        gives=DeleteAnswer,
        role=Role.WRITER,
        kind=Kind.IDEMPOTENT,
        audited=Audited(outcome=("symbols_deleted",)),
        run=delete,
        example={"namespace": "project-x"},
        destructive=True,
    )
