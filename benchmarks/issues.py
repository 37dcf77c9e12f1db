"""How often tracker.duplicate_check names the issue that a report repeats, beside plain BM25 on the same texts.

The reports of a data set in BEIR's form go through the public HTTP API; each report that has a duplicate is
asked about by its title and the beginning of its text, its own issue left out for both.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median

import bm25s
import Stemmer

from documents import Collection, Text, read
from loom.client import Loom

NAMESPACE = "quality-duplicates"
BATCH = 250
TOP_K = 10
READY_TIMEOUT_S = 3_600.0
READY_PAUSE_S = 1.0

Rank = Callable[[str, str], list[str]]
"""From a report's id and text to issue ids, the best first, at most ten, its own not among them."""


@dataclass
class Scores:
    """What a ranker reached."""

    hit_1: list[float] = field(default_factory=list[float])
    recall_5: list[float] = field(default_factory=list[float])
    hit_10: list[float] = field(default_factory=list[float])
    times_ms: list[float] = field(default_factory=list[float])

    def ask(self, rank: Rank, key: str, text: str, gold: Mapping[str, int]) -> None:
        """Ask about one report, and note where its duplicates stand."""
        start = time.perf_counter()
        found = rank(key, text)
        self.times_ms.append((time.perf_counter() - start) * 1000)
        self.hit_1.append(float(any(one in gold for one in found[:1])))
        self.recall_5.append(sum(one in gold for one in found[:5]) / len(gold))
        self.hit_10.append(float(any(one in gold for one in found[:10])))

    def row(self, name: str) -> str:
        """One line of the table."""
        return (
            f"{name:<20}{len(self.hit_1):>6}  {100 * fmean(self.hit_1):6.1f}  {100 * fmean(self.recall_5):8.1f}  "
            f"{100 * fmean(self.hit_10):6.1f}  {median(self.times_ms):7.1f}"
        )


def load(client: Loom, texts: Sequence[Text]) -> None:
    """Import every report and wait until all have vectors."""
    items = [{"number": int(text.key), "title": text.title, "body": text.text} for text in texts]
    for start in range(0, len(items), BATCH):
        answer = client.call("tracker.import", {"namespace": NAMESPACE, "items": items[start : start + BATCH]})
        if answer["refused"]:
            raise SystemExit(f"reports were refused: {answer['refused'][0]}")
    deadline = time.monotonic() + READY_TIMEOUT_S
    # Without a token, issues are kept in the tracker's own org; its jobs are theirs.
    while client.call("ops.health", {"org": "tracker"})["jobs_waiting"]:
        if time.monotonic() > deadline:
            raise SystemExit("the reports were not indexed in time")
        time.sleep(READY_PAUSE_S)


def loom_rank(client: Loom) -> Rank:
    """Ranks through a running server."""

    def rank(key: str, text: str) -> list[str]:
        title, _, body = text.partition("\n")
        sent = {"namespace": NAMESPACE, "number": int(key), "title": title, "body": body, "top_k": TOP_K}
        answer = client.call("tracker.duplicate_check", sent)
        return [str(one["issue"]["number"]) for one in answer["candidates"]]

    return rank


def bm25_rank(texts: Sequence[Text]) -> Rank:
    """Ranks by plain BM25, English stop words out and stems in."""
    stem = Stemmer.Stemmer("english").stemWords
    whole = [f"{text.title} {text.text}" for text in texts]
    index = bm25s.BM25()
    index.index(bm25s.tokenize(whole, stopwords="en", stemmer=stem, show_progress=False), show_progress=False)

    def rank(key: str, text: str) -> list[str]:
        query = bm25s.tokenize(text, stopwords="en", stemmer=stem, show_progress=False)
        found, scores = index.retrieve(query, k=TOP_K + 1, show_progress=False)
        ranked = [texts[i].key for i, score in zip(found[0], scores[0], strict=True) if score > 0]
        return [one for one in ranked if one != key][:TOP_K]

    return rank


def asked(rank: Rank, collection: Collection) -> Scores:
    """Ask about every report that has a duplicate."""
    scores = Scores()
    for key, text in collection.questions.items():
        scores.ask(rank, key, text, collection.gains[key])
    return scores


def compare(client: Loom, folder: Path) -> bool:
    """Load, ask, print; whether Loom finds more of the duplicates than BM25."""
    collection = read(folder)
    load(client, collection.texts)
    plain, ours = asked(bm25_rank(collection.texts), collection), asked(loom_rank(client), collection)
    print(f"\n{'duplicates':<20}{'asked':>6}  {'hit@1':>6}  {'recall@5':>8}  {'hit@10':>6}  {'p50 ms':>7}")
    print(plain.row("BM25"))
    print(ours.row("Loom"))
    return fmean(ours.recall_5) > fmean(plain.recall_5) and fmean(ours.hit_10) > fmean(plain.hit_10)
