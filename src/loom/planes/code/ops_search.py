"""code.search."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from loom.access.caller import Role
from loom.errors import NotFound
from loom.ops.fields import EMBEDDER, TOP_K_MAX, Query
from loom.ops.spec import Answer, Context, Kind, Op, OpenRequest, Prepare, Toolset, prepared_as
from loom.planes.code import fields, search, symbols
from loom.planes.code.fields import Path, SymbolShown, plain
from loom.planes.code.languages import LANGUAGES
from loom.planes.code.search import Quest
from loom.planes.code.store import READY
from loom.planes.meaning import Meaning, meaning_of

VECTORS, INDEX = "vectors", "index"

KindWord = Literal[
    "function", "method", "class", "interface", "struct", "enum", "trait", "module", "type", "macro", "constant",
    "variable", "property", "prototype", "file",
]  # fmt: skip


def _known(languages: list[str]) -> list[str]:
    unknown = sorted({one.casefold() for one in languages} - set(LANGUAGES))
    if unknown:
        raise ValueError(f"knows {', '.join(LANGUAGES)}")
    return [one.casefold() for one in languages]


class SearchRequest(OpenRequest):
    """What code.search takes."""

    query: Annotated[Query, Field(description="A name, words that stand in the code, or what it does in plain words.")]
    top_k: Annotated[int, Field(ge=1, le=TOP_K_MAX, description="At most this many definitions, 1 to 100.")] = 10
    kinds: Annotated[
        Annotated[list[KindWord], Field(max_length=15)], Field(description="Only of these kinds; empty for any.")
    ] = Field(default_factory=list[KindWord])
    languages: Annotated[
        Annotated[list[Annotated[str, Field(max_length=32)]], Field(max_length=32)],
        AfterValidator(_known),
        Field(description="Only in these languages, for example python or csharp; empty for any."),
    ] = Field(default_factory=list)
    path_prefix: Annotated[
        Path,
        AfterValidator(plain),
        Field(description="Only in files whose paths begin so, for example src/; empty for any."),
    ] = ""


class Found(SymbolShown):
    """A definition that was found."""

    score: Annotated[float, Field(description="How well it fits; to be compared within one answer.")]
    matched: Annotated[list[str], Field(description="What found it: its name, its words, its meaning.")]


class SearchAnswer(Answer):
    """What code.search answers."""

    results: Annotated[list[Found], Field(description="Definitions, best first; code.symbol gives one whole.")]
    degraded: Annotated[
        list[str],
        Field(
            description="What the search had to do without: embedder, no meaning at all; vectors, not every "
            "definition is embedded yet; index, not every file is indexed yet. Mostly empty."
        ),
    ]
    commit_id: Annotated[str, Field(description="The commit that is indexed; empty when it is not known.")]


def embedded(prepare: Prepare, request: SearchRequest) -> Meaning:
    """Embed the query; a search goes on without, by words."""
    return meaning_of(prepare, request.query)


def answer(ctx: Context, request: SearchRequest) -> SearchAnswer:
    """The best definitions."""
    repository = fields.indexed(ctx.tx, request.namespace)
    ready = prepared_as(ctx, Meaning)
    quest = Quest(
        request.namespace,
        request.query,
        ready.vector if repository.vectors else None,
        ready.space,
        ready.random_cosine,
        request.top_k,
        tuple(request.kinds),
        tuple(request.languages),
        request.path_prefix,
    )
    degraded = [INDEX] if repository.state != READY else []
    if repository.vectors and ready.vector is None:
        degraded.append(EMBEDDER)
    elif repository.vectors and _is_behind(ctx, request.namespace, ready.space):
        degraded.append(VECTORS)
    results = [
        Found(**fields.shown(hit.symbol).model_dump(), score=hit.score, matched=list(hit.matched))
        for hit in search.found(ctx.tx, quest)
    ]
    return SearchAnswer(results=results, degraded=degraded, commit_id=repository.commit_id)


def _is_behind(ctx: Context, namespace: str, space: str) -> bool:
    return ctx.tx.row(symbols.ANY_UNEMBEDDED, namespace=namespace, space=space) is not None


SEARCH_OP = Op(
    name="code.search",
    summary="Find definitions in an indexed repository by name, by words or by what they do.",
    takes=SearchRequest,
    gives=SearchAnswer,
    role=Role.VIEWER,
    kind=Kind.READ,
    run=answer,
    example={"namespace": "project-x", "query": "where is the session token checked?"},
    prepare=embedded,
    raises=(NotFound,),
    toolsets=frozenset({Toolset.DEFAULT, Toolset.ALL}),
    may_lag=True,
)
