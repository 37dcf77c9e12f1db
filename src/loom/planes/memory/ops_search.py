"""memory.search and memory.next_page, and how search.query asks this plane."""

from dataclasses import dataclass, replace
from typing import Annotated, cast

from pydantic import Field

from loom.access import namespaces
from loom.access.caller import Caller, ReadScope, Role
from loom.access.namespaces import FanOut
from loom.canonical import Json
from loom.errors import Rejected
from loom.ledger.rules import Reader
from loom.ops import handles
from loom.ops.fields import HANDLE_LENGTH_MAX, TOP_K_MAX, NamespaceScope, Query, Tags
from loom.ops.spec import Context, Kind, Op, OpenRequest, Prepare, Toolset, prepared_as
from loom.planes.leg import Leg, Question, Section
from loom.planes.meaning import Meaning, meaning_of
from loom.planes.memory import answers, rereading, search
from loom.planes.memory.answers import Page, SearchAnswer
from loom.planes.memory.fields import MemoryTypes, ReadScopeField
from loom.planes.memory.ops_list import Agents
from loom.planes.memory.search import Quest
from loom.planes.memory.select import Filter
from loom.retrieval.budget import Bodies
from loom.retrieval.reading import NOTHING_READ, Reading
from loom.retrieval.recipes import RECIPES, RecipeName
from loom.storage.interface import Transaction

WITHHELD_REASON = "memories unlikely to answer were held back"


class SearchRequest(OpenRequest):
    """What memory.search takes."""

    query: Annotated[Query, Field(description="What to look for, in plain words. Nothing in it is syntax.")]
    top_k: Annotated[int, Field(ge=1, le=TOP_K_MAX, description="At most this many hits, 1 to 100.")] = 10
    tags: Annotated[Tags | None, Field(description="Only memories that have all of these tags.")] = None
    memory_types: Annotated[MemoryTypes | None, Field(description="Only memories of these types; null for any.")] = None
    agents: Annotated[Agents | None, Field(description="Only memories these agents wrote; null for everybody's.")] = (
        None
    )
    namespace_scope: NamespaceScope = "this"
    recipe: Annotated[
        RecipeName,
        Field(
            description="How to rank: fast, balanced (the default), quality, verbatim (exact words and phrases first), "
            "code, temporal (dates in the query lead), graph."
        ),
    ] = ""
    bodies: Annotated[
        Bodies,
        Field(
            description="What each hit carries: excerpt, the first 200 characters (a decision or constraint whole); "
            "full, the value; unit, whole values as far as a budget goes; none, keys and scores."
        ),
    ] = "excerpt"
    explain: Annotated[bool, Field(description="Show where each hit's rank comes from.")] = False
    read_scope: ReadScopeField = "namespace"


class NextPageRequest(OpenRequest):
    """What memory.next_page takes."""

    page: Annotated[
        str,
        Field(min_length=1, max_length=HANDLE_LENGTH_MAX, description="next_page of the answer before, as it is."),
    ]
    read_scope: ReadScopeField = "namespace"


@dataclass(frozen=True, slots=True)
class Ready:
    """What a search needs before its transaction."""

    page: Page
    meaning: Meaning
    read_again: Reading = NOTHING_READ


def embedded(prepare: Prepare, page: Page) -> Ready:
    """Embed the page's query; a search goes on without, by words."""
    return Ready(page, meaning_of(prepare, page.query))


def read_again(prepare: Prepare, request: SearchRequest | NextPageRequest, ready: Ready) -> Ready:
    """With what a cross-encoder says of the best candidates, where the recipe wants it."""
    if not RECIPES[ready.page.recipe].read_again_max:
        return ready

    def quest_in(tx: Transaction) -> Quest:
        spaces = spaces_of(tx, prepare.caller, request.namespace, ready.page, prepare.limits.fanout_namespaces_max)
        return quest_for(ready, spaces, request, prepare.scope, prepare.now_us)

    return replace(ready, read_again=rereading.read_again(prepare, request.org, quest_in))


def ready_to_search(prepare: Prepare, request: SearchRequest) -> Ready:
    """The first page."""
    page = Page(
        query=request.query,
        top_k=request.top_k,
        offset=0,
        pool=search.pool_of(RECIPES[request.recipe], request.top_k),
        tags=tuple(request.tags or ()),
        memory_types=tuple(request.memory_types or ()),
        agents=None if request.agents is None else tuple(request.agents),
        recipe=request.recipe,
        bodies=request.bodies,
        explain=request.explain,
        scope=int(prepare.scope),
        namespace_scope=request.namespace_scope,
    )
    return read_again(prepare, request, embedded(prepare, page))


def ready_to_go_on(prepare: Prepare, request: NextPageRequest) -> Ready:
    """The page that the handle names."""
    return read_again(prepare, request, embedded(prepare, handles.unpacked(Page, request.page, "page")))


def answer(ctx: Context, request: SearchRequest | NextPageRequest) -> SearchAnswer:
    """One page of hits."""
    ready = prepared_as(ctx, Ready)
    page = ready.page
    spaces = spaces_of(ctx.tx, ctx.caller, request.namespace, page, ctx.limits.fanout_namespaces_max)
    quest = quest_for(ready, spaces, request, ctx.scope, ctx.now_us)
    ranking = search.ranked(ctx.tx, quest)
    return answers.answered(quest, page, ranking, answers.judged(ctx.tx, quest, page, ranking), spaces.skipped)


def spaces_of(tx: Transaction, caller: Caller, namespace: str, page: Page, most: int) -> FanOut:
    """The namespaces to read."""
    if page.namespace_scope == "all_mine":
        return namespaces.fan_out(tx, caller, namespace, most)
    return FanOut((namespace,), ())


def quest_for(
    ready: Ready, spaces: FanOut, request: SearchRequest | NextPageRequest, scope: ReadScope, now_us: int
) -> Quest:
    """The page as a search. A handle can narrow what the caller may see, never widen it."""
    reader = Reader(min(scope, ReadScope(ready.page.scope)), request.user_id, request.session_id)
    where = filter_of(ready.page, spaces.read, reader, now_us)
    quest = quest_of(ready.page, where, ready.meaning)
    return replace(quest, read_again=ready.read_again)


def filter_of(page: Page, spaces: tuple[str, ...], reader: Reader, now_us: int) -> Filter:
    """What the page may show."""
    return Filter(spaces, reader, now_us, page.tags, page.memory_types, page.agents)


def quest_of(page: Page, where: Filter, meaning: Meaning) -> Quest:
    """The page as a search."""
    recipe = RECIPES[page.recipe]
    return Quest(
        where,
        page.query,
        meaning.vector,
        meaning.space,
        meaning.random_cosine,
        meaning.question_cosine,
        recipe,
        page.pool,
    )


def page_of(question: Question) -> Page:
    """The page that search.query asks for.

    A handle says what was ranked and how far it was read; how many hits are shown, and
    how much of each, is the request's own word.

    Raises:
        Rejected: the handle is not one, or is of another query.
    """
    if question.page:
        page = handles.unpacked(Page, question.page, "page")
        if page.query != question.query:
            raise Rejected("page: belongs to another query; send the query it came with", field="page")
        shown = {"top_k": question.top_k, "bodies": question.bodies, "explain": question.explain}
        return page.model_copy(update=shown)
    recipe = cast("RecipeName", question.recipe)
    alone = question.namespaces == (question.namespace,)
    return Page(
        query=question.query,
        top_k=question.top_k,
        offset=0,
        pool=search.pool_of(RECIPES[recipe], question.top_k),
        tags=question.tags,
        recipe=recipe,
        bodies=cast("Bodies", question.bodies),
        explain=question.explain,
        scope=int(question.reader.scope),
        namespace_scope="this" if alone else "all_mine",
    )


def question_quest(page: Page, question: Question) -> Quest:
    """The search that a question of search.query makes."""
    reader = replace(question.reader, scope=min(question.reader.scope, ReadScope(page.scope)))
    # The page of a search of one namespace goes on in that one, though the request's default is all.
    spaces = question.namespaces if page.namespace_scope == "all_mine" else (question.namespace,)
    where = filter_of(page, spaces, reader, question.now_us)
    quest = quest_of(page, where, _meaning(question))
    return replace(quest, read_again=question.read_again)


def _meaning(question: Question) -> Meaning:
    return Meaning(
        question.vector, question.space, question.random_cosine, question.across_cosine, question.question_cosine
    )


def refined(prepare: Prepare, question: Question) -> Question:
    """The question with what a cross-encoder says of the best candidates, where the recipe wants it."""
    page = page_of(question)
    if not RECIPES[page.recipe].read_again_max:
        return question
    quest = question_quest(page, question)
    return replace(question, read_again=rereading.read_again(prepare, question.org, lambda _: quest, question.until_s))


def ask(tx: Transaction, question: Question) -> Section:
    """The memory section: likely hits, or every hit when none is likely or all are to be explained."""
    page = page_of(question)
    quest = question_quest(page, question)
    ranking = search.ranked(tx, quest)
    found = answers.judged(tx, quest, page, ranking)
    likely = [one for one in found if not one.worth.below_threshold]
    shown = found if question.explain or not likely else likely
    body = answers.answered(quest, page, ranking, shown, ()).model_dump(mode="json")
    withheld = len(found) - len(shown)
    return Section(
        body=cast("dict[str, Json]", body),
        hits=len(shown),
        withheld=withheld,
        reason=WITHHELD_REASON if withheld else "",
        degraded=tuple(cast("list[str]", body["degraded"])),
    )


SEARCH = Op(
    name="memory.search",
    summary="Find memories by meaning and by words, with how likely each answers and a block ready for a prompt.",
    takes=SearchRequest,
    gives=SearchAnswer,
    role=Role.VIEWER,
    kind=Kind.READ,
    run=answer,
    example={"query": "which database does the project use?"},
    prepare=ready_to_search,
    toolsets=frozenset({Toolset.DEFAULT, Toolset.ALL}),
    may_lag=True,
)

NEXT_PAGE = Op(
    name="memory.next_page",
    summary="Read the next page of a memory.search or search.query, by the handle its answer carried.",
    takes=NextPageRequest,
    gives=SearchAnswer,
    role=Role.VIEWER,
    kind=Kind.READ,
    run=answer,
    example={"page": handles.packed(Page(query="which database does the project use?", top_k=10, offset=10, pool=100))},
    prepare=ready_to_go_on,
    may_lag=True,
)

LEG = Leg("memory", ask, refined=refined)
