"""How much speaks for two reports being of one defect, and what that makes of them. Pure.

A logistic of facts about the texts, fitted by `benchmarks/fit_tracker.py` on reports of which
people said that one repeats the other; and of the names that both hold. The fitted data has few
stack traces and neither components nor versions, so what those weigh was set by hand: a stack that
is the same all along is nearly proof, one that differs is little against it.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from math import exp, sqrt
from typing import Final, Literal

from loom.planes.tracker.rules import EXCEPTION, FRAME, PATH, SYMBOL
from loom.planes.tracker.traces import Frame
from loom.planes.tracker.traits import Traits, names_of
from loom.retrieval import tokens

Verdict = Literal["duplicate", "related", "new"]
Rarity = Callable[[str, str], float]
"""Of a kind and a name, how much it says that both have it; above 0."""

COMPARED_CHARACTERS_MAX: Final = 4_000
"""Of a report, what is looked at for the words of another's title."""

ROOT_CHARACTERS_MIN: Final = 4
"""From here on a stem may lose its last letter; shorter ones than this less one stand in too many words."""

_LOGIT_MAX: Final = 30.0
_NUMBER: Final = re.compile(r"\d+(?:\.\d+)*")


@dataclass(frozen=True, slots=True)
class Weights:
    """The text's part of the logistic; the facts are those of `Facts`."""

    bias: float
    meaning: float
    words: float
    title_words: float
    same_words: float
    coverage: float
    siblings: float
    same_title: float
    clash: float


WITH_MEANING: Final = Weights(-9.61, 4.31, 2.98, 2.08, 0.79, 0.32, -1.08, 1.86, -1.25)
WORDS_ONLY: Final = Weights(-9.87, 0.0, 3.92, 2.18, 2.34, 1.09, -0.5, 1.99, -0.55)

WHOLE_STACK: Final = 16.0
"""What the first three frames of a stack weigh together when no more than one in a thousand reports has any of them."""

FRAMES, FRAMES_DIFFER = 3.5, -0.5
EXCEPTIONS, PATHS, SYMBOLS = 0.5, 0.4, 0.2
COMPONENT, COMPONENT_DIFFERS = 0.5, -0.7
VERSION = 0.3
MENTIONED, MENTIONS_SHARED = 2.0, 0.7
"""What the names add to the logit, times how far they are the same."""

# On reports held out, 126 with a known duplicate and 504 others: three in four of those called duplicates are linked to
# the first candidate (of the rest some repeat one that nobody linked), and 6 in 1,000 of the others are called so. At
# least related are 56 % of those with a duplicate, and one in five of the others.
DUPLICATE_FROM: Final = 0.64
RELATED_FROM: Final = 0.1


@dataclass(frozen=True, slots=True)
class Report:
    """A report as it is compared with another one.

    Attributes:
        title_stems: the distinct stems of its title, without stop words.
        text: its title and the beginning of its body, case-folded.
        numbers: the numbers in its title: versions, years, issues.
        traits: what it names.
        component: the part of the program; empty when it is not known.
        version: the version it was seen in.
        names: the names by which others mention it; empty for one that has none yet.
    """

    title_stems: frozenset[str]
    text: str
    numbers: frozenset[str]
    traits: Traits
    component: str
    version: str
    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class Scores:
    """What the indexes say of a candidate, each in 0..1.

    Attributes:
        words: its BM25 score for the whole report, against the best one's.
        title_words: the same for the report's title alone.
        meaning: how near it is, from unrelated (0) to the same text (1); None without a vector.
    """

    words: float
    title_words: float
    meaning: float | None


@dataclass(frozen=True, slots=True)
class Facts:
    """What speaks for, or against, two reports being of one defect. None stands for "cannot be compared".

    Attributes:
        scores: what the indexes say.
        same_words: the share of title words that both have, of those that either has.
        coverage: the share of the report's title that the other one holds anywhere.
        siblings: `same_words` where each title has a word that the other report lacks: two tasks of one kind.
        same_title: whether the titles have the same words.
        clash: `same_words` where each title has a number that the other lacks: two releases, two years.
        frames: the share of the stack that both have; rare frames and those near the failure weigh more.
        stack: how much of a stack that is, from 0 to 1 for three rare frames; one common frame is next to nothing.
        exceptions: the share of the exceptions that both name.
        paths: the share of paths.
        symbols: the share of symbols.
        component: 1 for the same one, 0 for another.
        version: the same for the version.
        mentioned: whether one mentions the other.
        mentions: the share of mentioned issues that both mention.
    """

    scores: Scores
    same_words: float
    coverage: float
    siblings: float
    same_title: float
    clash: float
    frames: float | None
    stack: float
    exceptions: float | None
    paths: float | None
    symbols: float | None
    component: float | None
    version: float | None
    mentioned: bool
    mentions: float | None


def report_of(title: str, body: str, traits: Traits, about: tuple[str, str], names: frozenset[str]) -> Report:
    """A report, cut into what is compared; `about` is its component and version."""
    component, version = about
    return Report(
        title_stems=frozenset(tokens.query(title).stems),
        text=f"{title}\n{body[:COMPARED_CHARACTERS_MAX]}".casefold(),
        numbers=frozenset(_NUMBER.findall(title)),
        traits=traits,
        component=component.strip().casefold(),
        version=version.strip().casefold().removeprefix("v"),
        names=names,
    )


def compared(report: Report, other: Report, scores: Scores, rarity: Rarity) -> Facts:
    """The facts about a report and another one that is there already."""
    mine, theirs = report.title_stems, other.title_stems
    same_words = len(mine & theirs) / len(mine | theirs) if mine | theirs else 0.0
    held = sum(holds(other, stem) for stem in mine)
    apart = held < len(mine) and not all(holds(report, stem) for stem in theirs)
    clash = bool(report.numbers - other.numbers) and bool(other.numbers - report.numbers)
    frames, stack = stack_share(report.traits.frames, other.traits.frames, rarity)
    return Facts(
        scores=scores,
        same_words=same_words,
        coverage=held / len(mine) if mine else 0.0,
        siblings=same_words if apart else 0.0,
        same_title=float(bool(mine) and mine == theirs),
        clash=same_words if clash else 0.0,
        frames=frames,
        stack=stack,
        exceptions=share(EXCEPTION, report.traits.exceptions, other.traits.exceptions, rarity),
        paths=share(PATH, report.traits.paths, other.traits.paths, rarity),
        symbols=share(SYMBOL, report.traits.symbols, other.traits.symbols, rarity),
        component=_equal(report.component, other.component),
        version=_equal(report.version, other.version),
        mentioned=bool(other.names.intersection(report.traits.mentions))
        or bool(report.names.intersection(other.traits.mentions)),
        mentions=share("", report.traits.mentions, other.traits.mentions, lambda _kind, _name: 1.0),
    )


def holds(report: Report, stem: str) -> bool:
    """Whether a report holds a word of this stem. It is looked for as written, which costs no stemming of the report.

    A stem that ends in i stands for words that end in y as well (`librari` for `library`), so that letter is no matter.
    """
    if stem in report.title_stems:
        return True
    root = stem.removesuffix("i") if len(stem) >= ROOT_CHARACTERS_MIN else stem
    return len(root) >= ROOT_CHARACTERS_MIN - 1 and root in report.text


def stack_share(stack: Sequence[Frame], other: Sequence[Frame], rarity: Rarity) -> tuple[float | None, float]:
    """The share of `stack` that stands in `other`, frame by frame, and how much it is; None unless both have frames.

    A frame weighs by how rare it is, and less the further it is from the failure. The idea is TraceSim's
    (Vasiliev et al. 2020).
    """
    if not stack or not other:
        return None, 0.0
    there: dict[str, list[Frame]] = {}
    for frame in other:
        there.setdefault(frame.function, []).append(frame)
    total = shared = 0.0
    for place, frame in enumerate(stack):
        weight = rarity(FRAME, frame.function) / sqrt(1 + place)
        total += weight
        if any(frame.same(one) for one in there.get(frame.function, ())):
            shared += weight
    return shared / total, min(1.0, shared / WHOLE_STACK)


def share(kind: str, names: Sequence[str], others: Collection[str], rarity: Rarity) -> float | None:
    """The share of `names` that are among `others`, by rarity; None unless both have some."""
    if not names or not others:
        return None
    weights: Mapping[str, float] = {name: rarity(kind, name) for name in names}
    held = frozenset(others)
    return sum(weight for name, weight in weights.items() if name in held) / sum(weights.values())


def probability(facts: Facts) -> float:
    """How likely both are of one defect."""
    logit = text_logit(facts) + names_logit(facts)
    return 1.0 / (1.0 + exp(-max(-_LOGIT_MAX, min(_LOGIT_MAX, logit))))


def text_logit(facts: Facts) -> float:
    """What the texts say."""
    scores = facts.scores
    table = WORDS_ONLY if scores.meaning is None else WITH_MEANING
    return (
        table.bias
        + table.meaning * (scores.meaning or 0.0)
        + table.words * scores.words
        + table.title_words * scores.title_words
        + table.same_words * facts.same_words
        + table.coverage * facts.coverage
        + table.siblings * facts.siblings
        + table.same_title * facts.same_title
        + table.clash * facts.clash
    )


def names_logit(facts: Facts) -> float:
    """What the names say."""
    logit = MENTIONED * facts.mentioned + MENTIONS_SHARED * (facts.mentions or 0.0)
    logit += EXCEPTIONS * (facts.exceptions or 0.0) + PATHS * (facts.paths or 0.0) + SYMBOLS * (facts.symbols or 0.0)
    if facts.frames is not None:
        logit += FRAMES * facts.frames * facts.stack if facts.frames else FRAMES_DIFFER
    if facts.component is not None:
        logit += COMPONENT if facts.component else COMPONENT_DIFFERS
    return logit + VERSION * (facts.version or 0.0)


def verdict(best: float) -> Verdict:
    """What the likeliest candidate makes of a report; 0 when there is none."""
    if best >= DUPLICATE_FROM:
        return "duplicate"
    return "related" if best >= RELATED_FROM else "new"


def candidate_report(title: str, body: str, traits: Traits, about: tuple[str, str], named: tuple[int, str]) -> Report:
    """`report_of` for an issue that has a number and an address."""
    return report_of(title, body, traits, about, names_of(*named))


def _equal(one: str, other: str) -> float | None:
    return float(one == other) if one and other else None
