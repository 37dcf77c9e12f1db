"""The builder that needs no language model: it settles what a fact names, or says plainly in what is nearest.

A value is taken from a statement whose key, `profile:` tag or JSON field names the property; else from the
statements nearest to the property's name and description, when a value of its kind stands there and is likely
enough to be the property's (`scoring`). What is about others, unsure, wished, or gives orders settles nothing.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from hashlib import sha256
from threading import Lock
from time import monotonic
from typing import Final

import numpy as np

from loom.canonical import Json, encoded, measured
from loom.models.interface import Embedder, EmbedderFailed
from loom.planes.profile.structured import claims, fitted, properties, settling
from loom.planes.profile.structured import schema as schemas
from loom.planes.profile.structured.claims import Board
from loom.planes.profile.structured.interface import BuildFailed, Fact, Settled
from loom.planes.profile.structured.properties import Kind, Wanted
from loom.planes.profile.structured.schema import Misfit, Schema
from loom.planes.profile.structured.scoring import Model
from loom.planes.profile.structured.settling import Claim, Standing
from loom.planes.profile.structured.statements import Statement, statements
from loom.retrieval import values
from loom.storage.indexes import Vector

SCHEMAS_KEPT_MAX: Final = 64
FACTS_MAX: Final = 10_000
VECTORS_KEPT_MAX: Final = 20_000
"""Vectors of facts that are kept, by the hash of their text: about 30 MB. A user's next build embeds what is new."""

FACT_CHARACTERS_MAX: Final = 4_000
_LENGTH_MIN: Final = 1e-6


class RulesBuilder:
    """Implements `interface.Builder` by rules. Safe to call from several threads.

    Args:
        embedder: makes the vectors of properties and of facts.
        model: the weights of `scoring`.
    """

    name = "rules"

    def __init__(self, embedder: Embedder, model: Model = fitted.MODEL) -> None:
        self._embedder = embedder
        self._model = model
        self._kept: OrderedDict[tuple[str, str], np.ndarray[tuple[int, int], np.dtype[np.float32]]] = OrderedDict()
        self._lately: OrderedDict[bytes, Vector] = OrderedDict()
        self._lock = Lock()

    def build(self, schema: Mapping[str, Json], facts: Sequence[Fact], timeout_s: float) -> Mapping[str, Settled]:
        """The properties that the facts settle; see `interface.Builder`.

        Raises:
            BuildFailed: there are too many facts, no vectors, or not enough time.
        """
        deadline = monotonic() + timeout_s
        if len(facts) > FACTS_MAX:
            raise BuildFailed(f"a build takes at most {FACTS_MAX} facts")
        opened = schemas.opened(encoded(dict(schema)))
        wanted = properties.wanted(schema) if opened else []
        said = statements(facts) if wanted else []
        if opened is None or not said:
            return {}
        board = self.board(schema, wanted, said, deadline)
        standing = board.standings(deadline)
        made: dict[str, Settled] = {}
        for one in wanted:
            settled = _settled(one, standing, opened)
            if settled is not None:
                made[one.name] = settled
        return made

    def board(
        self, schema: Mapping[str, Json], wanted: Sequence[Wanted], said: Sequence[Statement], deadline: float
    ) -> Board:
        """The statements with how near each is to each property."""
        return Board(wanted, said, self._nearness(schema, wanted, said, deadline), self._model)

    def _nearness(
        self, schema: Mapping[str, Json], wanted: Sequence[Wanted], said: Sequence[Statement], deadline: float
    ) -> claims.Floats:
        """For each property or part, in the order of `walk`, and each statement: 1 the same, 0 and less unrelated."""
        asked = self._asked(schema, wanted, deadline)
        facts = list({one.fact.memory_id: one.fact for one in said}.values())
        known = self._remembered({fact.memory_id: _text(fact) for fact in facts}, deadline)
        rows = np.stack([known[one.fact.memory_id] for one in said])
        cosines = np.round(asked @ rows.T, 4)
        floor = self._embedder.random_cosine
        return np.maximum((cosines - floor) / (1.0 - floor), -1.0)

    def _asked(
        self, schema: Mapping[str, Json], wanted: Sequence[Wanted], deadline: float
    ) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
        key = (measured(dict(schema)).sha256, self._embedder.space.fingerprint)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        parts = [part for one in wanted for part in one.walk()]
        names = [" ".join(part.words) or part.name for part in parts]
        vectors = np.stack(
            self._embedded([*names, *(part.gist or name for part, name in zip(parts, names, strict=True))], deadline)
        )
        both = vectors[: len(parts)] + vectors[len(parts) :]
        made = (both / np.maximum(np.linalg.norm(both, axis=1, keepdims=True), _LENGTH_MIN)).astype(np.float32)
        with self._lock:
            self._kept[key] = made
            while len(self._kept) > SCHEMAS_KEPT_MAX:
                self._kept.popitem(last=False)
        return made

    def _remembered(self, texts: Mapping[str, str], deadline: float) -> dict[str, Vector]:
        """The vectors of texts; those of texts that were embedded lately are not made again."""
        keys = {name: sha256(text.encode("utf-8", "replace")).digest() for name, text in texts.items()}
        with self._lock:
            found = {name: self._lately[key] for name, key in keys.items() if key in self._lately}
        new = [name for name in texts if name not in found]
        made = dict(zip(new, self._embedded([texts[name] for name in new], deadline), strict=True))
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
            raise BuildFailed("the embedder gave no vectors") from failure


def _text(fact: Fact) -> str:
    """The text under which the store keeps a fact's vector."""
    return values.searchable(fact.memory_key, fact.value, fact.tags)[:FACT_CHARACTERS_MAX]


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
