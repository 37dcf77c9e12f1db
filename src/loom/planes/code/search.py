"""Ranks symbols for a question: by their names, by their words, by their meaning.

The weights were measured on CoSQA's development half (`benchmarks/quality.py`): web questions share few
words with the functions that answer them, so meaning leads. nDCG@10 was 40.0 for words alone, 59.6 for meaning
alone, 54.3 for both alike, and 61.0 with 0.15 for words; on either half of the questions 0.1 to 0.2 was best. A
question that is a name is answered by the symbols of that name first.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from loom.planes import candidates
from loom.planes.code import resolve, symbols
from loom.planes.code.grammar import PROTOTYPE
from loom.planes.code.symbols import Held
from loom.retrieval import tokens
from loom.retrieval.fuse import MEANING, WORDS, Fused, fuse
from loom.storage.indexes import Scored, Vector
from loom.storage.interface import Transaction

WEIGHTS: Final = {WORDS: 0.15, MEANING: 0.85}
CANDIDATES_MIN: Final = 100
CANDIDATES_A_HIT: Final = 4
NAMES_MAX: Final = 8
NAMED_MAX: Final = 50
NAME_SCORE: Final = 1.0
"""What a symbol of exactly a name in the question gets on top of the rest."""

NAME: Final = "name"
_NAME_LIKE: Final = re.compile(r"[A-Za-z_$~][\w$]*(?:(?:\.|::|#|->)[A-Za-z_$~][\w$]*)*")
_MARKED: Final = re.compile(r"[_.:#$]|[a-z][A-Z]|[A-Z]{2}[a-z]")


@dataclass(frozen=True, slots=True)
class Quest:
    """What is searched.

    Attributes:
        namespace: where.
        query: the text.
        vector: its embedding; None when there is none.
        space: the vector's space.
        random_cosine: the median cosine of unrelated texts there.
        top_k: at most this many hits.
        kinds: of these kinds; empty for any.
        languages: in these languages; empty for any.
        under: in files whose paths begin so; empty for any.
    """

    namespace: str
    query: str
    vector: Vector | None
    space: str
    random_cosine: float
    top_k: int
    kinds: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    under: str = ""

    def wants(self, symbol: Held) -> bool:
        """Whether the symbol is of those that are asked for."""
        return (
            (not self.kinds or symbol.kind in self.kinds)
            and (not self.languages or symbol.language in self.languages)
            and symbol.path.startswith(self.under)
        )


@dataclass(frozen=True, slots=True)
class Hit:
    """A symbol that was found: how well, and by what."""

    symbol: Held
    score: float
    matched: tuple[str, ...]


def found(tx: Transaction, quest: Quest) -> list[Hit]:
    """The best symbols, at most `top_k`, best first."""
    legs, seen = _legs(tx, quest)
    ranking = fuse(legs, WEIGHTS, {WORDS: 0.0, MEANING: quest.random_cosine})
    named = {one.item_id: (one, weight) for one, weight in _named(tx, quest) if quest.wants(one)}
    scored = {one.item_id: one for one in ranking}
    rows = seen | {item_id: one for item_id, (one, _) in named.items()}
    weights = {item_id: weight for item_id, (_, weight) in named.items()}
    hits = [_hit(row, scored.get(item_id), weights.get(item_id, 0.0)) for item_id, row in rows.items()]
    hits.sort(key=lambda hit: (-hit.score, hit.symbol.kind == PROTOTYPE, hit.symbol.path, hit.symbol.start_line))
    return hits[: quest.top_k]


def _legs(tx: Transaction, quest: Quest) -> tuple[dict[str, Sequence[Scored]], dict[int, Held]]:
    """What words and meaning propose, each with its score of what the other proposes; and the symbols themselves."""
    shelf, vector = symbols.shelf(quest.namespace), quest.vector
    pool = max(CANDIDATES_MIN, CANDIDATES_A_HIT * quest.top_k)
    query = tokens.query(quest.query)

    proposals = candidates.proposed(
        [
            candidates.by_words(tx, shelf, query, pool),
            candidates.by_meaning(tx, shelf, quest.space, vector, pool),
        ],
        lambda ids: _seen(tx, quest, ids),
        lambda: symbols.visible(tx, quest.namespace, quest.kinds, quest.languages, quest.under),
    )
    words, meaning = ([one for one in scored if one.item_id in proposals.seen] for scored in proposals.lists)
    if vector is None or not meaning:
        return {WORDS: words}, proposals.seen
    by_word, near = {one.item_id for one in words}, {one.item_id for one in meaning}
    scores = tx.vectors.scores(shelf, quest.space, vector, by_word - near)
    meaning += [Scored(item_id, score) for item_id, score in sorted(scores.items())]
    others = near - by_word
    if others and len(proposals.lists[0]) >= pool:  # else what is not in the list holds none of the words
        words += tx.text.best(shelf, query, len(others), others)
    return {WORDS: words, MEANING: meaning}, proposals.seen


def _seen(tx: Transaction, quest: Quest, ids: Collection[int]) -> dict[int, Held]:
    rows = symbols.by_ids(tx, quest.namespace, sorted(ids))
    return {item_id: row for item_id, row in rows.items() if quest.wants(row)}


def _hit(row: Held, fused: Fused | None, named: float) -> Hit:
    matched = [NAME] if named else []
    if fused is not None:
        matched += [leg for leg, part in fused.components.items() if part.raw is not None and part.normalised > 0.0]
    score = (fused.score if fused is not None else 0.0) + named
    return Hit(row, round(score, 4), tuple(matched))


def _named(tx: Transaction, quest: Quest) -> list[tuple[Held, float]]:
    """Symbols whose name the question is, or holds as one writes a name."""
    text = quest.query.strip().removesuffix("()")
    whole = _NAME_LIKE.fullmatch(text) is not None
    asked = [text] if whole else [name for name in _NAME_LIKE.findall(text) if _MARKED.search(name)]
    wanted = {resolve.parts_of(name) for name in asked[:NAMES_MAX]} - {()}
    if not wanted:
        return []
    rows = symbols.by_names(tx, quest.namespace, [parts[-1] for parts in wanted], NAMED_MAX * NAMES_MAX)
    matching = [(row, parts) for row in rows for parts in wanted if resolve.is_named(row, parts)]
    return [(row, NAME_SCORE if row.name == parts[-1] else NAME_SCORE / 2) for row, parts in matching]
