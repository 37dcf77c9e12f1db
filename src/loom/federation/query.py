"""search.query: one question to every plane."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, ClassVar, Literal

from pydantic import Field, JsonValue

from loom.access.caller import Role
from loom.access.namespaces import FanOut, fan_out
from loom.canonical import Json
from loom.errors import Rejected
from loom.federation import legs as planes
from loom.federation.legs import Asked
from loom.federation.scope import code_scope
from loom.ledger.rules import Reader
from loom.models.sources import across_cosine
from loom.ops.fields import EMBEDDER, HANDLE_LENGTH_MAX, TOP_K_MAX, NamespaceScope, Query, ScopeWord, Tags
from loom.ops.spec import Answer, Context, Kind, Op, OpenRequest, Prepare, Toolset, prepared_as
from loom.planes.leg import Leg, Question
from loom.retrieval.recipes import RecipeName

EMPTY: Mapping[str, Mapping[str, Json]] = MappingProxyType(
    {
        "memory": {"results": [], "reader_block": "", "next_page": ""},
        "knowledge": {"results": []},
        "profile": {"sections": []},
        "conversations": {"results": []},
    }
)
"""The sections every answer has, as they are when their plane does not exist or did not answer."""


class QueryRequest(OpenRequest):
    """What search.query takes."""

    query: Annotated[Query, Field(description="What to look for, in plain words; every plane gets it.")]
    top_k: Annotated[
        int, Field(ge=1, le=TOP_K_MAX, description="Most hits in a section, 1 to 100; the tracker gives 10 at most.")
    ] = 5
    tags: Annotated[
        Tags, Field(description="Tags that memories and documents must have; the other planes know none.")
    ] = Field(default_factory=list)
    namespace_scope: NamespaceScope = "all_mine"
    recipe: Annotated[
        RecipeName, Field(description="The way memories are ranked, as in memory.search; empty for the usual one.")
    ] = ""
    bodies: Annotated[
        Literal["full", "excerpt", "none", "unit"],
        Field(
            description="How much of each memory to give: excerpt its first 200 characters (decisions and constraints "
            "whole), full what is stored, none its key and scores, unit whole values as far as a budget goes."
        ),
    ] = "excerpt"
    explain: Annotated[bool, Field(description="Hold nothing back, and show where each memory's rank comes from.")] = (
        False
    )
    page: Annotated[
        Annotated[str, Field(max_length=HANDLE_LENGTH_MAX)],
        Field(description="memory.next_page of an earlier answer, to go on from there; empty to begin."),
    ] = ""
    read_scope: Annotated[
        ScopeWord,
        Field(description="Whose rows: every user's, or this user_id's or session's beside those of no user."),
    ] = "namespace"


class QueryAnswer(Answer):
    """What search.query answers."""

    ABSENT_WHEN_NONE: ClassVar[frozenset[str]] = frozenset({"tracker", "withheld", "timings_ms"})

    tracker: Annotated[
        dict[str, JsonValue] | None,
        Field(description="Whether a defect like this is known, for such questions in a code scope; else absent."),
    ] = None
    memory: Annotated[
        dict[str, JsonValue],
        Field(description="results, reader_block and next_page, as memory.search gives them, unlikely hits held back."),
    ]
    knowledge: Annotated[
        dict[str, JsonValue], Field(description="results: passages of documents that are near enough to the question.")
    ]
    profile: Annotated[
        dict[str, JsonValue],
        Field(description="sections: those that hold the question's words, then those that are near its meaning."),
    ]
    conversations: Annotated[dict[str, JsonValue], Field(description="results: messages that were found.")]
    withheld: Annotated[
        dict[str, JsonValue] | None,
        Field(description="How many hits each section held back, and the reason; absent when none did, or explain."),
    ] = None
    namespaces_skipped: Annotated[
        list[str],
        Field(description="The caller's namespaces that were too many to read; name one to have it searched."),
    ]
    degraded: Annotated[
        list[str],
        Field(description="Sections and helpers that failed or were late, wholly or in part; mostly empty."),
    ]
    timings_ms: Annotated[
        dict[str, float] | None, Field(description="How long each section took, when explain is set; else absent.")
    ] = None


@dataclass(frozen=True, slots=True)
class Found:
    """A whole answer, and the planes whose sections have hits."""

    answer: QueryAnswer
    with_hits: frozenset[str]


@dataclass(frozen=True, slots=True)
class Federation:
    """The planes that search.query asks."""

    legs: Sequence[Leg]

    def prepare(self, prepare: Prepare, request: QueryRequest) -> Found:
        """Ask, and put the sections together."""
        until_s = time.monotonic() + prepare.limits.leg_timeout_s
        spaces = _spaces(prepare, request)
        scope = code_scope(prepare, request.org, request.namespace)
        vector = planes.embedded(prepare, request.query)
        question = Question(
            namespace=request.namespace,
            namespaces=spaces.read,
            agent=request.agent,
            reader=Reader(prepare.scope, request.user_id, request.session_id),
            query=request.query,
            vector=vector,
            space=prepare.embedder.space.fingerprint,
            random_cosine=prepare.embedder.random_cosine,
            across_cosine=across_cosine(prepare.embedder),
            question_cosine=prepare.embedder.question_cosine,
            top_k=request.top_k,
            tags=tuple(request.tags),
            recipe=request.recipe,
            bodies=request.bodies,
            explain=request.explain,
            page=request.page,
            now_us=prepare.now_us,
            org=request.org,
            scope=scope,
            until_s=until_s,
        )
        if request.page and not any(leg.name == "memory" for leg in self.legs):
            raise Rejected("page: there is no such page; use memory.next_page of an earlier answer", field="page")
        asked = planes.ask(prepare, self.legs, question, until_s)
        lost = [EMBEDDER] if vector is None else []
        answer = assembled(asked, spaces.skipped, lost, explain=request.explain)
        return Found(answer, frozenset(name for name, timed in asked.answers.items() if timed.section.hits))

    def run(self, ctx: Context, request: QueryRequest) -> QueryAnswer:
        """Give what was prepared, and let the planes know that it was read."""
        found = prepared_as(ctx, Found)
        for leg in self.legs:
            if leg.name in found.with_hits:
                leg.noticed(ctx, request)
        return found.answer


def assembled(asked: Asked, skipped: Sequence[str], lost: Sequence[str], *, explain: bool) -> QueryAnswer:
    """One answer from the planes' own. Pure."""
    sections = {name: timed.section for name, timed in asked.answers.items()}
    bodies = {name: dict(sections[name].body if name in sections else empty) for name, empty in EMPTY.items()}
    if "namespaces_skipped" in bodies["memory"]:
        bodies["memory"]["namespaces_skipped"] = list(skipped)
    parts = [part for section in sections.values() for part in section.degraded]
    withheld: dict[str, JsonValue] = {name: part.withheld for name, part in sections.items() if part.withheld}
    if withheld:
        withheld["reason"] = "; ".join(dict.fromkeys(part.reason for part in sections.values() if part.withheld))
    timings_ms = {name: round(timed.took_ms, 1) for name, timed in asked.answers.items()}
    return QueryAnswer(
        tracker=dict(sections["tracker"].body) if "tracker" in sections else None,
        memory=bodies["memory"],
        knowledge=bodies["knowledge"],
        profile=bodies["profile"],
        conversations=bodies["conversations"],
        withheld=withheld if withheld and not explain else None,
        namespaces_skipped=list(skipped),
        degraded=list(dict.fromkeys([*lost, *asked.failed, *parts])),
        timings_ms=timings_ms if explain else None,
    )


def _spaces(prepare: Prepare, request: QueryRequest) -> FanOut:
    """The namespaces to read, the named one first."""
    if request.namespace_scope == "this":
        return FanOut((request.namespace,), ())
    most = prepare.limits.fanout_namespaces_max
    return planes.read(prepare, request.org, lambda tx: fan_out(tx, prepare.caller, request.namespace, most))


def search_query(legs: Sequence[Leg]) -> Op[QueryRequest, QueryAnswer]:
    """The operation, over these planes.

    Raises:
        ValueError: two planes have one name, or a name that no section has.
    """
    names = [leg.name for leg in legs]
    if len(set(names)) != len(names) or not set(names) <= {*EMPTY, "tracker"}:
        raise ValueError(f"the planes {names} are not the sections of an answer")
    federation = Federation(tuple(legs))
    return Op(
        name="search.query",
        summary="Search memories, profile, documents and conversations with one question; the place to look first.",
        takes=QueryRequest,
        gives=QueryAnswer,
        role=Role.VIEWER,
        kind=Kind.READ,
        run=federation.run,
        example={"query": "what does she like to drink?"},
        prepare=federation.prepare,
        toolsets=frozenset({Toolset.DEFAULT, Toolset.ALL}),
        tool="loom_search",
        may_lag=True,
    )
