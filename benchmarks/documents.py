"""How well search.query ranks documents, beside plain BM25 on the same texts: nDCG@10 over data in BEIR's form."""

import csv
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median

import bm25s
import Stemmer

from loom.client import Loom

TOP_K = 10
SENDERS = 4
READY_TIMEOUT_S = 3_600.0
READY_PAUSE_S = 1.0

Rank = Callable[[str], list[str]]
"""From a question to document ids, the best first, at most ten."""


@dataclass(frozen=True)
class Text:
    """One document."""

    key: str
    title: str
    text: str


@dataclass(frozen=True)
class Collection:
    """Documents, questions, and how much each document answers each question."""

    texts: Sequence[Text]
    questions: Mapping[str, str]
    gains: Mapping[str, Mapping[str, int]]


@dataclass
class Scores:
    """What a ranker reached."""

    ndcg: list[float] = field(default_factory=list[float])
    hit_5: list[float] = field(default_factory=list[float])
    times_ms: list[float] = field(default_factory=list[float])

    def row(self, name: str) -> str:
        """One line of the table."""
        return (
            f"{name:<20}{len(self.ndcg):>6}  {100 * fmean(self.ndcg):7.1f}  {100 * fmean(self.hit_5):6.1f}  "
            f"{median(self.times_ms):7.1f}"
        )


def read(folder: Path) -> Collection:
    """A collection in BEIR's form: corpus.jsonl, queries.jsonl, qrels/test.tsv."""
    texts = [Text(row["_id"], row.get("title", ""), row["text"]) for row in rows(folder / "corpus.jsonl")]
    gains: dict[str, dict[str, int]] = {}
    with (folder / "qrels" / "test.tsv").open(encoding="utf-8", newline="") as file:
        for query, document, gain in list(csv.reader(file, delimiter="\t"))[1:]:
            gains.setdefault(query, {})[document] = int(gain)
    questions = {row["_id"]: row["text"] for row in rows(folder / "queries.jsonl") if row["_id"] in gains}
    return Collection(texts, questions, gains)


def rows(path: Path) -> Iterator[dict[str, str]]:
    """The objects of a file of JSON Lines."""
    with path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def load(client: Loom, texts: Sequence[Text], namespace: str) -> None:
    """Add every document and wait until all are indexed."""

    def add(text: Text) -> None:
        client.call("knowledge.add", {"namespace": namespace, "uri": text.key, "title": text.title, "text": text.text})

    with ThreadPoolExecutor(SENDERS) as pool:
        list(pool.map(add, texts))
    deadline = time.monotonic() + READY_TIMEOUT_S
    while client.call("knowledge.list", {"namespace": namespace, "limit": 1})["ready"] < len({t.key for t in texts}):
        if time.monotonic() > deadline:
            raise SystemExit("the documents were not indexed in time")
        time.sleep(READY_PAUSE_S)


def loom_rank(client: Loom, namespace: str) -> Rank:
    """Ranks through search.query, what it holds back held back."""

    def rank(question: str) -> list[str]:
        answer = client.call(
            "search.query",
            {
                "namespace": namespace,
                "namespace_scope": "this",
                "query": question,
                "top_k": 2 * TOP_K,
                "bodies": "none",
            },
        )
        return list(dict.fromkeys(hit["uri"] for hit in answer["knowledge"]["results"]))[:TOP_K]

    return rank


def bm25_rank(texts: Sequence[Text]) -> Rank:
    """Ranks by plain BM25, English stop words out and stems in."""
    stem = Stemmer.Stemmer("english").stemWords
    whole = [f"{text.title} {text.text}" for text in texts]
    index = bm25s.BM25()
    index.index(bm25s.tokenize(whole, stopwords="en", stemmer=stem, show_progress=False), show_progress=False)

    def rank(question: str) -> list[str]:
        query = bm25s.tokenize(question, stopwords="en", stemmer=stem, show_progress=False)
        found, scores = index.retrieve(query, k=TOP_K, show_progress=False)
        return [texts[i].key for i, score in zip(found[0], scores[0], strict=True) if score > 0]

    return rank


def asked(rank: Rank, collection: Collection) -> Scores:
    """Ask every question."""
    scores = Scores()
    for key, question in collection.questions.items():
        start = time.perf_counter()
        found = rank(question)
        scores.times_ms.append((time.perf_counter() - start) * 1000)
        scores.ndcg.append(ndcg(found, collection.gains[key]))
        scores.hit_5.append(float(any(collection.gains[key].get(document, 0) for document in found[:5])))
    return scores


def ndcg(found: Sequence[str], gains: Mapping[str, int]) -> float:
    """The normalised discounted gain of the first ten."""
    best = sorted(gains.values(), reverse=True)[:TOP_K]
    ideal = sum(gain / math.log2(place + 2) for place, gain in enumerate(best))
    got = sum(gains.get(document, 0) / math.log2(place + 2) for place, document in enumerate(found[:TOP_K]))
    return got / ideal if ideal else 0.0


def compare(client: Loom, folder: Path, name: str) -> bool:
    """Load, ask, print; whether Loom ranks at least as well as BM25."""
    collection = read(folder)
    load(client, collection.texts, f"quality-{name}")
    plain = asked(bm25_rank(collection.texts), collection)
    ours = asked(loom_rank(client, f"quality-{name}"), collection)
    print(f"\n{name:<20}{'asked':>6}  {'nDCG@10':>7}  {'hit@5':>6}  {'p50 ms':>7}")
    print(plain.row("BM25"))
    print(ours.row("Loom"))
    return fmean(ours.ndcg) >= fmean(plain.ndcg)
