"""conversation.search, and how search.query asks this plane."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, cast

from pydantic import BaseModel, ConfigDict, Field

from loom.access import namespaces
from loom.access.caller import Role
from loom.access.namespaces import FanOut
from loom.canonical import Json, measured
from loom.errors import Rejected
from loom.ops import handles
from loom.ops.fields import (
    EMBEDDER,
    HANDLE_LENGTH_MAX,
    SHA256_LENGTH,
    TOP_K_MAX,
    Instant,
    Query,
    instant,
    microseconds_or_none,
)
from loom.ops.spec import Answer, Context, Kind, Op, OpenRequest, Prepare, Toolset, prepared_as
from loom.planes.conversation import excerpts, fields, rules, search, store
from loom.planes.conversation.excerpts import Room
from loom.planes.conversation.fields import ROLE_LENGTH_MAX, ReadScopeField, SessionName
from loom.planes.conversation.search import Filter, Quest, Ranking
from loom.planes.conversation.store import Session, Turn
from loom.planes.leg import Leg, Question, Section
from loom.planes.meaning import Meaning, meaning_of
from loom.retrieval import calibrate, tokens
from loom.retrieval.calibrate import Calibrated, Standing
from loom.retrieval.fuse import MEANING, Fused
from loom.storage.indexes import TextQuery
from loom.storage.interface import Transaction

ROLES_MAX = 32
NEIGHBOURS_MAX = 5
NEIGHBOURS_DEFAULT = 1
SPACES_MAX = 64
"""Namespaces that one search reads, each with its own candidates."""

JUDGED_CHARACTERS_MAX = 20_000
"""Characters of a turn that count as evidence for it."""

MEANING_LOST = "meaning"


class SearchRequest(OpenRequest):
    """What conversation.search takes."""

    query: Annotated[Query, Field(description="What to look for, in plain words. Nothing in it is syntax.")]
    top_k: Annotated[int, Field(ge=1, le=TOP_K_MAX, description="At most this many hits, 1 to 100.")] = 10
    session: Annotated[
        SessionName, Field(description="Only turns of the conversation of this name; empty for every conversation.")
    ] = ""
    roles: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=ROLE_LENGTH_MAX)]],
        Field(max_length=ROLES_MAX, description="Only turns of these roles; empty for any."),
    ] = Field(default_factory=list)
    since: Annotated[Instant | None, Field(description="Only turns said at or after this time.")] = None
    until: Annotated[Instant | None, Field(description="Only turns said before this time.")] = None
    neighbours: Annotated[
        int, Field(ge=0, le=NEIGHBOURS_MAX, description="Turns to show before and after each hit, 0 to 5.")
    ] = NEIGHBOURS_DEFAULT
    namespace_scope: Annotated[
        Literal["this", "all_mine"],
        Field(description="this: the named namespace alone. all_mine: the caller's other memory namespaces as well."),
    ] = "this"
    bodies: Annotated[
        Literal["excerpt", "full", "none"],
        Field(description="excerpt: the part of a turn that fits best; full: the whole turn; none: no text."),
    ] = "excerpt"
    explain: Annotated[bool, Field(description="Show where each hit's rank comes from.")] = False
    page: Annotated[
        Annotated[str, Field(max_length=HANDLE_LENGTH_MAX)],
        Field(description="next_page of an earlier answer, sent with the same question; empty to begin."),
    ] = ""
    read_scope: ReadScopeField = "namespace"


class Neighbour(BaseModel):
    """A turn beside a hit."""

    model_config = ConfigDict(frozen=True)

    turn_id: Annotated[str, Field(description="Names the turn for good.")]
    seq: Annotated[int, Field(description="Its number in the conversation.")]
    role: Annotated[str, Field(description="Its role.")]
    speaker: Annotated[str, Field(description="Who spoke, by name; empty when it came without one.")]
    text: Annotated[str, Field(description="The beginning of what was said.")]


class Hit(BaseModel):
    """A turn that was found."""

    model_config = ConfigDict(frozen=True)

    turn_id: Annotated[str, Field(description="Names the turn for good; conversation.get shows what is around it.")]
    message_id: Annotated[str, Field(description="The message's own id.")]
    session: Annotated[str, Field(description="The conversation.")]
    title: Annotated[str, Field(description="What the conversation is called.")]
    seq: Annotated[int, Field(description="The turn's number in the conversation.")]
    role: Annotated[str, Field(description="user, assistant, system, tool or another word.")]
    speaker: Annotated[str, Field(description="Who spoke, by name; empty when it came without one.")]
    said_at: Annotated[Instant, Field(description="When it was said.")]
    agent: Annotated[str, Field(description="The agent that appended it.")]
    user_id: Annotated[str, Field(description="Whose conversation it is; '-' for none.")]
    namespace: Annotated[str, Field(description="The namespace that holds it.")]
    spoken: Annotated[bool, Field(description="False when only thoughts, tool calls or results hold what was asked.")]
    text: Annotated[str | None, Field(description="What was said, or called, as far as bodies says; null with none.")]
    truncated: Annotated[bool, Field(description="Whether text is a part of it.")]
    before: Annotated[
        list[Neighbour], Field(description="What was said before it, in order, where no better hit shows it.")
    ]
    after: Annotated[list[Neighbour], Field(description="What was said after it, in order, likewise.")]
    similarity: Annotated[float | None, Field(description="Cosine of query and turn; null when it has no vector.")]
    rank_score: Annotated[float, Field(description="What it ranks by, 0 to 1, comparable within one answer.")]
    probability: Annotated[float, Field(description="How likely it answers the question, 0 to 1, calibrated.")]
    below_threshold: Annotated[bool, Field(description="Whether that is too little for it to be worth reading.")]
    score_components: Annotated[
        dict[str, float | None] | None, Field(description="Where its rank comes from, with explain; else null.")
    ] = None


class SearchAnswer(Answer):
    """What conversation.search answers."""

    ABSENT_WHEN_NONE: ClassVar[frozenset[str]] = frozenset()

    results: Annotated[list[Hit], Field(description="The hits, best first.")]
    retrieval_confidence: Annotated[float, Field(description="How likely the best hit answers, 0 to 1.")]
    abstain: Annotated[bool, Field(description="Whether to say that nothing is known rather than use the hits.")]
    abstain_reason: Annotated[str, Field(description="Why; empty when not abstaining.")]
    next_page: Annotated[str, Field(description="Send it as page with the same question to read on; empty at the end.")]
    candidates_total: Annotated[int, Field(description="How many turns were ranked, on all pages together.")]
    degraded: Annotated[list[str], Field(description="Parts that had to be left out: embedder, meaning.")]
    namespaces_searched: Annotated[list[str], Field(description="The namespaces that were read.")]
    namespaces_skipped: Annotated[list[str], Field(description="Namespaces of the caller that were too many to read.")]


@dataclass(frozen=True, slots=True)
class Show:
    """How hits are shown."""

    bodies: str
    neighbours: int
    explain: bool


class Page(BaseModel):
    """A place in a search: of which question, how many hits its first page had, and how far it was read."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    asked: Annotated[str, Field(max_length=SHA256_LENGTH)]
    depth: Annotated[int, Field(ge=1, le=TOP_K_MAX)]
    offset: Annotated[int, Field(ge=0, le=search.POOL_MAX * SPACES_MAX)]


@dataclass(frozen=True, slots=True)
class Ready:
    """What a search needs before its transaction."""

    page: Page
    meaning: Meaning


def ready_to_search(prepare: Prepare, request: SearchRequest) -> Ready:
    """Embed the query; a search goes on without, by words."""
    if request.since is not None and request.until is not None and request.since >= request.until:
        raise Rejected("until: is not after since", field="until")
    return Ready(page_of(request), meaning_of(prepare, request.query))


def page_of(request: SearchRequest) -> Page:
    """The page that is asked for.

    Raises:
        Rejected: its handle is not one, or is of another question.
    """
    asked = asked_of(request)
    if not request.page:
        return Page(asked=asked, depth=request.top_k, offset=0)
    page = handles.unpacked(Page, request.page, "page")
    if page.asked != asked:
        raise Rejected("page: belongs to another question; send all that it came with", field="page")
    return page


def asked_of(request: SearchRequest) -> str:
    """A hash of what is asked; how it is shown may change from page to page."""
    asked = request.model_dump(mode="json", include={"query", "session", "roles", "since", "until", "namespace_scope"})
    return measured(cast("Json", asked | {"namespace": request.namespace})).sha256


def answer(ctx: Context, request: SearchRequest) -> SearchAnswer:
    """The best turns."""
    ready = prepared_as(ctx, Ready)
    spaces = FanOut((request.namespace,), ())
    if request.namespace_scope == "all_mine":
        spaces = namespaces.fan_out(ctx.tx, ctx.caller, request.namespace, ctx.limits.fanout_namespaces_max)
    since, until = microseconds_or_none(request.since), microseconds_or_none(request.until)
    where = Filter(
        spaces.read,
        fields.reader_of(ctx, request),
        request.session,
        tuple(request.roles),
        search.EARLIEST_US if since is None else since,
        search.LATEST_US if until is None else until,
    )
    page, meaning = ready.page, ready.meaning
    quest = quest_of(where, request.query, meaning, page.depth)
    ranking = search.ranked(ctx.tx, quest)
    end = page.offset + request.top_k
    judged = hits(ctx.tx, quest, ranking, (page.offset, end), Show(request.bodies, request.neighbours, request.explain))
    worth = calibrate.confidence([one.worth for one in judged])
    more = len(ranking.order) > end
    return SearchAnswer(
        results=[one.hit for one in judged],
        retrieval_confidence=round(worth.retrieval_confidence, 4),
        abstain=worth.abstain,
        abstain_reason=worth.reason,
        next_page=handles.packed(page.model_copy(update={"offset": end})) if more else "",
        candidates_total=len(ranking.order),
        degraded=degraded(quest, ranking),
        namespaces_searched=list(spaces.read),
        namespaces_skipped=list(spaces.skipped),
    )


def quest_of(where: Filter, query: str, meaning: Meaning, top_k: int) -> Quest:
    """A question as a search."""
    return Quest(where, query, meaning.vector, meaning.space, meaning.random_cosine, meaning.question_cosine, top_k)


def degraded(quest: Quest, ranking: Ranking) -> list[str]:
    """What the search had to do without."""
    if quest.vector is None:
        return [EMBEDDER]
    return [MEANING_LOST] if ranking.meaning_lost else []


@dataclass(frozen=True, slots=True)
class Judged:
    """A hit as it is shown, and what it is worth."""

    hit: Hit
    worth: Calibrated


def hits(tx: Transaction, quest: Quest, ranking: Ranking, page: tuple[int, int], show: Show) -> list[Judged]:
    """The hits of a page (its first place and its end), each with what was said beside it that none above it shows."""
    order = ranking.order[page[0] : page[1]]
    turns = store.by_ids(tx, [one.item_id for one in order])
    sessions = store.sessions(tx, {turn.session_key for turn in turns.values()})
    shown = set(turns)
    room = Room()
    among = calibrate.standing(ranking.order)
    found: list[Judged] = []
    for one in order:
        turn = turns[one.item_id]
        near = store.spoken_near(tx, turn, show.neighbours) if show.neighbours else []
        near = [other for other in near if other.item_id not in shown]
        shown |= {other.item_id for other in near}
        worth = worth_of(one, turn, quest, ranking, among)
        shown_as = hit((one, worth), (sessions[turn.session_key], turn), near, ranking.query, (show, room))
        found.append(Judged(shown_as, worth))
    return found


def cosine_of(one: Fused) -> float | None:
    """How near the turn is to the question; None when that is not known."""
    return one.raw(MEANING)


def worth_of(one: Fused, turn: Turn, quest: Quest, ranking: Ranking, among: Standing) -> Calibrated:
    """How likely a turn answers. What memories are judged by was fitted on turns of conversations."""
    text = rules.words_text(turn.speaker, turn.said or turn.aside, turn.said_at)[:JUDGED_CHARACTERS_MAX]
    stems = tokens.stems_among(text, ranking.query.stems)
    return calibrate.calibrated(calibrate.evidence(ranking.query, stems, one, among, quest.question_cosine))


def hit(
    judged: tuple[Fused, Calibrated],
    where: tuple[Session, Turn],
    near: Sequence[Turn],
    query: TextQuery,
    how: tuple[Show, Room],
) -> Hit:
    """One hit as it is shown."""
    one, worth = judged
    session, turn = where
    show, room = how
    text, truncated = (None, False) if show.bodies == "none" else room.text_of(turn, query, show.bodies)
    cosine = cosine_of(one)
    return Hit(
        turn_id=rules.turn_id_of(turn.item_id),
        message_id=turn.message_id,
        session=session.session_id,
        title=session.title,
        seq=turn.seq,
        role=turn.role,
        speaker=turn.speaker,
        said_at=instant(turn.said_at),
        agent=turn.agent,
        user_id=session.user_id,
        namespace=session.namespace,
        spoken=turn.spoken,
        text=text,
        truncated=truncated,
        before=beside([other for other in near if other.seq < turn.seq], show.bodies),
        after=beside([other for other in near if other.seq > turn.seq], show.bodies),
        similarity=None if cosine is None else round(cosine, 4),
        rank_score=round(one.score, 6),
        probability=round(worth.probability, 4),
        below_threshold=worth.below_threshold,
        score_components=components(one) if show.explain else None,
    )


def beside(turns: Collection[Turn], bodies: str) -> list[Neighbour]:
    """Neighbours as they are shown."""
    return [
        Neighbour(
            turn_id=rules.turn_id_of(turn.item_id),
            seq=turn.seq,
            role=turn.role,
            speaker=turn.speaker,
            text="" if bodies == "none" else turn.said[: excerpts.NEIGHBOUR_CHARACTERS],
        )
        for turn in turns
    ]


def components(one: Fused) -> dict[str, float | None]:
    """Where a hit's rank comes from: shares of the legs and of its neighbours, which sum to it."""
    numbers: dict[str, float | None] = {}
    for leg, part in sorted(one.components.items()):
        numbers[f"{leg}_raw"] = part.raw
        numbers[f"{leg}_share"] = part.normalised * part.weight
    return {name: None if number is None else round(number, 6) for name, number in numbers.items()}


def ask(tx: Transaction, question: Question) -> Section:
    """The conversations section: the best turns of the question's namespaces."""
    where = Filter(question.namespaces, question.reader)
    meaning = Meaning(
        question.vector, question.space, question.random_cosine, question.across_cosine, question.question_cosine
    )
    quest = quest_of(where, question.query, meaning, question.top_k)
    ranking = search.ranked(tx, quest)
    bodies = question.bodies if question.bodies in ("none", "full") else "excerpt"
    found = hits(tx, quest, ranking, (0, question.top_k), Show(bodies, NEIGHBOURS_DEFAULT, question.explain))
    lost = [f"conversations:{part}" for part in degraded(quest, ranking) if part == MEANING_LOST]
    body: Mapping[str, Json] = {"results": cast("Json", [one.hit.model_dump(mode="json") for one in found])}
    return Section(body=body, hits=len(found), degraded=tuple(lost))


SEARCH = Op(
    name="conversation.search",
    summary="Find what was said in earlier conversations, by meaning and by words, with the turns around it.",
    takes=SearchRequest,
    gives=SearchAnswer,
    role=Role.VIEWER,
    kind=Kind.READ,
    run=answer,
    example={"query": "which database did we choose?"},
    prepare=ready_to_search,
    toolsets=frozenset({Toolset.DEFAULT, Toolset.ALL}),
    may_lag=True,
)

LEG = Leg("conversations", ask)
