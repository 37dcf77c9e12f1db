"""knowledge.add: a document, or a new revision of one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Final

from pydantic import Field

from loom.access import namespaces
from loom.access.caller import Role
from loom.errors import Denied, Rejected, Unavailable
from loom.extraction import formats, reading
from loom.extraction.formats import Format, UnknownFormat
from loom.extraction.reading import Extracted, TooBusy, Unreadable
from loom.models.interface import Embedder, EmbedderFailed
from loom.ops.fields import EMBEDDER, Tags
from loom.ops.spec import Context, Kind, Op, Prepare, Request, Toolset, prepared_as
from loom.planes.knowledge import chunks, indexing, rules, store, text, uploads
from loom.planes.knowledge.chunks import Chunk, Manner
from loom.planes.knowledge.fields import DocumentAnswer, Uri, reader_of, shown
from loom.planes.knowledge.rules import Document, Revision
from loom.planes.knowledge.text import Part
from loom.planes.knowledge.uploads import PART_LENGTH_MAX, UPLOAD_ID_LENGTH_MAX
from loom.storage.indexes import Vector

AT_ONCE_MAX: Final = 64
"""Passages of a document that is indexed in the call; a longer one is left to a job."""

AT_ONCE_CHARACTERS_MAX: Final = 2 * AT_ONCE_MAX * chunks.CHARACTERS_MAX
EMBED_TIMEOUT_S: Final = 10.0
RETRY_AFTER_S: Final = 5.0
MEDIA_TYPE_LENGTH_MAX: Final = 200
TEXT_LENGTH_MAX: Final = 1_000_000


class AddRequest(Request):
    """What knowledge.add takes."""

    text: Annotated[
        str, Field(max_length=TEXT_LENGTH_MAX, description="The content as text: Markdown unless said otherwise.")
    ] = ""
    content_base64: Annotated[
        str, Field(max_length=PART_LENGTH_MAX, description="Instead of text: a file in base64, at most 2 MiB of it.")
    ] = ""
    upload_id: Annotated[
        str,
        Field(max_length=UPLOAD_ID_LENGTH_MAX, description="Instead of both: a file that knowledge.upload received."),
    ] = ""
    media_type: Annotated[
        str,
        Field(
            max_length=MEDIA_TYPE_LENGTH_MAX,
            description="text/markdown, text/plain, text/html, application/pdf or Word's; empty to tell by the name "
            "and the content.",
        ),
    ] = ""
    file_name: Annotated[
        str, Field(max_length=rules.NAME_LENGTH_MAX, description="The file's name, which tells its format.")
    ] = ""
    title: Annotated[
        str, Field(max_length=rules.TITLE_LENGTH_MAX, description="What to call it; empty for its own title.")
    ] = ""
    uri: Annotated[
        Uri,
        Field(description="Where it comes from. The same uri again is a new revision; empty to go by the content."),
    ] = ""
    tags: Annotated[
        Tags | None, Field(description="Words to filter by; null leaves those of the document as they are.")
    ] = None


class AddAnswer(DocumentAnswer):
    """What knowledge.add answers."""

    ABSENT_WHEN_NONE: ClassVar[frozenset[str]] = frozenset({"degraded"})

    changed: Annotated[bool, Field(description="false when this content was the latest revision already.")]
    degraded: Annotated[
        list[str] | None,
        Field(description="embedder when it was not ready: search by meaning follows. Absent when nothing was lost."),
    ] = None


@dataclass(frozen=True, slots=True)
class Made:
    """What was made of a file before the transaction.

    Attributes:
        kind: its format.
        extracted: what it says, without its text, which is in `parts`.
        parts: its text.
        title: what it is called unless a title is given.
        outline: headings that its text does not mark, by line.
        passages: None when they are too many for one call.
        vectors: of the passages; None when there are none yet.
        embedder_failed: whether the embedder gave none.
    """

    kind: Format
    extracted: Extracted
    parts: Sequence[Part]
    title: str
    outline: Mapping[int, tuple[int, str]]
    passages: Sequence[Chunk] | None
    vectors: Sequence[Vector] | None
    embedder_failed: bool


@dataclass(frozen=True, slots=True)
class Ready:
    """A file ready to be written; where it was the latest revision already, `made` is None and `same` is that one."""

    uri: str
    content_sha256: str
    byte_count: int
    space: str
    made: Made | None = None
    same: tuple[Document, Revision] | None = None


def ready(prepare: Prepare, request: AddRequest) -> Ready:
    """Read the file, cut its text, embed its passages.

    Raises:
        Rejected: it cannot be read; the message says which and why.
        Unavailable: too many files are being read.
    """
    content = _content(prepare, request)
    digest = rules.sha256(content)
    uri = request.uri or rules.CONTENT_URI + digest
    space = prepare.embedder.space.fingerprint
    with prepare.read(request.org) as tx:
        known = store.exact(tx, request.namespace, request.user_id, uri)
        latest = store.revision(tx, known.document_id, known.revision) if known else None
    if known is not None and latest is not None and _is_same(latest, digest, request.title):
        return Ready(uri, digest, len(content), space, same=(known, latest))
    kind = _format(request, content)
    extracted = _read(request, content, kind)
    parts = list(text.parts(extracted.segments))
    outline = rules.outline_by_line(extracted, parts)
    title = request.title or rules.title_of(extracted, parts, request.file_name, uri)
    passages = None
    if sum(len(part.text) for part in parts) <= AT_ONCE_CHARACTERS_MAX:
        passages = chunks.whole(parts, Manner(extracted.markdown, outline), AT_ONCE_MAX)
    vectors = None if passages is None else _embedded(prepare.embedder, title, passages)
    failed = passages is not None and vectors is None
    made = Made(kind, replace(extracted, segments=()), parts, title, outline, passages, vectors, failed)
    return Ready(uri, digest, len(content), space, made)


def _content(prepare: Prepare, request: AddRequest) -> bytes:
    sent = [name for name in ("text", "content_base64", "upload_id") if getattr(request, name)]
    if len(sent) != 1:
        raise Rejected("text: send one of text, content_base64 and upload_id", field="text")
    if request.text:
        return request.text.encode()
    if request.content_base64:
        return uploads.decoded(request.content_base64, "content_base64")
    owner = (prepare.caller.principal, request.namespace, request.user_id)
    with prepare.read(request.org) as tx:
        return uploads.content(tx, owner, request.upload_id)


def _format(request: AddRequest, content: bytes) -> Format:
    try:
        name = request.file_name or request.uri
        kind = formats.format_of(content, request.media_type, name)
    except UnknownFormat:
        known = ", ".join(formats.MEDIA_TYPES)
        raise Rejected(f"media_type: cannot be read; known are {known}", field="media_type") from None
    if request.text and kind == formats.PLAIN and not request.media_type and not formats.is_named(name):
        return formats.MARKDOWN
    return kind


def _read(request: AddRequest, content: bytes, kind: Format) -> Extracted:
    field = "text" if request.text else "content_base64" if request.content_base64 else "upload_id"
    try:
        return reading.read(content, kind)
    except Unreadable as error:
        name = rules.shown_name(request.file_name, request.uri)
        raise Rejected(f"{field}: {name} {error}", field=field) from None
    except TooBusy:
        raise Unavailable("too many files are being read; send it again", retry_after_s=RETRY_AFTER_S) from None


def _embedded(embedder: Embedder, title: str, passages: Sequence[Chunk]) -> list[Vector] | None:
    """The passages' vectors; None when the embedder gives none in time, and a job makes them later."""
    texts = [chunks.searchable(title, passage.headings, passage.text) for passage in passages]
    try:
        return embedder.embed_passages(texts, EMBED_TIMEOUT_S) if texts else []
    except EmbedderFailed:
        return None


def _is_same(latest: Revision, digest: str, title: str) -> bool:
    """Whether a revision has this content, and this title if one is given."""
    return latest.content_sha256 == digest and title in ("", latest.title)


def add(ctx: Context, request: AddRequest) -> AddAnswer:
    """Write the revision, unless it is the latest already."""
    given = prepared_as(ctx, Ready)
    store.lock(ctx.tx, request.namespace, request.user_id, given.uri)
    known = store.exact(ctx.tx, request.namespace, request.user_id, given.uri)
    latest = store.revision(ctx.tx, known.document_id, known.revision) if known else None
    same = given.same
    if known is not None and latest is not None and _is_same(latest, given.content_sha256, request.title):
        same = (known, latest)
    rules.check_reach(known or (same[0] if same else None), reader_of(ctx, request))
    if request.upload_id:
        uploads.drop(ctx.tx, (ctx.caller.principal, request.namespace, request.user_id), request.upload_id)
    if same is not None:
        # Where it was the latest when it was read, and is not any more, this call came before the one that changed it.
        document = _retagged(ctx, known, request) if known is not None else same[0]
        return AddAnswer.model_validate({**shown(document, same[1]), "changed": False})
    if given.made is None:
        raise TypeError("nothing was made of the file")
    document, revision = _written(ctx, request, given, given.made, known)
    degraded = [EMBEDDER] if given.made.embedder_failed else None
    return AddAnswer.model_validate({**shown(document, revision), "changed": True, "degraded": degraded})


def _retagged(ctx: Context, known: Document, request: AddRequest) -> Document:
    """The document, with the tags that were sent."""
    if request.tags is None or _tags(request.tags) == known.tags:
        return known
    version = ctx.tx.stamp()
    document = replace(known, tags=_tags(request.tags), version=version)
    store.put(ctx.tx, document)
    namespaces.touch(ctx.tx, document.namespace, version)
    return document


def _tags(tags: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted(set(tags)))


def _written(
    ctx: Context, request: AddRequest, given: Ready, made: Made, known: Document | None
) -> tuple[Document, Revision]:
    """The new revision, written with its text and its passages, or the job that makes them."""
    version = ctx.tx.stamp()
    document = Document(
        document_id=known.document_id if known else version,
        namespace=request.namespace,
        agent=request.agent,
        user_id=request.user_id,
        session_id=request.session_id,
        uri=given.uri,
        revision=known.revision + 1 if known else 1,
        version=version,
        title=made.title,
        tags=_tags(request.tags) if request.tags is not None else known.tags if known else (),
        state=rules.PENDING,
        reason="",
        cut_until=None,
        chunk_count=0,
        space="",
    )
    revision = _revision_of(document, request, given, made)
    store.put_revision(ctx.tx, revision, made.parts)
    if known is not None:
        indexing.forget(ctx.tx, known.document_id, document.revision)
    if made.passages is None:
        store.put(ctx.tx, document)
        indexing.begin(ctx.tx, document)
    else:
        document = indexing.put(ctx.tx, document, made.passages, made.vectors, given.space)
        indexing.complete(ctx.tx, document, given.space if made.vectors is not None else "")
    namespaces.touch(ctx.tx, document.namespace, version)
    return store.by_id(ctx.tx, document.document_id) or document, revision


def _revision_of(document: Document, request: AddRequest, given: Ready, made: Made) -> Revision:
    last = made.parts[-1] if made.parts else None
    return Revision(
        document_id=document.document_id,
        revision=document.revision,
        agent=request.agent,
        session_id=request.session_id,
        run_id=request.run_id,
        title=made.title,
        format=made.kind,
        file_name=request.file_name,
        content_sha256=given.content_sha256,
        byte_count=given.byte_count,
        character_count=sum(len(part.text) for part in made.parts),
        line_count=last.last_line if last else 0,
        page_count=made.extracted.page_count,
        markdown=made.extracted.markdown,
        outline=made.outline,
        created_at=document.version // 1000,
    )


ADD = Op(
    name="knowledge.add",
    summary="Add a document (text, Markdown, HTML, PDF, Word) to be found by passage; the same uri is a new revision.",
    takes=AddRequest,
    gives=AddAnswer,
    role=Role.WRITER,
    kind=Kind.IDEMPOTENT,
    run=add,
    example={"uri": "docs/guide.md", "text": "# Guide\n\nThe kettle is in the second cupboard."},
    prepare=ready,
    raises=(Denied, Unavailable),
    toolsets=frozenset({Toolset.ALL}),
)
