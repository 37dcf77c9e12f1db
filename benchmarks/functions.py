"""How well code.search finds the function that a web question asks for, beside plain BM25: CoSQA in BEIR's form.

Each function is a file of a generated source tree, which goes through code.index as a repository would.
"""

import math
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median

from documents import Collection, Rank, bm25_rank, read
from loom.client import Loom

TOP_K = 10
FILES_A_FOLDER = 500
READY_TIMEOUT_S = 3_600.0
PAUSE_S = 1.0


@dataclass
class Places:
    """Where the gold function stood for each question, 0 for not among the first ten; and how long each took."""

    ranks: list[int] = field(default_factory=list[int])
    times_ms: list[float] = field(default_factory=list[float])

    @property
    def ndcg(self) -> float:
        """nDCG@10, with one gold function for each question."""
        return fmean(1 / math.log2(rank + 1) if rank else 0.0 for rank in self.ranks)

    @property
    def reciprocal(self) -> float:
        """MRR@10."""
        return fmean(1 / rank if rank else 0.0 for rank in self.ranks)

    def row(self, name: str) -> str:
        """One line of the table."""
        found = fmean(bool(rank) for rank in self.ranks)
        return (
            f"{name:<20}{len(self.ranks):>6}  {100 * self.ndcg:7.1f}  {self.reciprocal:6.3f}  {100 * found:6.1f}  "
            f"{median(self.times_ms):7.1f}"
        )


def key_of(path: str) -> str:
    """The function's id, from its file's path."""
    return Path(path).stem.removeprefix("f")


def load(client: Loom, collection: Collection, namespace: str, tree: Path) -> float:
    """Write the tree, index it, and wait until it is found by meaning too; the seconds that took."""
    for place, text in enumerate(collection.texts):
        folder = tree / str(place // FILES_A_FOLDER)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"f{text.key}.py").write_text(text.text, encoding="utf-8")
    start_s = time.perf_counter()
    client.call("code.index", {"namespace": namespace, "source": str(tree)})
    while time.perf_counter() - start_s < READY_TIMEOUT_S:
        status = client.call("code.index_status", {"namespace": namespace})
        if status["state"] == "failed":
            raise SystemExit(status["problem"])
        if status["state"] == "ready" and status["embedded"] >= status["symbols"]:
            return time.perf_counter() - start_s
        time.sleep(PAUSE_S)
    raise SystemExit("the functions were not indexed in time")


def loom_rank(client: Loom, namespace: str) -> Rank:
    """Ranks through a running server."""

    def rank(question: str) -> list[str]:
        answer = client.call("code.search", {"namespace": namespace, "query": question, "top_k": TOP_K})
        return list(dict.fromkeys(key_of(hit["path"]) for hit in answer["results"]))

    return rank


def ask(rank: Rank, collection: Collection) -> Places:
    """Ask every question."""
    places = Places()
    for key, question in collection.questions.items():
        start_s = time.perf_counter()
        found = rank(question)
        places.times_ms.append((time.perf_counter() - start_s) * 1000)
        gold = collection.gains[key]
        places.ranks.append(next((place for place, one in enumerate(found, 1) if one in gold), 0))
    return places


def compare(client: Loom, folder: Path, namespace: str) -> bool:
    """Print the table; whether Loom beats plain BM25 by nDCG and by reciprocal rank."""
    collection = read(folder)
    with tempfile.TemporaryDirectory() as tree:
        took_s = load(client, collection, namespace, Path(tree))
    plain = ask(bm25_rank(collection.texts), collection)
    ours = ask(loom_rank(client, namespace), collection)
    print(
        f"{namespace:<20}{'asked':>6}  {'nDCG@10':>7}  {'MRR@10':>6}  {'hit@10':>6}  {'p50 ms':>7}   "
        f"indexed in {took_s:.0f} s"
    )
    print(plain.row("BM25"))
    print(ours.row("Loom"))
    return ours.ndcg > plain.ndcg and ours.reciprocal > plain.reciprocal
