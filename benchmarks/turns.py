"""How often the turns of a dialogue that answer a question are found, as memories and as conversations."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from statistics import fmean, median

import bm25s
import Stemmer

from loom.client import Loom
from talks import Dialogue, Question, Turn

BATCH = 10
TOP_K = 10
VALUE_CHARACTERS_MAX = 200_000
"""Characters of a turn that are stored as a memory; one of BEAM's is longer than a memory can be."""

WITH_VECTORS = 20
"""Turns of one append that has their vectors made before it answers."""

READY_TIMEOUT_S = 3_600.0
PAUSE_S = 0.5

Rank = Callable[[str], "Found"]
Names = {"1": "multi-hop", "2": "temporal", "3": "open-domain", "4": "single-hop"}


@dataclass(frozen=True)
class Found:
    """Turn ids, best first, at most ten; and what the answer says of itself, where it does."""

    keys: list[str]
    confidence: float | None = None
    abstains: bool = False


@dataclass
class Tally:
    """What a ranker reached, a row a question."""

    rows: list[tuple[str, bool, bool, bool, float, float, bool]] = field(
        default_factory=list[tuple[str, bool, bool, bool, float, float, bool]]
    )
    times_ms: list[float] = field(default_factory=list[float])
    answered: list[Found] = field(default_factory=list[Found])
    adversarial: list[Found] = field(default_factory=list[Found])

    def ask(self, rank: Rank, question: Question, sessions: dict[str, str]) -> None:
        """Ask one question and note where its evidence stands."""
        start_s = time.perf_counter()
        found = rank(question.text)
        self.times_ms.append((time.perf_counter() - start_s) * 1000)
        if not question.is_answered:
            self.adversarial.append(found)
            return
        self.answered.append(found)
        keys, gold = found.keys, question.gold
        recall = len(gold & set(keys)) / len(gold)
        first = next((place for place, key in enumerate(keys, 1) if key in gold), None)
        sought, reached = {sessions[key] for key in gold}, {sessions[key] for key in keys[:5]}
        hits = [bool(gold & set(keys[:k])) for k in (1, 5, 10)]
        self.rows.append(
            (question.category, hits[0], hits[1], hits[2], recall, 1 / first if first else 0.0, sought <= reached)
        )

    def hit_5(self) -> float:
        """The share of questions with an answer among the first five."""
        return fmean(row[2] for row in self.rows)

    def recall_of(self, category: str) -> float:
        """recall@10 of one category."""
        return fmean(row[4] for row in self.rows if row[0] == category)

    def line(self, name: str, category: str = "") -> str:
        """One line of the table."""
        rows = [row for row in self.rows if not category or row[0] == category]
        columns = [
            *[100 * fmean(row[place] for row in rows) for place in (1, 2, 3, 4)],
            100 * fmean(row[4] == 1.0 for row in rows),
            100 * fmean(row[6] for row in rows),
        ]
        figures = "".join(f"{figure:>8.1f}" for figure in columns)
        return f"{name:<28}{len(rows):>6}{figures}{fmean(row[5] for row in rows):>8.3f}{median(self.times_ms):>8.1f}"


HEAD = "".join(f"{name:>8}" for name in ("hit@1", "hit@5", "hit@10", "rec@10", "all@10", "ses@5", "MRR", "p50 ms"))


def memory_rank(client: Loom, namespace: str, recipe: str) -> Rank:
    """Ranks through search.query, what it holds back held back."""

    def rank(question: str) -> Found:
        asked = {"namespace": namespace, "namespace_scope": "this", "query": question, "top_k": TOP_K}
        memory = client.call("search.query", {**asked, "bodies": "none", "recipe": recipe})["memory"]
        keys = [hit["memory_key"] for hit in memory["results"]]
        return Found(keys, memory.get("retrieval_confidence", 0.0), memory.get("abstain", True))

    return rank


def conversation_rank(client: Loom, namespace: str) -> Rank:
    """Ranks turns through conversation.search, whose ids are the dialogue's own."""

    def rank(question: str) -> Found:
        asked = {"namespace": namespace, "query": question, "top_k": TOP_K, "bodies": "none", "neighbours": 0}
        return Found([hit["message_id"] for hit in client.call("conversation.search", asked)["results"]])

    return rank


def bm25_rank(turns: Sequence[Turn]) -> Rank:
    """Ranks by plain BM25 over the same texts, English stop words out and stems in."""
    stem = Stemmer.Stemmer("english").stemWords
    tokens = bm25s.tokenize([turn.text for turn in turns], stopwords="en", stemmer=stem, show_progress=False)
    index = bm25s.BM25()
    index.index(tokens, show_progress=False)

    def rank(question: str) -> Found:
        query = bm25s.tokenize(question, stopwords="en", stemmer=stem, show_progress=False)
        found, scores = index.retrieve(query, k=TOP_K, show_progress=False)
        return Found([turns[i].key for i, score in zip(found[0], scores[0], strict=True) if score > 0])

    return rank


def load_memories(client: Loom, dialogue: Dialogue, namespace: str) -> None:
    """Store every turn as a memory."""
    for start in range(0, len(dialogue.turns), BATCH):
        items = [
            {
                "memory_key": turn.key,
                "value": turn.text[:VALUE_CHARACTERS_MAX],
                "memory_type": "episodic",
                "valid_at": turn.said_at or None,
                "tags": [f"session-{turn.session}", turn.role],
            }
            for turn in dialogue.turns[start : start + BATCH]
        ]
        answer = client.call("memory.set_many", {"namespace": namespace, "items": items})
        failed = [item for item in answer["items"] if item.get("error")]
        if failed:
            raise SystemExit(f"{len(failed)} turns were refused: {failed[0]}")
    _wait_for_vectors(client)


def load_conversations(client: Loom, dialogue: Dialogue, namespace: str) -> None:
    """Append every session as a conversation; few turns at a time, so that each has its vectors at once."""
    for number, group in groupby(dialogue.turns, key=lambda turn: turn.session):
        turns = list(group)
        for start in range(0, len(turns), WITH_VECTORS):
            messages: list[dict[str, str]] = []
            for turn in turns[start : start + WITH_VECTORS]:
                speaker, _, said = turn.text.partition(": ")
                name = {} if speaker in ("user", "assistant") else {"name": speaker}
                time_said = {"time": turn.said_at} if turn.said_at else {}
                messages.append({"id": turn.key, "role": turn.role, "content": said, **name, **time_said})
            answer = client.call(
                "conversation.append", {"namespace": namespace, "session": number, "messages": messages}
            )
            if answer.get("degraded"):
                raise SystemExit("the embedder failed; nothing is measured without it")
    _wait_for_vectors(client)


def compare(name: str, found: Sequence[Dialogue], rankers: dict[str, Callable[[Dialogue], Rank]]) -> dict[str, Tally]:
    """Ask every question of every ranker, and print the table; by categories too."""
    tallies = {ranker: Tally() for ranker in rankers}
    for dialogue in found:
        sessions = {turn.key: turn.session for turn in dialogue.turns}
        for ranker, make in rankers.items():
            rank = make(dialogue)
            for question in dialogue.questions:
                tallies[ranker].ask(rank, question, sessions)
    print(f"\n{name:<28}{'asked':>6}{HEAD}")
    for ranker, tally in tallies.items():
        print(tally.line(ranker))
    for category in sorted({row[0] for tally in tallies.values() for row in tally.rows}):
        for ranker, tally in tallies.items():
            print(tally.line(f"  {Names.get(category, category)} {ranker}"[:28], category))
    for ranker, tally in tallies.items():
        if tally.adversarial and any(one.confidence is not None for one in tally.answered):
            print(f"  {ranker}: {told_apart(tally)}")
    return tallies


def _wait_for_vectors(client: Loom) -> None:
    """Wait until every text has its vectors."""
    deadline_s = time.monotonic() + READY_TIMEOUT_S
    while client.call("ops.health", {})["jobs_waiting"]:
        if time.monotonic() > deadline_s:
            raise SystemExit("the vectors were not made in time")
        time.sleep(PAUSE_S)


def told_apart(tally: Tally) -> str:
    """How well confidence tells answered questions from those without an answer."""
    yes, no = ([one.confidence or 0.0 for one in some] for some in (tally.answered, tally.adversarial))
    above = fmean(fmean((a > b) + 0.5 * (a == b) for b in no) for a in yes)
    doubts = [100 * fmean(one.abstains for one in some) for some in (tally.answered, tally.adversarial)]
    return f"no answer: AUROC {above:.3f}; abstains {doubts[1]:.1f}% there, {doubts[0]:.1f}% where there is one"
