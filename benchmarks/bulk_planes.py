"""The store of the six-plane benchmark: every plane filled in one namespace, straight through the planes' own writes.

Rows and both indexes are those of real writes; the vectors of the bulk are stand-ins, and so is the source
code, which is made of names without a parser. The namespace is a code scope whose issues stand in it as well.
"""

import random
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count, islice

import bare_postgres
import bulk
from engines import Engine
from loom import compose
from loom.access import namespaces
from loom.ledger import writes
from loom.ledger.indexing import Embedded
from loom.ledger.rules import Attributes, Place, draft
from loom.planes.code import store as code_store
from loom.planes.code import symbols
from loom.planes.code.extract import Symbol, Use
from loom.planes.code.files import Text
from loom.planes.code.grammar import FUNCTION
from loom.planes.conversation import indexing as turn_indexing
from loom.planes.conversation import rules as turn_rules
from loom.planes.conversation import store as turn_store
from loom.planes.conversation.store import Session
from loom.planes.knowledge import indexing as chunk_indexing
from loom.planes.knowledge import rules as document_rules
from loom.planes.knowledge.chunks import Chunk
from loom.planes.knowledge.rules import Document
from loom.planes.tracker import embeds as issue_indexing
from loom.planes.tracker import store as issue_store
from loom.planes.tracker import traits
from loom.planes.tracker.rules import Content, Issue
from loom.storage.indexes import Vector
from loom.storage.interface import Database, Transaction

NAMESPACE = "everything"
REPOSITORY = "made/everything"
AGENT = "bench"
NOBODY = "-"
TURNS_EACH, CHUNKS_EACH, SYMBOLS_EACH, SECTIONS = 100, 40, 20, 40
TURN_WORDS, CHUNK_WORDS, ISSUE_WORDS, SECTION_WORDS = 40, 150, 80, 60
LINES_A_SYMBOL = 4
MARK = "planes.txt"
YEAR_US = 365 * 24 * 3600 * 1_000_000
FIRST_US = 1_700_000_000 * 1_000_000
FAILURES = ("TimeoutError", "NullPointerException", "ConnectionResetError", "KeyError", "SIGSEGV", "OutOfMemoryError")


@dataclass(frozen=True)
class Sizes:
    """How much there is of each kind."""

    memories: int
    chunks: int
    turns: int
    issues: int
    symbols: int


def sizes(rows: int) -> Sizes:
    """The sizes beside `rows` memories, in the proportions that the goals are set for."""
    return Sizes(memories=rows, chunks=rows // 5, turns=rows, issues=rows // 20, symbols=rows // 2)


class Words:
    """An endless text in the made language."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._words = bulk.vocabulary()
        self._weights = [1 / (rank + 2) for rank in range(len(self._words))]
        self._drawn = self._forever()

    def _forever(self) -> Iterator[str]:
        while True:
            yield from self._random.choices(self._words, self._weights, k=100_000)

    def text(self, length: int) -> str:
        """The next so many words."""
        return " ".join(islice(self._drawn, length))

    def name(self) -> str:
        """Two words as one writes a function's name."""
        return "_".join(islice(self._drawn, 2))

    def failure(self) -> str:
        """A report's last lines: the failure, and the calls that led to it."""
        calls = "\n".join(
            f'  File "/srv/{self.name()}.py", line {self._random.randint(1, 900)}, in {self.name()}' for _ in range(5)
        )
        return f"Traceback (most recent call last):\n{calls}\n{self._random.choice(FAILURES)}: {self.text(6)}"


def defects(amount: int) -> list[str]:
    """Questions about a failure, which the tracker answers too."""
    words = Words(77)
    return [f"{words.text(5)} fails with {FAILURES[place % len(FAILURES)]}" for place in range(amount)]


def load(engine: Engine, given: Sizes) -> None:
    """Fill the store unless it is full already."""
    mark = engine.home / MARK
    if mark.exists() and mark.read_text("ascii") == str(given):
        return
    settings = engine.settings
    database = compose.database(settings)
    space = bulk.real_embedder().space
    filler = Filler(database, space.fingerprint, space.dimension)
    filler.scope(settings.code_org, settings.tracker_org)
    filler.run(settings.org, given.memories, 500, filler.memories)
    filler.run(settings.org, SECTIONS, SECTIONS, filler.sections)
    filler.run(settings.org, given.turns, 10 * TURNS_EACH, filler.turns)
    filler.run(settings.org, given.chunks, 10 * CHUNKS_EACH, filler.chunks)
    filler.run(settings.tracker_org, given.issues, 250, filler.issues)
    filler.run(settings.code_org, given.symbols, 40 * SYMBOLS_EACH, filler.symbols)
    database.maintain()
    database.close()
    if engine.database_url:
        bare_postgres.settle(engine.database_url)
    mark.write_text(str(given), "ascii")


class Filler:
    """Writes the bulk, a transaction at a time."""

    def __init__(self, database: Database, space: str, dimension: int) -> None:
        self.database = database
        self.space = space
        self.dimension = dimension
        self.words = Words(1)
        self.numbers = count(1)

    def run(self, org: str, amount: int, at_once: int, write: Callable[[Transaction, Sequence[int]], None]) -> None:
        """Write `amount` of one kind into an org."""
        for numbers in batched(range(amount), at_once):
            with self.database.transaction(org, write=True) as tx:
                write(tx, numbers)
            print(f"\rloaded {numbers[-1] + 1} {write.__name__}    ", end="", file=sys.stderr)
        print(file=sys.stderr)

    def scope(self, code_org: str, tracker_org: str) -> None:
        """Make the namespace a code scope with a tracker, as tokenless calls find them."""
        with self.database.transaction(tracker_org, write=True) as tx:
            namespaces.create(tx, NAMESPACE, "tracker", "", FIRST_US)
        with self.database.transaction(code_org, write=True) as tx:
            namespaces.create(tx, NAMESPACE, "code", "", FIRST_US)
            namespaces.bind(tx, NAMESPACE, REPOSITORY, NAMESPACE)
            stamp = tx.stamp()
            asked = {"source": "https://code.example/made/everything", "source_kind": "git", "name": REPOSITORY}
            tx.run(code_store.ASK, namespace=NAMESPACE, stamp=stamp, revision="", vectors=1, now=FIRST_US, **asked)
            done = {"state": code_store.READY, "problem": "", "now": FIRST_US}
            tx.run(code_store.ENDED, repository_id=stamp, generation=stamp, **done)

    def _vectors(self, amount: int) -> Sequence[Vector]:
        return bulk.stand_ins(amount, self.dimension, seed=next(self.numbers))

    def memories(self, tx: Transaction, numbers: Sequence[int]) -> None:
        """Memories, through the ledger."""
        self._rows(tx, [(f"bulk/{number}", bulk.WORDS_EACH, Attributes()) for number in numbers])

    def sections(self, tx: Transaction, numbers: Sequence[int]) -> None:
        """Sections of the profile."""
        profile = Attributes(memory_type="profile")
        self._rows(tx, [(f"section{number}", SECTION_WORDS, profile) for number in numbers])

    def _rows(self, tx: Transaction, rows: Sequence[tuple[str, int, Attributes]]) -> None:
        place = Place(NAMESPACE, AGENT, NOBODY)
        for (key, length, attributes), vector in zip(rows, self._vectors(len(rows)), strict=True):
            made = draft(self.words.text(length), attributes)
            writes.write(tx, None, (place, key), made, Embedded(self.space, [vector]))

    def turns(self, tx: Transaction, numbers: Sequence[int]) -> None:
        """Conversations of a hundred turns, in which two take turns."""
        for group in batched(numbers, TURNS_EACH):
            key = tx.stamp()
            first_us = FIRST_US + (group[0] * 60_000_000) % YEAR_US
            session = Session(
                session_key=key,
                namespace=NAMESPACE,
                user_id=NOBODY,
                session_id=f"chat {group[0]}",
                agent=AGENT,
                title=self.words.text(5),
                titled=True,
                turn_count=len(group),
                next_seq=0,
                next_place=0,
                first_at=first_us,
                last_at=first_us + len(group) * 60_000_000,
                created_at=first_us,
            )
            turn_store.put_session(tx, replace(session, next_seq=len(group), next_place=len(group)))
            turns: list[turn_store.Turn] = []
            for place in range(len(group)):
                content = self.words.text(TURN_WORDS)
                role = "user" if place % 2 == 0 else "assistant"
                message = turn_rules.Message(f"m{place}", role, "", first_us + place * 60_000_000, content)
                made = turn_rules.drafted(message, "messages")
                its = replace(session, next_seq=place, next_place=place)
                turns.append(turn_store.turn_row(its, tx.stamp(), made, AGENT, ""))
            turn_store.put_turns(tx, turns)
            texts = [turn_rules.meaning_text(turn.speaker, turn.said) for turn in turns]
            vectors = {text: [vector] for text, vector in zip(texts, self._vectors(len(texts)), strict=True)}
            turn_indexing.index(tx, session, turns, turn_indexing.Ready(self.space, vectors))

    def chunks(self, tx: Transaction, numbers: Sequence[int]) -> None:
        """Passages of documents."""
        for group in batched(numbers, CHUNKS_EACH):
            version = tx.stamp()
            document = Document(
                document_id=version,
                namespace=NAMESPACE,
                agent=AGENT,
                user_id=NOBODY,
                session_id="",
                uri=f"docs/{group[0]}.md",
                revision=1,
                version=version,
                title=self.words.text(4),
                tags=(),
                state=document_rules.READY,
                reason="",
                cut_until=None,
                chunk_count=0,
                space=self.space,
            )
            made = [
                Chunk((self.words.text(3),), line * 10 + 1, line * 10 + 10, 0, 0, self.words.text(CHUNK_WORDS))
                for line in range(len(group))
            ]
            document = chunk_indexing.put(tx, document, made, self._vectors(len(made)), self.space)
            chunk_indexing.complete(tx, document, self.space)

    def issues(self, tx: Transaction, numbers: Sequence[int]) -> None:
        """Reports with a stack trace each."""
        for number, vector in zip(numbers, self._vectors(len(numbers)), strict=True):
            title, body = self.words.text(8), f"{self.words.text(ISSUE_WORDS)}\n{self.words.failure()}"
            stamp = tx.stamp()
            content = Content(
                number=number + 1,
                title=title,
                body=body,
                state="open" if number % 2 else "closed",
                component=f"part{number % 20}",
                version=f"1.{number % 9}",
                labels=("bug",),
                url="",
                duplicate_of=None,
                created_at=FIRST_US + number * 60_000_000,
                updated_at=None,
                traits=traits.parsed(f"{title}\n{body}"),
            )
            issue = Issue(stamp, NAMESPACE, NOBODY, AGENT, "", stamp, content)
            issue_store.put(tx, issue, "")
            issue_indexing.index(tx, issue, self.space, vector)

    def symbols(self, tx: Transaction, numbers: Sequence[int]) -> None:
        """Functions, each of which calls three others."""
        for group in batched(numbers, SYMBOLS_EACH):
            path = f"src/part{group[0] // 1000}/file{group[0]}.py"
            found: list[Symbol] = []
            uses: list[Use] = []
            texts: list[str] = []
            for place in range(len(group)):
                name, said = self.words.name(), self.words.text(12)
                line = place * LINES_A_SYMBOL + 1
                signature = f"def {name}({self.words.name()}, {self.words.name()})"
                found.append(Symbol(FUNCTION, name, name, signature, said, line, line + LINES_A_SYMBOL - 1))
                uses += [Use(self.words.name(), "call", "", line + 2) for _ in range(3)]
                texts.append(f"{name}\n{path}\n{signature}\n{said}")
            source = "\n\n".join(texts)
            made = symbols.Made(
                path=path,
                digest=f"{group[0]:064x}",
                text=Text(source, "python"),
                broken=False,
                symbols=found,
                texts=texts,
                uses=uses,
            )
            symbols.put(tx, NAMESPACE, made)
            held = _ids_in(tx, path)
            for item_id, vector in zip(held, self._vectors(len(held)), strict=True):
                tx.vectors.put(symbols.shelf(NAMESPACE), item_id, self.space, [vector])
            tx.run(symbols.EMBEDDED, namespace=NAMESPACE, space=self.space, ids=held)


def _ids_in(tx: Transaction, path: str) -> list[int]:
    file = code_store.file(tx, NAMESPACE, path)
    held = symbols.in_files(tx, NAMESPACE, [file.file_id]) if file is not None else {}
    return [one.item_id for group in held.values() for one in group]


def batched(numbers: Sequence[int], at_once: int) -> Iterator[Sequence[int]]:
    """The numbers in groups of `at_once`."""
    return (numbers[start : start + at_once] for start in range(0, len(numbers), at_once))
