"""What is measured of a model that Loom does not know beforehand, once, with a few fixed texts.

The texts are about different things, so that the median cosine of two of them is what no similarity looks like. The
vectors of some are kept: an endpoint whose model was changed behind its name gives others.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median
from typing import Final, cast

from loom.canonical import encoded
from loom.models.canaries import pack
from loom.storage.indexes import Vector

UNRELATED: Final = (
    "Hey Nora, long time no see! I moved last month and love the new place. How have you been?",
    "Thanks, Sam! That means a lot. I was really nervous before the race, but it went great.",
    "Wow, Nora, that's awesome! My sister just got a puppy, and he makes us so happy.",
    "Yeah, Sam, it was amazing! The kids loved camping by the lake, we all had a blast.",
    "Sounds fun, Nora! I signed up for a pottery class, it really helps me to relax.",
    "That's so cool, Sam! I applied for the new job last week, so wish me luck!",
    "Good luck, Nora! I just finished that book you told me about, and it was so moving.",
    "I'm glad you liked it, Sam! My piano lessons are going well, the teacher is really kind.",
    "That's great, Nora! My car broke down again yesterday, so I had a pretty rough day.",
    "Oh no, Sam, sorry to hear that! I tried a new recipe last night, and everyone loved it.",
    "Yum, that looks delicious, Nora! We're planning a trip for my birthday, I can't wait.",
    "Thanks for sharing, Sam! I've been volunteering at the shelter, it feels so rewarding.",
)
"""Turns of one talk, each about something else. What is compared in a store has as much in common: texts of many kinds
lie further apart, and by their cosine every memory would look a little like every question. Of the built-in model they
say 0.65, where 0.69 was measured on real talks."""

QUESTIONS: Final = (
    "Which port does the database listen on?",
    "Who won the chess tournament in March?",
    "Why was the invoice from Graz paid twice?",
    "What did the surveyor say about the old bridge?",
)
"""Questions that none of the texts answers."""

CANARIES: Final = 3
"""Of so many of the texts the vectors are kept."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What was measured in a space.

    Attributes:
        random_cosine: the median cosine of two unrelated texts.
        question_cosine: the median cosine of a question and a text that has nothing to do with it.
        canaries: texts with their vectors, as `canaries.pack` writes them.
    """

    random_cosine: float
    question_cosine: float
    canaries: Mapping[str, str]

    def told(self) -> str:
        """As JSON."""
        cosines = {"random_cosine": self.random_cosine, "question_cosine": self.question_cosine}
        return encoded({**cosines, "canaries": dict(self.canaries)})


def facts_in(told: str) -> Facts | None:
    """What `Facts.told` wrote; None for an empty text."""
    if not told:
        return None
    read = json.loads(told)
    return Facts(float(read["random_cosine"]), float(read["question_cosine"]), cast("dict[str, str]", read["canaries"]))


def measured(passages: Sequence[Vector], questions: Sequence[Vector]) -> Facts:
    """The facts of a space, from the unit vectors of `UNRELATED` as passages and of `QUESTIONS` as queries."""
    cosines = [float(one @ other) for one, other in combinations(passages, 2)]
    asked = [float(question @ passage) for question in questions for passage in passages]
    kept = zip(UNRELATED[:CANARIES], passages, strict=False)
    return Facts(round(median(cosines), 4), round(median(asked), 4), {text: pack(vector) for text, vector in kept})
