"""What memory.search answers: the hits of one page, what they are worth, and how to go on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from loom.access.caller import ReadScope
from loom.ledger.indexing import words_of
from loom.ledger.rules import Item
from loom.ops import handles
from loom.ops.fields import (
    EMBEDDER,
    QUERY_CHARACTERS_MAX,
    TAG_LENGTH_MAX,
    TAGS_MAX,
    TOP_K_MAX,
    Instant,
    instant,
    instant_or_none,
    iso,
)
from loom.ops.spec import IDENTITY_LENGTH_MAX, Answer
from loom.planes.memory import select
from loom.planes.memory.fields import MEMORY_TYPE_LENGTH_MAX, TYPES_MAX, json_value
from loom.planes.memory.search import POOL_MAX, Quest, Ranking
from loom.planes.memory.select import value_of
from loom.retrieval import budget, calibrate, tokens, values
from loom.retrieval.budget import Bodies, Read
from loom.retrieval.calibrate import Calibrated, Evidence
from loom.retrieval.explain import explained
from loom.retrieval.fuse import MEANING, Fused
from loom.retrieval.recipes import RecipeName
from loom.storage.interface import Transaction

JUDGED_CHARACTERS_MAX = 20_000
"""Characters of a hit that count as evidence for it."""

AGENTS_MAX = 100
MEANING_LOST = "meaning"


class Hit(BaseModel):
    """One memory that was found."""

    model_config = ConfigDict(frozen=True)

    memory_key: Annotated[str, Field(description="Its key; memory.get reads it whole.")]
    excerpt: Annotated[
        str | None,
        Field(description="Its first 200 characters; a decision or constraint whole; null with bodies none."),
    ]
    value: Annotated[JsonValue, Field(description="Its whole value, with bodies full or unit; else null.")] = None
    memory_type: Annotated[str, Field(description="Its type.")]
    tags: Annotated[list[str], Field(description="Its tags.")]
    agent: Annotated[str, Field(description="Who wrote it.")]
    user_id: Annotated[str, Field(description="The end user it is about; '-' for none.")]
    namespace: Annotated[str, Field(description="The namespace that holds it.")]
    created_at: Annotated[Instant, Field(description="When this version was written.")]
    valid_at: Annotated[Instant | None, Field(description="From when the claim holds; null if not known.")]
    version: Annotated[int, Field(description="The live version's number.")]
    version_text: Annotated[str, Field(description="The same number as text.")]
    memory_id: Annotated[str, Field(description="Names the row through all its versions.")]
    content_sha256: Annotated[str, Field(description="Hash of its value.")]
    similarity: Annotated[
        float | None, Field(description="Cosine of query and memory; null when meaning was not searched.")
    ]
    rank_score: Annotated[float, Field(description="What it ranks by, 0 to 1, comparable within one answer.")]
    probability: Annotated[float, Field(description="How likely it answers the question, 0 to 1, calibrated.")]
    below_threshold: Annotated[bool, Field(description="Whether that is too little for it to be worth reading.")]
    score_components: Annotated[
        dict[str, float | None] | None, Field(description="Where its rank comes from, with explain; else null.")
    ] = None


class SearchAnswer(Answer):
    """What memory.search answers."""

    results: Annotated[list[Hit], Field(description="The hits, best first.")]
    reader_block: Annotated[str, Field(description="The hits as one fragment for a prompt; empty when there are none.")]
    retrieval_confidence: Annotated[float, Field(description="How likely the best hit answers, 0 to 1.")]
    abstain: Annotated[bool, Field(description="Whether to say that nothing is known rather than use the hits.")]
    abstain_reason: Annotated[str, Field(description="Why; empty when not abstaining.")]
    degraded: Annotated[list[str], Field(description="Parts that had to be left out: embedder, meaning.")]
    next_page: Annotated[str, Field(description="Send to memory.next_page to read on; empty at the end.")]
    candidates_total: Annotated[int, Field(description="How many memories were ranked, on all pages together.")]
    namespaces_searched: Annotated[list[str], Field(description="The namespaces that were read.")]
    namespaces_skipped: Annotated[list[str], Field(description="Namespaces of the caller that were too many to read.")]
    recipe: Annotated[str, Field(description="The recipe that ranked them.")]


class Page(BaseModel):
    """A place in a search: what was asked, and how far it was read. Never who asked."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    query: Annotated[str, Field(min_length=1, max_length=QUERY_CHARACTERS_MAX)]
    top_k: Annotated[int, Field(ge=1, le=TOP_K_MAX)]
    offset: Annotated[int, Field(ge=0, le=100_000)]
    pool: Annotated[int, Field(ge=1, le=POOL_MAX)]
    tags: Annotated[
        tuple[Annotated[str, Field(max_length=TAG_LENGTH_MAX)], ...], Field(max_length=TAGS_MAX, strict=False)
    ] = ()
    memory_types: Annotated[
        tuple[Annotated[str, Field(max_length=MEMORY_TYPE_LENGTH_MAX)], ...],
        Field(max_length=TYPES_MAX, strict=False),
    ] = ()
    agents: Annotated[
        tuple[Annotated[str, Field(max_length=IDENTITY_LENGTH_MAX)], ...] | None,
        Field(max_length=AGENTS_MAX, strict=False),
    ] = None
    recipe: RecipeName = ""
    bodies: Bodies = "excerpt"
    explain: bool = False
    scope: Annotated[int, Field(ge=ReadScope.OWN_SESSION, le=ReadScope.NAMESPACE)] = ReadScope.NAMESPACE
    namespace_scope: Literal["this", "all_mine"] = "this"


@dataclass(frozen=True, slots=True)
class Judged:
    """A hit, its row, and what it is worth."""

    item: Item
    fused: Fused
    evidence: Evidence
    worth: Calibrated

    @property
    def similarity(self) -> float | None:
        """The cosine, where the meaning leg knows one."""
        return self.fused.raw(MEANING)


def judged(tx: Transaction, quest: Quest, page: Page, ranking: Ranking) -> list[Judged]:
    """The hits of a page, each with its row and what it is worth."""
    order = ranking.order[page.offset : page.offset + page.top_k]
    items = {item.item_id: item for item in select.by_ids(tx, quest.where, [one.item_id for one in order])}
    among = calibrate.standing(ranking.order)
    found: list[Judged] = []
    for fused in order:
        item = items[fused.item_id]
        stems = tokens.stems_among(words_of(item)[:JUDGED_CHARACTERS_MAX], ranking.query.stems)
        facts = calibrate.evidence(ranking.query, stems, fused, among, quest.question_cosine)
        found.append(Judged(item, fused, facts, calibrate.calibrated(facts)))
    return found


def answered(
    quest: Quest, page: Page, ranking: Ranking, shown: Sequence[Judged], skipped: Sequence[str]
) -> SearchAnswer:
    """The answer that shows these hits of a page."""
    end = page.offset + page.top_k
    more = len(ranking.order) > end
    worth = calibrate.confidence([one.worth for one in shown])
    degraded = [EMBEDDER] if quest.vector is None else [MEANING_LOST] if ranking.meaning_lost else []
    return SearchAnswer(
        results=hits(shown, page.bodies, explain=page.explain),
        reader_block=block(shown, page.bodies),
        retrieval_confidence=round(worth.retrieval_confidence, 4),
        abstain=worth.abstain,
        abstain_reason=worth.reason,
        degraded=degraded,
        next_page=handles.packed(page.model_copy(update={"offset": end})) if more else "",
        candidates_total=len(ranking.order),
        namespaces_searched=list(quest.where.namespaces),
        namespaces_skipped=list(skipped),
        recipe=quest.recipe.name,
    )


def hits(shown: Sequence[Judged], bodies: Bodies, *, explain: bool) -> list[Hit]:
    """The hits, each with as much of its text as `bodies` says."""
    texts, types = texts_of(shown)
    excerpts = [None] * len(texts) if bodies == "none" else budget.bodied(texts, types, "excerpt")
    whole = budget.bodied(texts, types, bodies) if bodies in ("full", "unit") else [None] * len(texts)
    return [
        Hit(
            memory_key=one.item.memory_key,
            excerpt=excerpt,
            value=None if text is None else json_value(value_of(one.item.head)),
            memory_type=one.item.head.attributes.memory_type,
            tags=list(one.item.head.attributes.tags),
            agent=one.item.place.agent,
            user_id=one.item.place.user_id,
            namespace=one.item.place.namespace,
            created_at=instant(one.item.head.created_at),
            valid_at=instant_or_none(one.item.head.attributes.valid_at),
            version=one.item.head.version,
            version_text=str(one.item.head.version),
            memory_id=one.item.memory_id,
            content_sha256=one.item.head.content_sha256,
            similarity=None if one.similarity is None else round(one.similarity, 4),
            rank_score=round(one.fused.score, 6),
            probability=round(one.worth.probability, 4),
            below_threshold=one.worth.below_threshold,
            score_components=components(one) if explain else None,
        )
        for one, excerpt, text in zip(shown, excerpts, whole, strict=True)
    ]


def components(one: Judged) -> dict[str, float | None]:
    """Where a hit's rank comes from."""
    numbers: Mapping[str, float | None] = explained(one.fused, one.evidence, one.worth.probability)
    return {name: None if number is None else round(number, 6) for name, number in numbers.items()}


def block(shown: Sequence[Judged], bodies: Bodies) -> str:
    """The hits as a fragment for a prompt, with the text that `bodies` says; empty for `none`."""
    reads = [
        Read(one.item.memory_key, one.item.place.agent, time_of(one.item), text)
        for one, text in zip(shown, budget.bodied(*texts_of(shown), bodies), strict=True)
        if text is not None
    ]
    return budget.reader_block(reads)


def time_of(item: Item) -> str:
    """When the claim holds, else when it was written."""
    valid_at = item.head.attributes.valid_at
    return iso(instant(item.head.created_at if valid_at is None else valid_at))


def texts_of(shown: Sequence[Judged]) -> tuple[list[str], list[str]]:
    """The hits' values as text, and their types."""
    return (
        [text_shown(one.item) for one in shown],
        [one.item.head.attributes.memory_type for one in shown],
    )


def text_shown(item: Item) -> str:
    """The value as a person reads it; one whose wording binds as it is stored."""
    value = value_of(item.head)
    if item.head.attributes.memory_type in budget.WHOLE_TYPES and not isinstance(value, str):
        return item.head.value_text or ""
    return values.value_text(value)
