"""What a cross-encoder is given to read, English and of a long text one window, and what it says of texts read in part.

Texts that were read whole can be compared: `fuse` joins their scores as it does those of any leg, the best of them 1
and the worst 0. Where only a part was read of some, the worst may be no worse, and the best of poor ones says nothing.
There each score stands on a scale that is the same for every question, and what was not read keeps what it had.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite, tanh
from types import MappingProxyType
from typing import Final

from loom.retrieval import tokens
from loom.retrieval.fuse import READING, Fused
from loom.retrieval.passages import split_passages
from loom.retrieval.tokens import STOP_WORDS
from loom.storage.indexes import TextQuery

WINDOW_WORDS: Final = 110
WINDOW_CHARACTERS: Final = 700
TEXT_CHARACTERS_MAX: Final = 12_000
FOREIGN_SHARE_MAX: Final = 0.1
"""Of a question's letters, how many may be none of English before it is taken for another language."""

SCORE_SPREAD: Final = 3.0
"""The scores are logarithms of odds, and too sure of themselves; they are divided by this. From 2 to 4 is as good."""

_LETTER: Final = re.compile(r"[^\W\d_]")
_WORD: Final = re.compile(r"[a-z]+(?:'[a-z]+)?")
_FOREIGN_TEXT: Final = """
aus bei das dem den der des die ein eine einem einen einer es fuer hat ich im ist mit nach nicht oder sich sie sind
und von war waren warum wann welche welchem welchen welcher welches wer werden wie wieviel wird wo wurde wurden zu zum
zur au aux avec ce comment dans de du elle est et il la le les leur ne ou par pas pour pourquoi quand que quel quelle
qui quoi sur un une al como con cual cuando del donde el en es esta fue la las lo los para por que quien se sin su una
y che chi come cosa di gli il perche quale sono ao da das dos em foi nao na no os ou qual quando quem seu uma het een
van wat wie waar wanneer hoe waarom
"""
_FOREIGN: Final = frozenset(_FOREIGN_TEXT.split()) - STOP_WORDS - {"no"}


@dataclass(frozen=True, slots=True)
class Reading:
    """What a cross-encoder says of the best candidates.

    Attributes:
        scores: its own scores, by item id; any number, the higher the better.
        given: how many texts it was given; the last of them may not have been read in time.
        in_part: whether it was given a part only of any of them.
    """

    scores: Mapping[int, float]
    given: int = 0
    in_part: bool = False


NOTHING_READ: Final = Reading(MappingProxyType({}))


def joined(order: Sequence[Fused], said: Reading, weight: float) -> list[Fused]:
    """The ranking with what is said of texts that were given in part; best first, equal scores by item id.

    In the new leg, `READING`, a text that was read stands between the lowest score of those that were and 1, by how
    likely it answers. Any other stands where the other legs put it, and so keeps its score. What was read gains on it,
    so the fewer were read, the less the leg weighs.

    Args:
        order: candidates by the other legs, as `fuse` returns them.
        said: what was read of some of them, and perhaps of others.
        weight: the share of the new leg in the score when all were read, 0..1.
    """
    places = {one.item_id: one.score for one in order}
    read = {item_id: score for item_id, score in said.scores.items() if item_id in places and isfinite(score)}
    if not read:
        return list(order)
    weight *= min(1.0, len(read) / max(1, said.given))
    low = min(places[item_id] for item_id in read)
    places |= {item_id: low + (1.0 - low) * _likelihood(score) for item_id, score in read.items()}
    legs = order[0].legs
    legs = replace(
        legs,
        raw={**legs.raw, READING: read},
        normalised={**legs.normalised, READING: places},
        shares={**{name: share * (1.0 - weight) for name, share in legs.shares.items()}, READING: weight},
    )
    changed = [Fused(one.item_id, (1.0 - weight) * one.score + weight * places[one.item_id], legs) for one in order]
    return sorted(changed, key=lambda one: (-one.score, one.item_id))


def _likelihood(score: float) -> float:
    """The logistic of a score, 0..1, by its hyperbolic tangent, which does not overflow."""
    return (1.0 + tanh(score / (2.0 * SCORE_SPREAD))) / 2.0


def window(text: str, query: TextQuery) -> str:
    """The part of `text` with most of the question's stems, the first of equals; a short text is its own window."""
    if len(text) <= WINDOW_CHARACTERS:
        return text
    parts = split_passages(text[:TEXT_CHARACTERS_MAX], words_max=WINDOW_WORDS, characters_max=WINDOW_CHARACTERS)
    asked = frozenset(query.stems)
    return max(parts, key=lambda part: len(tokens.stems_among(part, asked)), default="")


def is_english(question: str) -> bool:
    """Whether a question can be English: its letters are, and its small words are not rather of another language."""
    letters = _LETTER.findall(question)
    if not letters or sum(not letter.isascii() for letter in letters) > FOREIGN_SHARE_MAX * len(letters):
        return False
    words = _WORD.findall(question.casefold())
    return sum(word in _FOREIGN for word in words) <= sum(word in STOP_WORDS for word in words)
