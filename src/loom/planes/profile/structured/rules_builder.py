"""The builder that needs no language model: it settles what a fact names, or says plainly in what is nearest.

A value is taken from a statement whose key, `profile:` tag or JSON field names the property; else from the
statements nearest to the property's name and description, when a value of its kind stands there and is likely
enough to be the property's (`scoring`). What is about others, unsure, wished, or gives orders settles nothing.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from threading import Lock
from time import monotonic
from typing import Final

import numpy as np

from loom.canonical import Json, encoded
from loom.models.interface import Embedder, EmbedderFailed
from loom.planes.profile.structured import claims, fitted, properties, settling
from loom.planes.profile.structured import schema as schemas
from loom.planes.profile.structured.claims import Board
from loom.planes.profile.structured.interface import BuildFailed, Fact, Settled
from loom.planes.profile.structured.kept import Kept
from loom.planes.profile.structured.properties import Kind, Wanted
from loom.planes.profile.structured.schema import Misfit, Schema
from loom.planes.profile.structured.scoring import Model
from loom.planes.profile.structured.settling import Claim, Standing
from loom.planes.profile.structured.statements import Statement
from loom.retrieval import passages, values
from loom.storage.indexes import Vector

SCHEMAS_KEPT_MAX: Final = 64
FACTS_MAX: Final = 10_000
VECTORS_KEPT_MAX: Final = 20_000
"""Vectors of texts that are kept, by their hash: about 30 MB. A next build embeds what is new."""

_LENGTH_MIN: Final = 1e-6
Floats = np.ndarray[tuple[int, int], np.dtype[np.float32]]


@dataclass(frozen=True)
class _Asked:
    """What a schema asks for, read once."""

    key: bytes
    opened: Schema | None
    wanted: Sequence[Wanted]


class RulesBuilder:
    """Implements `interface.Builder` by rules. Safe to call from several threads.

    Args:
        embedder: makes the vectors of properties, and of the facts that have none in its space.
        model: the weights of `scoring`.
    """

    name = "rules"

    def __init__(self, embedder: Embedder, model: Model = fitted.MODEL) -> None:
        self._embedder = embedder
        self._model = model
        self._asked: OrderedDict[bytes, _Asked] = OrderedDict()
        self._vectors: OrderedDict[bytes, Floats] = OrderedDict()
        self._statements = Kept()
        self._lately: OrderedDict[bytes, Vector] = OrderedDict()
        self._lock = Lock()

    @property
    def space(self) -> str:
        """The embedder's space."""
        return self._embedder.space.fingerprint

    def build(self, schema: Mapping[str, Json], facts: Sequence[Fact], timeout_s: float) -> Mapping[str, Settled]:
        """The properties that the facts settle; see `interface.Builder`.

        Raises:
            BuildFailed: there are too many facts, no vectors, or not enough time.
        """
        deadline = monotonic() + timeout_s
        if len(facts) > FACTS_MAX:
            raise BuildFailed(f"a build takes at most {FACTS_MAX} facts")
        asked = self._read(schema)
        opened, wanted = asked.opened, asked.wanted
        said = self._statements.statements(facts) if wanted else []
        if opened is None or not said:
            return {}
        known = {fact.memory_id: fact.vector for fact in facts if fact.vector is not None}
        board = Board(wanted, said, self._nearness(asked, said, known, deadline), self._model)
        standing = board.standings(deadline)
        made: dict[str, Settled] = {}
        for one in wanted:
            settled = _settled(one, standing, opened)
            if settled is not None:
                made[one.name] = settled
        return made

    def board(self, schema: Mapping[str, Json], said: Sequence[Statement], deadline: float) -> Board:
        """Statements of facts that have no vectors yet, with how near each is to each property."""
        asked = self._read(schema)
        return Board(asked.wanted, said, self._nearness(asked, said, {}, deadline), self._model)

    def _read(self, schema: Mapping[str, Json]) -> _Asked:
        text = encoded(dict(schema))
        key = sha256(text.encode("utf-8", "replace")).digest()
        with self._lock:
            known = self._asked.get(key)
            if known is not None:
                self._asked.move_to_end(key)
                return known
        opened = schemas.opened(text)
        made = _Asked(key, opened, properties.wanted(schema) if opened else ())
        with self._lock:
            self._asked[key] = made
            while len(self._asked) > SCHEMAS_KEPT_MAX:
                self._asked.popitem(last=False)
        return made

    def _nearness(
        self, asked: _Asked, said: Sequence[Statement], known: Mapping[str, Vector], deadline: float
    ) -> claims.Floats:
        """For each property or part, in the order of `walk`, and each statement: 1 the same, 0 and less unrelated."""
        wanted = self._wanted_vectors(asked, deadline)
        facts = {one.fact.memory_id: one.fact for one in said}
        dimension = self._embedder.space.dimension
        had = {name: vector for name, vector in known.items() if name in facts and vector.shape == (dimension,)}
        missing = {name: passage_of(fact) for name, fact in facts.items() if name not in had}
        vectors = {**had, **self._remembered(missing, deadline)}
        places = {name: place for place, name in enumerate(facts)}
        near = wanted @ np.stack([vectors[name] for name in facts]).T
        cosines = np.round(near, 4)[:, [places[one.fact.memory_id] for one in said]]
        floor = self._embedder.random_cosine
        return np.maximum((cosines - floor) / (1.0 - floor), -1.0)

    def _wanted_vectors(self, asked: _Asked, deadline: float) -> Floats:
        with self._lock:
            if asked.key in self._vectors:
                self._vectors.move_to_end(asked.key)
                return self._vectors[asked.key]
        parts = [part for one in asked.wanted for part in one.walk()]
        names = [" ".join(part.words) or part.name for part in parts]
        texts = [*names, *(part.gist or name for part, name in zip(parts, names, strict=True))]
        made = self._remembered({text: text for text in texts}, deadline)
        vectors = np.stack([made[text] for text in texts])
        both = vectors[: len(parts)] + vectors[len(parts) :]
        directions = (both / np.maximum(np.linalg.norm(both, axis=1, keepdims=True), _LENGTH_MIN)).astype(np.float32)
        with self._lock:
            self._vectors[asked.key] = directions
            while len(self._vectors) > SCHEMAS_KEPT_MAX:
                self._vectors.popitem(last=False)
        return directions

    def _remembered(self, texts: Mapping[str, str], deadline: float) -> dict[str, Vector]:
        """The vectors of texts; those of texts that were embedded lately are not made again."""
        keys = {name: sha256(text.encode("utf-8", "replace")).digest() for name, text in texts.items()}
        with self._lock:
            found = {name: self._lately[key] for name, key in keys.items() if key in self._lately}
        new = [name for name in texts if name not in found]
        embedded = self._embedded([texts[name] for name in new], deadline)
        made = {name: _as_kept(vector) for name, vector in zip(new, embedded, strict=True)}
        with self._lock:
            self._lately.update((keys[name], vector) for name, vector in made.items())
            for name in found:
                if keys[name] in self._lately:
                    self._lately.move_to_end(keys[name])
            while len(self._lately) > VECTORS_KEPT_MAX:
                self._lately.popitem(last=False)
        return {**found, **made}

    def _embedded(self, texts: Sequence[str], deadline: float) -> list[Vector]:
        if not texts:
            return []
        left_s = deadline - monotonic()
        if left_s <= 0:
            raise BuildFailed("no time was left for the embedder")
        try:
            return self._embedder.embed_passages(texts, left_s)
        except EmbedderFailed as failure:
            raise BuildFailed("the embedder gave no vectors", rest_s=failure.rest_s) from failure


def passage_of(fact: Fact) -> str:
    """The text of the first vector that the store keeps of a fact."""
    text = values.searchable(fact.memory_key, fact.value, fact.tags)
    return next(iter(passages.split_passages(text)), "")


def _as_kept(vector: Vector) -> Vector:
    """A vector as the store keeps it, so that a profile does not depend on whether it was there already."""
    return vector.astype(np.float16).astype(np.float32)


def _settled(one: Wanted, standing: Mapping[tuple[str, ...], Standing], opened: Schema) -> Settled | None:
    """The value of a property as far as the schema allows it; of an object, without the parts that it does not."""
    value, support = _gathered(one, standing)
    for _ in range(len(one.parts) + 1):
        if value is None or not support:
            return None
        wrong = _parts_wrong(one.name, value, opened)
        if wrong is None:
            return Settled(value, settling.sources(support))
        value = {name: part for name, part in value.items() if name not in wrong} if isinstance(value, dict) else None
        value = value if wrong and value else None
    return None


def _parts_wrong(name: str, value: Json, opened: Schema) -> set[str] | None:
    """The parts of a value that the schema does not allow, none named when it is the whole; None when it fits."""
    try:
        if name in opened.fitting({name: value}):
            return None
    except Misfit:
        return set()
    faults = opened.validator.faults({name: value})
    return {str(fault.path[1]) for fault in faults if len(fault.path) > 1}


def _gathered(one: Wanted, standing: Mapping[tuple[str, ...], Standing]) -> tuple[Json, list[Claim]]:
    """The value of a property; of an object, what of its parts is settled."""
    if one.kind is not Kind.OBJECT:
        mine = standing.get(one.path)
        return (None, []) if mine is None else (mine.value, mine.support)
    made: dict[str, Json] = {}
    support: list[Claim] = []
    for part in one.parts:
        value, its = _gathered(part, standing)
        if value is not None:
            made[part.name] = value
            support.extend(its)
    support.sort(key=lambda claim: claim.statement.moment)
    return (made, support) if made else (None, [])
