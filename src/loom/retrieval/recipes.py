"""Named presets of the legs: their weights, how many candidates each brings, and what else is done.

The balance of words and meaning was measured on LoCoMo, BEAM, SciFact, XQuAD, CoSQA and bug
reports: 0.4 for words was as good as 0.5 or better by hit@5 on each, and 0.3 worse on LoCoMo.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, Literal

from loom.retrieval.fuse import MEANING, READING, TIME, WORDS
from loom.storage.indexes import COMMON_SHARE

RecipeName = Literal["", "fast", "balanced", "quality", "verbatim", "code", "temporal", "graph"]


@dataclass(frozen=True, slots=True)
class Recipe:
    """How one search is done.

    Attributes:
        name: as answers spell it.
        weights: weight of each leg; a leg without one is not asked. The time leg
            runs only when the query names a time.
        candidates_max: hits that each leg brings to the fusion.
        word_weight: unstemmed matches against 1.0 for stemmed ones, in the words leg.
        phrases_first: hits that hold a quoted phrase, or the whole query side by side, come first.
        neighbours: turns of a talk are lent a share of what the turns beside them score.
        speakers: where the question names one who speaks in a talk, the turns of others count less.
        common_share: among many memories a word that more of them hold is left out when rarer ones remain.
        read_again_max: of the best candidates, how many a cross-encoder reads; 0 for none.
    """

    name: RecipeName
    weights: Mapping[str, float]
    candidates_max: int
    word_weight: float = 0.5
    phrases_first: bool = False
    neighbours: bool = False
    speakers: bool = False
    common_share: float = COMMON_SHARE
    read_again_max: int = 0


def _weights(**legs: float) -> Mapping[str, float]:
    return MappingProxyType(legs)


_BALANCED: Final = Recipe(
    "balanced",
    _weights(**{WORDS: 0.4, MEANING: 0.6, TIME: 0.15}),
    candidates_max=100,
    neighbours=True,
    speakers=True,
)

RECIPES: Final[Mapping[RecipeName, Recipe]] = MappingProxyType(
    {
        "": _BALANCED,
        "balanced": _BALANCED,
        "fast": Recipe(
            "fast", _weights(**{WORDS: 0.4, MEANING: 0.6}), candidates_max=50, speakers=True, common_share=0.05
        ),
        "quality": replace(
            _BALANCED,
            name="quality",
            weights=_weights(**{WORDS: 0.2, MEANING: 0.3, TIME: 0.075, READING: 0.5}),
            candidates_max=200,
            read_again_max=10,
        ),
        "verbatim": Recipe(
            "verbatim",
            _weights(**{WORDS: 0.9, MEANING: 0.1}),
            candidates_max=100,
            word_weight=2.0,
            phrases_first=True,
        ),
        "code": Recipe("code", _weights(**{WORDS: 0.45, MEANING: 0.55}), candidates_max=100, word_weight=1.5),
        "temporal": replace(
            _BALANCED, name="temporal", weights=_weights(**{WORDS: 0.22, MEANING: 0.33, TIME: 0.45}), candidates_max=200
        ),
        "graph": replace(_BALANCED, name="graph"),
    }
)
"""Every recipe by name; the empty name is the server's default.

`quality` ranks as `balanced` does, over more candidates, and reads the best ten again: on LoCoMo and BEAM ten are as
good as twenty (hit@5 81.3 and 74.3 against 80.9 and 73.6) in half the time, and half the weight is as good as more and
loses less where time was too short to read them all. `graph` is `balanced`: raising what shares entities with the
best hits gave several-turn questions of LoCoMo 0.2 less to 1.1 more on dialogues that it was not fitted on.
"""
