"""How often search.query finds what answers a question, beside plain BM25 on the same texts; a leg for each data set.

Each dialogue of LoCoMo goes through the public HTTP API into a running
server: every turn is a memory with its speaker and time. Every question of
categories 1 to 4 that names evidence is asked with `search.query`. BM25 ranks
the same texts with `bm25s`, English stop words out and stems in.

The leg `conversations` appends the same turns as conversations, a session of the dialogue each, and asks
`conversation.search`. `scifact` and `xquad-en` are documents, see `documents.py`. `duplicates` are
bug reports, see `issues.py`; `code` is functions, see `functions.py`.

    python benchmarks/quality.py --data FOLDER [--url URL] [--leg locomo]...
"""

import argparse
import json
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from statistics import fmean, median
from typing import Any

import bm25s
import snowballstemmer

import functions
import issues
from documents import compare
from loom.client import Loom
from server import running

BATCH = 200
TOP_K = 10
WITH_VECTORS = 30
"""Turns of one append that has their vectors made before it answers."""

EVIDENCE = re.compile(r"D(\d+):0*(\d+)")
CATEGORIES = (1, 2, 3, 4)

Rank = Callable[[str], list[str]]
"""From a question to turn ids, the best first, at most ten."""


@dataclass(frozen=True)
class Turn:
    """One turn of a dialogue."""

    key: str
    text: str
    said_at: str


@dataclass(frozen=True)
class Question:
    """A question and the turns that answer it."""

    text: str
    gold: frozenset[str]
    category: int


@dataclass(frozen=True)
class Dialogue:
    """One dialogue with its questions."""

    name: str
    turns: Sequence[Turn]
    questions: Sequence[Question]


def dialogues(folder: Path) -> Iterator[Dialogue]:
    """The dialogues of a LoCoMo file. Questions without usable evidence are left out."""
    for sample in json.loads((folder / "locomo-dev.json").read_text("utf-8")):
        turns = [turn for number in session_numbers(sample) for turn in session_turns(sample["conversation"], number)]
        known = {turn.key for turn in turns}
        questions = [
            Question(str(qa["question"]), gold, qa["category"])
            for qa in sample["qa"]
            if qa["category"] in CATEGORIES and (gold := evidence(qa.get("evidence") or [], known))
        ]
        yield Dialogue(str(sample["sample_id"]), turns, questions)


def session_numbers(sample: dict[str, Any]) -> list[int]:
    """The numbers of the sessions that have turns, in order."""
    found = (re.fullmatch(r"session_(\d+)", name) for name in sample["conversation"])
    return sorted(int(match[1]) for match in found if match)


def session_turns(conversation: dict[str, Any], number: int) -> Iterator[Turn]:
    """The turns of one session, each with the session's time."""
    moment = datetime.strptime(conversation[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
    for turn in conversation[f"session_{number}"]:
        caption = f" [shares a picture: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
        yield Turn(turn["dia_id"], f"{turn['speaker']}: {turn['text']}{caption}", moment.isoformat())


def evidence(marks: Sequence[str], known: set[str]) -> frozenset[str]:
    """The turn ids in the evidence field, which sometimes holds several or odd forms."""
    return frozenset(
        key for mark in marks for match in EVIDENCE.finditer(mark) if (key := f"D{match[1]}:{match[2]}") in known
    )


def loom_rank(client: Loom, namespace: str) -> Rank:
    """Ranks through a running server."""

    def rank(question: str) -> list[str]:
        answer = client.call(
            "search.query",
            {"namespace": namespace, "namespace_scope": "this", "query": question, "top_k": TOP_K, "bodies": "none"},
        )
        return [hit["memory_key"] for hit in answer["memory"]["results"]]

    return rank


def bm25_rank(turns: Sequence[Turn]) -> Rank:
    """Ranks by plain BM25 over the same texts."""
    stem = snowballstemmer.stemmer("english").stemWords
    tokens = bm25s.tokenize([turn.text for turn in turns], stopwords="en", stemmer=stem, show_progress=False)
    index = bm25s.BM25()
    index.index(tokens, show_progress=False)

    def rank(question: str) -> list[str]:
        query = bm25s.tokenize(question, stopwords="en", stemmer=stem, show_progress=False)
        found, scores = index.retrieve(query, k=TOP_K, show_progress=False)
        return [turns[i].key for i, score in zip(found[0], scores[0], strict=True) if score > 0]

    return rank


@dataclass
class Tally:
    """Sums of what a ranker reached."""

    hits: dict[int, list[bool]]
    recalls: list[float]
    reciprocal: list[float]
    times_ms: list[float]

    @classmethod
    def empty(cls) -> "Tally":
        """Nothing asked yet."""
        return cls({1: [], 5: [], 10: []}, [], [], [])

    def ask(self, rank: Rank, question: Question) -> None:
        """Ask one question and note where its evidence stands."""
        start = time.perf_counter()
        found = rank(question.text)
        self.times_ms.append((time.perf_counter() - start) * 1000)
        for k, hits in self.hits.items():
            hits.append(bool(question.gold & set(found[:k])))
        self.recalls.append(len(question.gold & set(found)) / len(question.gold))
        first = next((place for place, key in enumerate(found, 1) if key in question.gold), None)
        self.reciprocal.append(1 / first if first else 0.0)

    def row(self, name: str) -> str:
        """One line of the table."""
        hits = "  ".join(f"{100 * fmean(found):6.1f}" for found in self.hits.values())
        return (
            f"{name:<12}{len(self.recalls):>6}  {hits}  {100 * fmean(self.recalls):9.1f}  "
            f"{fmean(self.reciprocal):.3f}  {median(self.times_ms):7.1f}"
        )


def load(client: Loom, dialogue: Dialogue, namespace: str) -> None:
    """Store every turn as a memory."""
    for start in range(0, len(dialogue.turns), BATCH):
        items = [
            {"memory_key": turn.key, "value": turn.text, "memory_type": "episodic", "valid_at": turn.said_at}
            for turn in dialogue.turns[start : start + BATCH]
        ]
        answer = client.call("memory.set_many", {"namespace": namespace, "items": items})
        failed = [item for item in answer["items"] if item.get("error")]
        if failed:
            raise SystemExit(f"{len(failed)} turns were refused: {failed[0]}")


def measure(client: Loom, folder: Path) -> dict[str, Tally]:
    """Load and ask everything; a tally for each ranker."""
    ours, plain = Tally.empty(), Tally.empty()
    for dialogue in dialogues(folder):
        namespace = f"quality-{dialogue.name}"
        load(client, dialogue, namespace)
        loom, bm25 = loom_rank(client, namespace), bm25_rank(dialogue.turns)
        for question in dialogue.questions:
            ours.ask(loom, question)
            plain.ask(bm25, question)
    return {"BM25": plain, "Loom": ours}


@contextmanager
def client_for(url: str | None) -> Iterator[Loom]:
    """A client of the server at `url`, or of one started for the benchmark."""
    if url:
        with Loom(url) as client:
            yield client
        return
    with tempfile.TemporaryDirectory() as home, running(Path(home)) as server, Loom(server.url) as client:
        yield client


def show(name: str, tallies: dict[str, Tally]) -> None:
    """Print the table of one leg."""
    print(
        f"{name:<14}{'asked':>4}  {'hit@1':>6}  {'hit@5':>6}  {'hit@10':>6}  {'recall@10':>9}  {'MRR':>5}  "
        f"{'p50 ms':>7}"
    )
    for ranker, tally in tallies.items():
        print(tally.row(ranker))


def locomo(client: Loom, data: Path) -> bool:
    """Print the table of LoCoMo; whether Loom beats plain BM25."""
    tallies = measure(client, data / "locomo-dev")
    show("locomo", tallies)
    return fmean(tallies["Loom"].hits[5]) > fmean(tallies["BM25"].hits[5])


def conversation_rank(client: Loom, namespace: str) -> Rank:
    """Ranks turns through conversation.search, whose ids are the dialogue's own."""

    def rank(question: str) -> list[str]:
        asked = {"namespace": namespace, "query": question, "top_k": TOP_K, "bodies": "none", "neighbours": 0}
        return [hit["message_id"] for hit in client.call("conversation.search", asked)["results"]]

    return rank


def append(client: Loom, dialogue: Dialogue, namespace: str) -> None:
    """Append every session as a conversation; few turns at a time, so that each has its vectors at once."""
    for number, group in groupby(dialogue.turns, key=lambda turn: turn.key.partition(":")[0]):
        turns = list(group)
        for start in range(0, len(turns), WITH_VECTORS):
            messages: list[dict[str, str]] = []
            for turn in turns[start : start + WITH_VECTORS]:
                speaker, _, said = turn.text.partition(": ")
                messages.append(
                    {"id": turn.key, "role": "user", "name": speaker, "content": said, "time": turn.said_at}
                )
            sent = {"namespace": namespace, "session": number, "messages": messages}
            answer = client.call("conversation.append", sent)
            if answer.get("degraded"):
                raise SystemExit("the embedder failed; nothing is measured without it")


def conversations(client: Loom, data: Path) -> bool:
    """LoCoMo's turns as conversations, asked by conversation.search; whether that beats plain BM25."""
    ours, plain = Tally.empty(), Tally.empty()
    for dialogue in dialogues(data / "locomo-dev"):
        namespace = f"conversations-{dialogue.name}"
        append(client, dialogue, namespace)
        loom, bm25 = conversation_rank(client, namespace), bm25_rank(dialogue.turns)
        for question in dialogue.questions:
            ours.ask(loom, question)
            plain.ask(bm25, question)
    show("conversations", {"BM25": plain, "Loom": ours})
    return fmean(ours.hits[5]) > fmean(plain.hits[5])


def scifact(client: Loom, data: Path) -> bool:
    """Claims and the abstracts that speak to them."""
    return compare(client, data / "scifact", "scifact")


def xquad_en(client: Loom, data: Path) -> bool:
    """Questions and the paragraphs they were asked of."""
    return compare(client, data / "xquad" / "en", "xquad-en")


def duplicates(client: Loom, data: Path) -> bool:
    """Bug reports with known duplicates; whether tracker.duplicate_check beats plain BM25."""
    return issues.compare(client, data / "bugs-hadoop")


def code(client: Loom, data: Path) -> bool:
    """Web questions and the functions that answer them."""
    return functions.compare(client, data / "cosqa-dev", "cosqa")


LEGS: dict[str, Callable[[Loom, Path], bool]] = {
    "code": code,
    "locomo": locomo,
    "conversations": conversations,
    "scifact": scifact,
    "xquad-en": xquad_en,
    "duplicates": duplicates,
}


def main() -> int:
    """Run the legs; 1 when Loom does not beat plain BM25 in one."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path, required=True, help="folder that holds a folder for each leg")
    options.add_argument("--url", help="a running server; one is started when left out")
    options.add_argument("--leg", action="append", choices=LEGS, help="this leg alone; may be repeated")
    given = options.parse_args()
    with client_for(given.url) as client:
        better = [LEGS[name](client, given.data) for name in given.leg or LEGS]
    return 0 if all(better) else 1


if __name__ == "__main__":
    raise SystemExit(main())
