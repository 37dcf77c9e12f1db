"""The big store of the speed benchmark: made texts, stand-in vectors, loaded straight through the ledger.

Texts, rows and both indexes are those of real writes. Stood in: the vectors, and in
PostgreSQL the vacuum that its own service would get to within minutes.
"""

import random
import sys
from collections.abc import Callable, Sequence

import numpy as np

import bare_postgres
from engines import Engine
from loom import compose, config
from loom.ledger import store, writes
from loom.ledger.indexing import Embedded
from loom.ledger.rules import Attributes, Place, draft
from loom.models.interface import Embedder
from loom.storage.indexes import Vector
from loom.storage.interface import Database

NAMESPACES = 200
BIG_NAMESPACE = "ns000"
WORDS_EACH = 60
VOCABULARY = 20_000
IN_ONE_TRANSACTION = 1000
SHARED_PART = 0.83
"""Share of one common direction in a vector: unrelated texts then have a cosine of about .69, as with bge-small."""
CLUSTERS = 400
MARK = "loaded.txt"

SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "er", "is")]


def key_of(number: int) -> str:
    """The key of the bulk's memory number so and so in the big namespace."""
    return f"bulk/{number * 2}"


def vocabulary() -> list[str]:
    """Made words, always the same."""
    rng = random.Random(3)
    return ["".join(rng.choices(SYLLABLES, k=rng.randint(2, 4))) for _ in range(VOCABULARY)]


def texts(count: int, seed: int, words_each: int = WORDS_EACH) -> list[str]:
    """Texts whose words are as unevenly common as in real language (Zipf)."""
    rng = random.Random(seed)
    words = vocabulary()
    weights = [1 / (rank + 2) for rank in range(len(words))]
    drawn = iter(rng.choices(words, weights, k=count * words_each))
    return [" ".join(next(drawn) for _ in range(words_each)) for _ in range(count)]


def queries(count: int, seed: int = 99) -> list[str]:
    """Questions of eight words from the same language; another seed gives others, which no cache knows yet."""
    return texts(count, seed=seed, words_each=8)


def stand_ins(count: int, dimension: int, seed: int) -> Sequence[Vector]:
    """Unit vectors with a shared direction and clusters."""
    rng = np.random.default_rng(seed)
    shared = rng.standard_normal(dimension)
    shared /= np.linalg.norm(shared)
    centres = np.random.default_rng(5).standard_normal((CLUSTERS, dimension)) / np.sqrt(dimension)
    own = centres[rng.integers(0, CLUSTERS, count)] + rng.standard_normal((count, dimension)) / np.sqrt(dimension)
    own /= np.linalg.norm(own, axis=1, keepdims=True)
    mixed = SHARED_PART * shared + np.sqrt(1 - SHARED_PART**2) * own
    mixed /= np.linalg.norm(mixed, axis=1, keepdims=True)
    return list(mixed.astype(np.float32))


def real_embedder() -> Embedder:
    """The model that the server uses."""
    return compose.models.embedder(config.load())


def load(engine: Engine, rows: int) -> None:
    """Fill the store unless it is full already: half of the rows in one namespace, the rest spread evenly."""
    mark = engine.home / MARK
    if mark.exists() and mark.read_text("ascii") == str(rows):
        return
    settings = engine.settings
    space = real_embedder().space
    database = compose.database(settings)
    made = iter(texts(rows, seed=1))
    for start in range(0, rows, IN_ONE_TRANSACTION):
        vectors = stand_ins(min(IN_ONE_TRANSACTION, rows - start), space.dimension, seed=start)
        with database.transaction(settings.org, write=True) as tx:
            for number, vector in enumerate(vectors, start):
                namespace = BIG_NAMESPACE if number % 2 == 0 else f"ns{1 + number // 2 % (NAMESPACES - 1):03}"
                writes.write(
                    tx,
                    None,
                    (Place(namespace, "bench", "-"), f"bulk/{number}"),
                    draft(next(made), Attributes()),
                    Embedded(space.fingerprint, [vector]),
                )
        print(f"\rloaded {start + len(vectors)}", end="", file=sys.stderr)
    print(file=sys.stderr)
    database.maintain()
    database.close()
    if engine.database_url:
        bare_postgres.settle(engine.database_url)
    mark.write_text(str(rows), "ascii")


def bare_append(engine: Engine) -> Callable[[int], object]:
    """The transaction of profile.append without dispatch, validation and HTTP."""
    settings = engine.settings
    database: Database = compose.database(settings)
    place = Place("append", "bare", "-")

    def append(turn: int) -> None:
        label = f"s{turn // 20}"
        with database.transaction(settings.org, write=True) as tx:
            current = store.exact(tx, place, label)
            text = "" if current is None else f"{current.head.value_text}"[1:-1] + " / "
            writes.write(tx, current, (place, label), draft(f"{text}line {turn}", Attributes(memory_type="profile")))

    return append
