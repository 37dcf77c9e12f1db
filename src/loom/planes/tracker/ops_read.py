"""tracker.get, tracker.search and tracker.duplicate_check."""

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from loom.access.caller import Role
from loom.errors import Rejected
from loom.ops.fields import EMBEDDER, TOP_K_MAX, Instant, Query, microseconds_or_none, not_blank
from loom.ops.spec import Answer, Context, Kind, Op, OpenRequest, Prepare, Toolset, prepared_as
from loom.planes.meaning import meaning_of
from loom.planes.tracker import checking, rules, search, store, traits, writing
from loom.planes.tracker.checking import Check, Checked
from loom.planes.tracker.fields import (
    BODY_SHOWN_CHARACTERS,
    FRAMES_TOLD,
    Body,
    Frames,
    Name,
    Names,
    Number,
    ReadScopeField,
    ShownIssue,
    Title,
    clipped,
    reader_of,
    shown,
)
from loom.planes.tracker.search import Quest
from loom.planes.tracker.store import EVERY_TIME, NO_NUMBER, Filter
from loom.planes.tracker.traits import Traits


class GetRequest(OpenRequest):
    """What tracker.get takes."""

    number: Annotated[Number, Field(description="The issue's number in its tracker.")]
    read_scope: ReadScopeField = "namespace"


class GetAnswer(Answer):
    """What tracker.get answers."""

    found: Annotated[bool, Field(description="Whether there is such an issue.")]
    issue: Annotated[ShownIssue | None, Field(description="The issue; null when there is none.")] = None
    body: Annotated[str, Field(description="The whole report.")] = ""
    frames: Annotated[list[str], Field(description="Its stack frames, as function (file).")] = Field(
        default_factory=list[str]
    )
    exceptions: Annotated[list[str], Field(description="Exceptions, signals and error numbers it names.")] = Field(
        default_factory=list[str]
    )


class SearchRequest(OpenRequest):
    """What tracker.search takes."""

    query: Annotated[
        Query,
        Field(description="Words, an error message, a stack trace or #number; its first 10,000 characters count."),
    ]
    top_k: Annotated[int, Field(ge=1, le=TOP_K_MAX, description="At most this many issues.")] = 10
    state: Annotated[Literal["", "open", "closed"], Field(description="Only of this state; empty for either.")] = ""
    component: Annotated[Name, Field(description="Only of this component; empty for any.")] = ""
    as_of: Annotated[Instant | None, Field(description="Leave out issues that were reported later.")] = None
    read_scope: ReadScopeField = "namespace"


class Hit(BaseModel):
    """An issue that was found."""

    model_config = ConfigDict(frozen=True)

    issue: Annotated[ShownIssue, Field(description="The issue.")]
    excerpt: Annotated[str, Field(description="The first 300 characters of its body.")]
    score: Annotated[float, Field(description="How well it fits against the others of this answer; higher is better.")]
    similarity: Annotated[float | None, Field(description="How near its meaning is, 0 to 1; null without a vector.")]


class SearchAnswer(Answer):
    """What tracker.search answers."""

    results: Annotated[list[Hit], Field(description="The issues, best first.")]
    degraded: Annotated[list[str], Field(description="Parts the search had to do without; mostly empty.")]


class CheckRequest(OpenRequest):
    """What tracker.duplicate_check takes."""

    title: Annotated[Title, AfterValidator(not_blank), Field(description="The new report's title.")]
    body: Annotated[Body, Field(description="The report, with its stack trace as it is.")] = ""
    frames: Annotated[Frames | None, Field(description=FRAMES_TOLD)] = None
    component: Annotated[Name, Field(description="The part of the program it is about.")] = ""
    version: Annotated[Name, Field(description="The version it was seen in.")] = ""
    paths: Annotated[Names | None, Field(description="Files it is about; read from the body when left out.")] = None
    symbols: Annotated[
        Names | None, Field(description="Functions and classes it is about; read from the body when left out.")
    ] = None
    mentions: Annotated[
        Names | None, Field(description="Issues it mentions: 12, #12, ABC-12; read from the body when left out.")
    ] = None
    number: Annotated[
        Number | None,
        Field(description="Its own number when it is in the tracker already: left out of its candidates."),
    ] = None
    as_of: Annotated[Instant | None, Field(description="Leave out issues that were reported later.")] = None
    top_k: Annotated[int, Field(ge=1, le=checking.CANDIDATES_MAX, description="At most this many candidates.")] = 5
    read_scope: ReadScopeField = "namespace"


class CheckAnswer(Answer):
    """What tracker.duplicate_check answers."""

    ABSENT_WHEN_NONE: ClassVar[frozenset[str]] = frozenset()

    verdict: Annotated[
        Literal["duplicate", "related", "new"],
        Field(description="duplicate: the first candidate is most likely the same defect. related: look at them. new."),
    ]
    confidence: Annotated[float, Field(description="The first candidate's probability of being the same defect; 0..1.")]
    candidates: Annotated[list[Check], Field(description="Issues it may repeat, the likeliest first.")]
    compared: Annotated[int, Field(description="How many issues the namespace has to compare with.")]
    read: Annotated[checking.Named, Field(description="What was read from the report, and compared.")]
    degraded: Annotated[list[str], Field(description="Parts the check had to do without; mostly empty.")]


@dataclass(frozen=True, slots=True)
class Ready:
    """A search before its transaction."""

    quest: Quest


def get(ctx: Context, request: GetRequest) -> GetAnswer:
    """The issue, whole."""
    issue = store.read(ctx.tx, request.namespace, request.number, reader_of(ctx, request))
    if issue is None:
        return GetAnswer(found=False)
    content = issue.content
    return GetAnswer(
        found=True,
        issue=shown(issue),
        body=content.body,
        frames=clipped(content.traits.frames),
        exceptions=list(content.traits.exceptions),
    )


def ready_to_search(prepare: Prepare, request: SearchRequest) -> Ready:
    """Embed the query."""
    title, _, body = request.query.partition("\n")
    as_of = microseconds_or_none(request.as_of)
    where = Filter(
        namespace=request.namespace,
        reader=reader_of(prepare, request),
        as_of=EVERY_TIME if as_of is None else as_of,
        state=request.state,
        component=request.component,
    )
    return Ready(quest_of(prepare, where, (title, body), traits.parsed(f"{title}\n{body}")))


def quest_of(prepare: Prepare, where: Filter, text: tuple[str, str], named: Traits) -> Quest:
    """What is looked for, with the vector of its text; `text` is its title and body."""
    meaning = meaning_of(prepare, rules.embeddable(*text))
    return Quest(where, *text, named, meaning.vector, meaning.space, meaning.random_cosine)


def find(ctx: Context, request: SearchRequest) -> SearchAnswer:
    """The best issues."""
    quest = prepared_as(ctx, Ready).quest
    ranking = search.ranked(ctx.tx, quest)
    best = ranking.order[: request.top_k]
    issues = store.by_ids(ctx.tx, quest.where, [one.item_id for one in best])
    hits = [
        Hit(
            issue=shown(issue),
            excerpt=issue.content.body[:BODY_SHOWN_CHARACTERS],
            score=round(one.score, 4),
            similarity=None if one.scores.meaning is None else round(one.scores.meaning, 4),
        )
        for one in best
        if (issue := issues.get(one.item_id)) is not None
    ]
    return SearchAnswer(results=hits, degraded=degraded_of(quest, meaning_lost=ranking.meaning_lost))


def degraded_of(quest: Quest, *, meaning_lost: bool) -> list[str]:
    """What a search had to do without."""
    return [EMBEDDER] if quest.vector is None or meaning_lost else []


def named_in(request: CheckRequest) -> Traits:
    """What the report names: what was given, and for what was not given, what the text holds.

    Raises:
        Rejected: a frame names no function.
    """
    found = traits.parsed(f"{request.title}\n{request.body}")
    if request.frames is not None:
        found = writing.with_frames(found, request.frames)
    if request.paths is not None:
        found = replace(found, paths=traits.paths_of(request.paths))
    if request.symbols is not None:
        found = replace(found, symbols=traits.symbols_of(request.symbols, found.exceptions))
    if request.mentions is not None:
        found = replace(found, mentions=traits.mentions_of(request.mentions))
    return found


def ready_to_check(prepare: Prepare, request: CheckRequest) -> Ready:
    """Read the report's names and embed it."""
    as_of = microseconds_or_none(request.as_of)
    where = Filter(
        namespace=request.namespace,
        reader=reader_of(prepare, request),
        as_of=EVERY_TIME if as_of is None else as_of,
        left_out=NO_NUMBER if request.number is None else request.number,
    )
    return Ready(quest_of(prepare, where, (request.title, request.body), named_in(request)))


def check(ctx: Context, request: CheckRequest) -> CheckAnswer:
    """Whether the report is of a defect that is known."""
    quest = prepared_as(ctx, Ready).quest
    found: Checked = checking.checked(
        ctx.tx, quest, (request.component, request.version), request.number, request.top_k
    )
    return CheckAnswer(
        verdict=found.verdict,
        confidence=found.confidence,
        candidates=list(found.candidates),
        compared=found.compared,
        read=checking.named_of(quest.traits),
        degraded=degraded_of(quest, meaning_lost=found.meaning_lost),
    )


GET = Op(
    name="tracker.get",
    summary="Read an issue by its number.",
    takes=GetRequest,
    gives=GetAnswer,
    role=Role.VIEWER,
    kind=Kind.READ,
    run=get,
    example={"number": 1234},
)

SEARCH = Op(
    name="tracker.search",
    summary="Find issues by words, meaning, an error message or a stack trace.",
    takes=SearchRequest,
    gives=SearchAnswer,
    role=Role.VIEWER,
    kind=Kind.READ,
    run=find,
    example={"query": "NullPointerException in Client.close", "state": "open"},
    prepare=ready_to_search,
    may_lag=True,
)

CHECK = Op(
    name="tracker.duplicate_check",
    summary="Before a defect is reported or debugged: say whether it is known, with the likeliest issues and why.",
    takes=CheckRequest,
    gives=CheckAnswer,
    role=Role.VIEWER,
    kind=Kind.READ,
    run=check,
    example={
        "title": "NullPointerException when the client is closed twice",
        "body": "java.lang.NullPointerException\n\tat org.acme.Client.close(Client.java:127)",
    },
    prepare=ready_to_check,
    raises=(Rejected,),
    toolsets=frozenset({Toolset.DEFAULT, Toolset.ALL}),
)

OPS = (GET, SEARCH, CHECK)
