"""The data sets as small stores in memory, searchable by words and by meaning, for what is fitted without a server.

A store can be asked as a whole or with a part of its records alone: the words' scores then
follow that part, as they would in a store of it.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from math import log
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import talks
from documents import read
from loom.models.interface import Embedder
from loom.retrieval import dates
from loom.retrieval.passages import split_passages
from loom.retrieval.speakers import ROLES
from loom.retrieval.tokens import document, query
from loom.storage.indexes import TextQuery

Floats = NDArray[np.float64]
Vectors = NDArray[np.float32]

K1, B = 1.2, 0.75
RARITY_MIN = 1e-6
"""What a word counts that half of the records hold, as in FTS5."""

TIMEOUT_S = 3_600.0
AT_ONCE = 128
TALKS = ("locomo-dev", "beam-100k-dev")
DOCUMENTS = ("xquad/en", "cosqa-dev")


@dataclass(frozen=True)
class Asked:
    """A question, and the places of the records that answer it; `adversarial` ones name the true question's."""

    text: str
    gold: frozenset[int]
    category: str
    query: TextQuery
    vector: Vectors

    @property
    def is_adversarial(self) -> bool:
        """Whether nothing answers it, though it sounds like a question that is answered."""
        return self.category == talks.ADVERSARIAL


@dataclass
class Store:
    """Records of one kind of data.

    Attributes:
        kind: which data set.
        name: which part of it.
        texts: the records, in their order.
        asked: the questions that name records.
        is_talk: whether neighbouring records are turns of one talk.
        days: the day of each turn of a talk, in words; empty for other kinds.
        replies: the places of an assistant's turns.
        speakers: who speaks in each record, empty for roles and for what is no turn; none for other kinds.
    """

    kind: str
    name: str
    texts: Sequence[str]
    is_talk: bool
    owners: NDArray[np.int64]
    vectors: Vectors
    random_cosine: float
    question_cosine: float
    asked: list[Asked] = field(default_factory=list[Asked])
    days: Sequence[str] = ()
    replies: frozenset[int] = frozenset()
    speakers: Sequence[str] = ()

    @cached_property
    def indexed(self) -> Sequence[Counter[str]]:
        """How often each record holds each stem, its day's among them."""
        if not self.days:
            return self.counts
        return [count + Counter(document(day).stems) for count, day in zip(self.counts, self.days, strict=True)]

    @cached_property
    def counts(self) -> Sequence[Counter[str]]:
        """How often each record holds each stem."""
        return [Counter(document(text).stems) for text in self.texts]

    def cosines(self, vector: Vectors) -> Floats:
        """Each record's best passage's cosine."""
        best = np.full(len(self.texts), -1.0)
        np.maximum.at(best, self.owners, (self.vectors @ vector).astype(np.float64))
        return best


def words_scores(counts: Sequence[Counter[str]], asked: TextQuery) -> Floats:
    """BM25 of a store of these records alone."""
    lengths = np.array([max(1, count.total()) for count in counts], dtype=np.float64)
    scores = np.zeros(len(counts))
    for stem in dict.fromkeys(asked.stems):
        found = np.array([count[stem] for count in counts], dtype=np.float64)
        holders = float((found > 0).sum())
        if holders:
            rarity = max(RARITY_MIN, log((len(counts) - holders + 0.5) / (holders + 0.5)))
            scores += rarity * found * (K1 + 1) / (found + K1 * (1 - B + B * lengths / lengths.mean()))
    return scores


def embedded(embedder: Embedder, texts: Sequence[str], cache: Path, *, queries: bool = False) -> Vectors:
    """The texts' vectors, from the folder `cache` where they are there."""
    names = "\0".join([embedder.space.fingerprint, str(queries), *texts])
    path = cache / f"{hashlib.sha256(names.encode()).hexdigest()[:24]}.npy"
    if path.exists():
        return np.load(path)
    made: list[Vectors] = []
    for start in range(0, len(texts), AT_ONCE):
        some = texts[start : start + AT_ONCE]
        made += (
            [embedder.embed_query(text, TIMEOUT_S) for text in some]
            if queries
            else list(embedder.embed_passages(some, TIMEOUT_S))
        )
    vectors = np.array(made, dtype=np.float32)
    np.save(path, vectors)
    return vectors


def stores(data: Path, embedder: Embedder, cache: Path) -> Iterator[Store]:
    """Every data set."""
    for kind, found in (
        ("locomo", talks.dialogues(data / "locomo-dev")),
        ("beam", talks.chats(data / "beam-100k-dev")),
    ):
        for talk in found:
            places = {turn.key: place for place, turn in enumerate(talk.turns)}
            questions = [
                (one.text, frozenset(places[key] for key in one.gold), one.category)
                for one in talk.questions
                if one.gold
            ]
            store = made((kind, talk.name), [turn.text for turn in talk.turns], questions, embedder, cache)
            store.days = [day_of(turn.said_at) for turn in talk.turns]
            store.replies = frozenset(places[turn.key] for turn in talk.turns if turn.role == "assistant")
            speakers = [turn.text.partition(": ")[0] for turn in talk.turns]
            store.speakers = ["" if one in ROLES else one for one in speakers]
            yield store
    for folder in DOCUMENTS:
        collection = read(data / folder)
        places = {text.key: place for place, text in enumerate(collection.texts)}
        questions = [
            (text, frozenset(places[one] for one, gain in collection.gains[key].items() if gain), "")
            for key, text in collection.questions.items()
        ]
        texts = [f"{text.title}\n{text.text}".strip() for text in collection.texts]
        yield made((folder, folder), texts, questions, embedder, cache)


def day_of(said_at: str) -> str:
    """The day of a moment as the word index holds it."""
    return dates.day_words(int(datetime.fromisoformat(said_at).timestamp()) * 1_000_000) if said_at else ""


def made(
    names: tuple[str, str],
    texts: Sequence[str],
    questions: Sequence[tuple[str, frozenset[int], str]],
    embedder: Embedder,
    cache: Path,
) -> Store:
    """A store of kind and name, with its vectors."""
    passages = [split_passages(text) or [text] for text in texts]
    owners = np.array([place for place, some in enumerate(passages) for _ in some])
    vectors = embedded(embedder, [passage for some in passages for passage in some], cache)
    of_questions = embedded(embedder, [text for text, _, _ in questions], cache, queries=True)
    asked = [
        Asked(text, gold, category, query(text), vector)
        for (text, gold, category), vector in zip(questions, of_questions, strict=True)
    ]
    is_talk = names[0] in ("locomo", "beam")
    cosines = (embedder.random_cosine, embedder.question_cosine)
    return Store(*names, texts, is_talk, owners, vectors, *cosines, asked)
