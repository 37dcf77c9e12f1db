"""What is measured of a model that Loom does not know beforehand, once, with a few fixed texts.

The texts have nothing to do with each other, so that the median cosine of two of them is what no similarity looks
like. The vectors of some are kept: an endpoint whose model was changed behind its name gives others.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median
from typing import Final, cast

from loom.canonical import encoded
from loom.models.canaries import pack
from loom.storage.indexes import Vector

UNRELATED: Final = (
    "I moved to Lisbon in May and still have no furniture.",
    "The build fails because a test waits for a port that is taken.",
    "She has been allergic to peanuts since she was a child.",
    "Our quarterly report is due on the first Monday of July.",
    "def area(radius): return 3.14159 * radius ** 2",
    "The glacier has lost a third of its length within forty years.",
    "He plays the cello in a string quartet on Thursday evenings.",
    "Please send the invoice to the accounting department in Graz.",
    "Whisk the eggs with the sugar until they are pale and thick.",
    "The train to Osaka leaves from platform four at half past six.",
    "Their youngest cat sleeps on top of the refrigerator.",
    "A court in Ottawa has overturned the ruling on fishing rights.",
)
"""Texts of a sentence each, no two about the same."""

CANARIES: Final = 3
"""Of so many of the texts the vectors are kept."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What was measured in a space.

    Attributes:
        random_cosine: the median cosine of two unrelated texts.
        canaries: texts with their vectors, as `canaries.pack` writes them.
    """

    random_cosine: float
    canaries: Mapping[str, str]

    def told(self) -> str:
        """As JSON."""
        return encoded({"random_cosine": self.random_cosine, "canaries": dict(self.canaries)})


def facts_in(told: str) -> Facts | None:
    """What `Facts.told` wrote; None for an empty text."""
    if not told:
        return None
    read = json.loads(told)
    return Facts(float(read["random_cosine"]), cast("dict[str, str]", read["canaries"]))


def measured(embed_passages: Callable[[Sequence[str]], Sequence[Vector]]) -> Facts:
    """The facts of a space, from one call of its model with all texts; unit vectors come back.

    Raises:
        EmbedderFailed: the model gave none.
    """
    vectors = embed_passages(UNRELATED)
    cosines = [float(one @ other) for one, other in combinations(vectors, 2)]
    kept = zip(UNRELATED[:CANARIES], vectors, strict=False)
    return Facts(round(median(cosines), 4), {text: pack(vector) for text, vector in kept})
