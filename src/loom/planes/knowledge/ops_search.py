"""knowledge.search, and how search.query asks this plane."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Final, Literal, cast

from pydantic import BaseModel, Field

from loom.access import namespaces
from loom.access.caller import Role
from loom.canonical import Json
from loom.errors import NotFound
from loom.ops.fields import EMBEDDER, TOP_K_MAX, Query, Tags
from loom.ops.spec import Answer, Context, Kind, Op, OpenRequest, Prepare, Toolset, prepared_as
from loom.planes.knowledge import rules, search
from loom.planes.knowledge.fields import DocumentId, ReadScopeField, Uri, named_document, reader_of
from loom.planes.knowledge.search import Hit, Quest
from loom.planes.leg import Leg, Question, Section
from loom.planes.meaning import Meaning, meaning_of
from loom.storage.interface import Transaction

PER_DOCUMENT: Final = 3
EXCERPT_CHARACTERS: Final = 600
WITHHELD_REASON: Final = "passages too far from the question were held back"


class SearchRequest(OpenRequest):
    """What knowledge.search takes."""

    query: Annotated[Query, Field(description="What to look for, in plain words. Nothing in it is syntax.")]
    top_k: Annotated[int, Field(ge=1, le=TOP_K_MAX, description="At most this many passages, 1 to 100.")] = 10
    per_document: Annotated[
        int, Field(ge=1, le=TOP_K_MAX, description="At most this many passages of one document.")
    ] = PER_DOCUMENT
    tags: Annotated[Tags | None, Field(description="Only documents that have all of these tags.")] = None
    document_id: Annotated[DocumentId, Field(description="Only passages of this document; empty for any.")] = ""
    uri: Annotated[Uri, Field(description="Only passages of the document with this uri; empty for any.")] = ""
    namespace_scope: Annotated[
        Literal["this", "all_mine"],
        Field(description="this: the named namespace alone. all_mine: the caller's other memory namespaces as well."),
    ] = "this"
    bodies: Annotated[
        Literal["full", "excerpt", "none"],
        Field(description="How much of each passage: all, its first 600 characters, or only where it stands."),
    ] = "full"
    read_scope: ReadScopeField = "namespace"


class Passage(BaseModel):
    """A passage that was found, and where it stands."""

    document_id: Annotated[str, Field(description="The document.")]
    revision: Annotated[int, Field(description="Its revision.")]
    uri: Annotated[str, Field(description="Where the document comes from.")]
    title: Annotated[str, Field(description="The document's title.")]
    headings: Annotated[list[str], Field(description="The headings that the passage stands under, outermost first.")]
    first_line: Annotated[int, Field(description="Its first line, as knowledge.get counts them.")]
    last_line: Annotated[int, Field(description="Its last line.")]
    first_page: Annotated[int | None, Field(description="The page it begins on; null for a file without pages.")]
    last_page: Annotated[int | None, Field(description="The page it ends on.")]
    passage: Annotated[int, Field(description="Its place among the document's passages, from 0.")]
    text: Annotated[str | None, Field(description="What it says; null when bodies is none.")]
    truncated: Annotated[bool, Field(description="Whether text is only its beginning.")]
    namespace: Annotated[str, Field(description="The namespace that holds the document.")]
    agent: Annotated[str, Field(description="The agent that added this revision.")]
    user_id: Annotated[str, Field(description="The end user it belongs to; '-' for none.")]
    tags: Annotated[list[str], Field(description="The document's tags.")]
    similarity: Annotated[
        float | None, Field(description="Cosine of question and passage; null while it has no vector.")
    ]
    rank_score: Annotated[float, Field(description="What it is ranked by, 0 to 1; of one answer only.")]
    below_floor: Annotated[bool, Field(description="Whether it is too far from the question for search.query.")]


class SearchAnswer(Answer):
    """What knowledge.search answers."""

    ABSENT_WHEN_NONE: ClassVar[frozenset[str]] = frozenset({"degraded"})

    results: Annotated[list[Passage], Field(description="The passages, best first.")]
    unfinished: Annotated[int, Field(description="Documents that are not indexed to the end, or have no vectors yet.")]
    namespaces_skipped: Annotated[
        list[str],
        Field(description="The caller's namespaces that were too many to read; name one to search it."),
    ]
    degraded: Annotated[
        list[str] | None, Field(description="embedder when only words were searched. Absent when nothing was lost.")
    ] = None


def ready(prepare: Prepare, request: SearchRequest) -> Meaning:
    """Embed the query; a search goes on without, by words."""
    return meaning_of(prepare, request.query)


def answer(ctx: Context, request: SearchRequest) -> SearchAnswer:
    """Search."""
    given = prepared_as(ctx, Meaning)
    reader = reader_of(ctx, request)
    document_id = 0
    if request.document_id or request.uri:
        document_id = named_document(ctx.tx, request, reader, request.document_id, request.uri).document_id
    spaces = namespaces.FanOut((request.namespace,), ())
    if request.namespace_scope == "all_mine" and not document_id:
        spaces = namespaces.fan_out(ctx.tx, ctx.caller, request.namespace, ctx.limits.fanout_namespaces_max)
    quest = Quest(
        namespaces=spaces.read,
        reader=reader,
        query=request.query,
        vector=given.vector,
        space=given.space,
        random_cosine=given.random_cosine,
        across_cosine=given.across_cosine,
        top_k=request.top_k,
        per_document=request.top_k if document_id else request.per_document,
        tags=tuple(request.tags or ()),
        document_id=document_id,
    )
    return SearchAnswer(
        results=[Passage.model_validate(shown(hit, request.bodies)) for hit in search.found(ctx.tx, quest)],
        unfinished=search.unfinished(ctx.tx, spaces.read, reader),
        namespaces_skipped=list(spaces.skipped),
        degraded=[EMBEDDER] if given.vector is None else None,
    )


def shown(hit: Hit, bodies: str) -> Mapping[str, Json]:
    """A hit as answers show it."""
    row, chunk = hit.row, hit.stored.chunk
    text = None if bodies == "none" else chunk.text if bodies != "excerpt" else chunk.text[:EXCERPT_CHARACTERS]
    return {
        "document_id": rules.shown_id(hit.stored.document_id),
        "revision": cast("int", row["revision"]),
        "uri": cast("str", row["uri"]),
        "title": hit.stored.title,
        "headings": list(chunk.headings),
        "first_line": chunk.first_line,
        "last_line": chunk.last_line,
        "first_page": chunk.first_page or None,
        "last_page": chunk.last_page or None,
        "passage": hit.stored.ordinal,
        "text": text,
        "truncated": text is not None and len(text) < len(chunk.text),
        "namespace": cast("str", row["namespace"]),
        "agent": cast("str", row["agent"]),
        "user_id": cast("str", row["user_id"]),
        "tags": cast("Json", search.tags_in(row)),
        "similarity": None if hit.cosine is None else round(hit.cosine, 4),
        "rank_score": round(hit.score, 4),
        "below_floor": hit.below_floor,
    }


def ask(tx: Transaction, question: Question) -> Section:
    """The knowledge section: the best passages, without those too far from the question unless all are explained."""
    quest = Quest(
        namespaces=question.namespaces,
        reader=question.reader,
        query=question.query,
        vector=question.vector,
        space=question.space,
        random_cosine=question.random_cosine,
        across_cosine=question.across_cosine,
        top_k=question.top_k,
        per_document=PER_DOCUMENT,
        tags=question.tags,
    )
    hits = search.found(tx, quest)
    near = hits if question.explain else [hit for hit in hits if not hit.below_floor]
    withheld = len(hits) - len(near)
    results = [shown(hit, question.bodies) for hit in near]
    reason = WITHHELD_REASON if withheld else ""
    return Section({"results": cast("Json", results)}, len(results), withheld, reason)


SEARCH = Op(
    name="knowledge.search",
    summary="Find passages of documents by meaning and by words, each with its headings and its lines or page.",
    takes=SearchRequest,
    gives=SearchAnswer,
    role=Role.VIEWER,
    kind=Kind.READ,
    run=answer,
    example={"query": "where is the kettle?"},
    prepare=ready,
    raises=(NotFound,),
    toolsets=frozenset({Toolset.ALL}),
    may_lag=True,
)

LEG = Leg("knowledge", ask, scoped=True)
