"""How often search.query finds what answers a question, beside plain BM25 on the same texts; a leg for each data set.

Each dialogue of LoCoMo and each chat of BEAM goes through the public HTTP API into a running
server: every turn is a memory with its speaker and time, and every question is asked with
`search.query`. The legs `conversations` and `beam-conversations` append the same turns as conversations, and
ask `conversation.search`. `scifact` and `xquad` are documents, see `documents.py`; `xquad-across` asks in another
language than the documents', which the built-in model cannot, so it is left out with that. `duplicates` are
bug reports, see `issues.py`; `code` is functions, see `functions.py`. BM25 ranks the same texts with `bm25s`,
English stop words out and stems in.

    python benchmarks/quality.py --data FOLDER [--url URL] [--leg locomo]... [--recipe NAME] [--embedder NAME]
"""

import argparse
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import ablate
import filters
import functions
import issues
import talks
import turns
from documents import across, compare
from loom.client import Loom
from server import running
from talks import Dialogue

XQUAD = ("en", "de", "zh")
EMBEDDER = "builtin"
CLIENT_TIMEOUT_S = 120.0
"""A write of long turns waits for its vectors behind those of earlier ones."""


@dataclass(frozen=True)
class Bench:
    """A running server's client, the folder of the data sets, and the recipe that memories are asked with."""

    client: Loom
    data: Path
    recipe: str


@contextmanager
def client_for(url: str | None, embedder: str) -> Iterator[Loom]:
    """A client of the server at `url`, or of one with this embedder that is started for the benchmark."""
    if url:
        with Loom(url, timeout_s=CLIENT_TIMEOUT_S) as client:
            yield client
        return
    with (
        tempfile.TemporaryDirectory() as home,
        running(Path(home), embedder=embedder) as server,
        Loom(server.url, timeout_s=CLIENT_TIMEOUT_S) as client,
    ):
        yield client


def locomo(bench: Bench) -> bool:
    """LoCoMo's turns as memories; whether search.query beats plain BM25."""
    return talk_memories(bench, "locomo", list(talks.dialogues(bench.data / "locomo-dev")))


def beam(bench: Bench) -> bool:
    """BEAM's messages as memories; whether search.query beats plain BM25."""
    return talk_memories(bench, "beam", list(talks.chats(bench.data / "beam-100k-dev")))


def conversations(bench: Bench) -> bool:
    """LoCoMo's turns as conversations, asked by conversation.search; whether that beats plain BM25."""
    return talk_conversations(bench, "conversations", list(talks.dialogues(bench.data / "locomo-dev")))


def beam_conversations(bench: Bench) -> bool:
    """BEAM's messages as conversations, asked by conversation.search; whether that beats plain BM25."""
    return talk_conversations(bench, "beam conversations", list(talks.chats(bench.data / "beam-100k-dev")))


def talk_memories(bench: Bench, name: str, found: Sequence[Dialogue]) -> bool:
    """Load and ask; whether Loom finds more than BM25."""
    for dialogue in found:
        turns.load_memories(bench.client, dialogue, f"{name}-{dialogue.name}")
    rankers: dict[str, Callable[[Dialogue], turns.Rank]] = {
        "BM25": lambda dialogue: turns.bm25_rank(dialogue.turns),
        "Loom": lambda dialogue: turns.memory_rank(bench.client, f"{name}-{dialogue.name}", bench.recipe),
    }
    tallies = turns.compare(f"{name} {bench.recipe}", found, rankers)
    filters.check(bench.client, f"{name}-{found[0].name}", found[0])
    return tallies["Loom"].hit_5() > tallies["BM25"].hit_5()


def talk_conversations(bench: Bench, name: str, found: Sequence[Dialogue]) -> bool:
    """Append and ask; whether Loom finds more than BM25."""
    space = f"{name.replace(' ', '-')}-talk"
    for dialogue in found:
        turns.load_conversations(bench.client, dialogue, f"{space}-{dialogue.name}")
    rankers: dict[str, Callable[[Dialogue], turns.Rank]] = {
        "BM25": lambda dialogue: turns.bm25_rank(dialogue.turns),
        "Loom": lambda dialogue: turns.conversation_rank(bench.client, f"{space}-{dialogue.name}"),
    }
    tallies = turns.compare(name, found, rankers)
    return tallies["Loom"].hit_5() > tallies["BM25"].hit_5()


def xquad(bench: Bench) -> bool:
    """Questions and the paragraphs they were asked of, in English, German and Chinese, each in its own language."""
    better = [compare(bench.client, bench.data / "xquad" / one, f"xquad-{one}") for one in XQUAD]
    return all(better)


def xquad_across(bench: Bench) -> bool:
    """The same, each language's questions over each other language's paragraphs."""
    return across(bench.client, [bench.data / "xquad" / one for one in XQUAD], "xquad")


def scifact(bench: Bench) -> bool:
    """Claims and the abstracts that speak to them."""
    return compare(bench.client, bench.data / "scifact", "scifact")


def duplicates(bench: Bench) -> bool:
    """Bug reports with known duplicates; whether tracker.duplicate_check beats plain BM25."""
    return issues.compare(bench.client, bench.data / "bugs-hadoop")


def code(bench: Bench) -> bool:
    """Web questions and the functions that answer them."""
    return functions.compare(bench.client, bench.data / "cosqa-dev", "cosqa")


LEGS: dict[str, Callable[[Bench], bool]] = {
    "code": code,
    "locomo": locomo,
    "beam": beam,
    "conversations": conversations,
    "beam-conversations": beam_conversations,
    "scifact": scifact,
    "xquad": xquad,
    "xquad-across": xquad_across,
    "duplicates": duplicates,
}


def main() -> int:
    """Run the legs; 1 when Loom does not beat plain BM25 in one."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path, required=True, help="folder that holds a folder for each leg")
    options.add_argument("--url", help="a running server; one is started when left out")
    options.add_argument("--leg", action="append", choices=LEGS, help="this leg alone; may be repeated")
    options.add_argument("--embedder", default=EMBEDDER, help="the setting embedder of the server that is started")
    options.add_argument("--recipe", default="", help="the recipe that memories are asked with")
    options.add_argument("--ablate", action="store_true", help="print what each part of the ranking is worth, and stop")
    given = options.parse_args()
    if given.ablate:
        ablate.table(given.data, None)
        return 0
    legs = given.leg or [name for name in LEGS if name != "xquad-across" or given.embedder != EMBEDDER]
    with client_for(given.url, given.embedder) as client:
        better = [LEGS[name](Bench(client, given.data, given.recipe)) for name in legs]
    return 0 if all(better) else 1


if __name__ == "__main__":
    raise SystemExit(main())
