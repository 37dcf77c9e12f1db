"""Facts taken apart: what each says, under which names, when, in clauses that bear marks."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from loom.canonical import Json
from loom.planes.profile.structured import cues, flags, words
from loom.planes.profile.structured.days import days
from loom.planes.profile.structured.flags import Mark
from loom.planes.profile.structured.interface import Fact
from loom.planes.profile.structured.properties import Wanted
from loom.planes.profile.structured.units import Amount, amounts
from loom.planes.profile.structured.words import TEXT_CHARACTERS_MAX, Token
from loom.retrieval.dates import WrittenDay

LEAVES_MAX: Final = 64
"""Values of one fact's JSON that are read."""

DEPTH_MAX: Final = 4
CLAUSES_MAX: Final = 24
TAG_PREFIX: Final = "profile:"
_DAY_US: Final = 86_400_000_000

_SENTENCE: Final = re.compile(
    r"(?<=[.!?])(?<!(?<!\d)\d\.)(?<!(?<!\d)\d\d\.)\s+(?=[^a-z])|[;\n\u3002\uff01\uff1f\uff1b]\s*|\s[-\u2013\u2014]\s|\s*\u2014\s*"
)
_CLAUSE: Final = re.compile(
    r"(?<!\d),\s*|,\s+(?!(?:19|20)\d\d)|\uff0c\s*|\s+(?=(?:but|however|though|although|whereas|while|aber|pero)\s)"
)
_SAME_PERSON: Final = re.compile(r"(?:he|she|they|his|her|their|it)\b", re.IGNORECASE)
_LABEL: Final = re.compile(r"\A([A-Za-zÀ-ÿ][\w' -]{0,40}):\s*(?=\S)")
_NAMES_UNSURE: Final = cues.words("names_unsure")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A value found in a clause.

    Attributes:
        value: of the property's type.
        start: its place in the clause.
        end: the place after it.
        plain: how plainly it is of that kind: 0..1. A word that means other things too is less plain.
        unit: of a number: 1.0 its unit or noun is the one asked for, 0.0 it has none, -0.5
            another noun, -1.0 another unit.
        leaving: the clause tells that this value is what was before, or what is not.
    """

    value: Json
    start: int
    end: int
    plain: float
    unit: float = 0.0
    leaving: bool = False


@dataclass(frozen=True)
class Clause:
    """A part of a text. What it says of itself is read when it is asked for, and once.

    Attributes:
        text: the part.
        sentence: the sentence that it stands in.
        doubted: whether the names it stands under say that it is a guess.
        after: the clauses whose people it is about too: the first of its sentence, or those of the sentence before.
    """

    text: str
    sentence: str
    doubted: bool
    after: tuple["Clause", ...]

    def bears(self, marks: Mark) -> bool:
        """Whether it bears one of `marks`. A question or a guess covers the whole sentence."""
        return self._bears[marks]

    @cached_property
    def _bears(self) -> "_Borne":
        return _Borne(self)

    @cached_property
    def others(self) -> frozenset[str]:
        """The people it is about, who are not the user."""
        return flags.others_in(self.text).union(*(clause.others for clause in self.after))

    @cached_property
    def tokens(self) -> Sequence[Token]:
        """Its words."""
        return words.read(self.text)

    @cached_property
    def days(self) -> Sequence[WrittenDay]:
        """The days that it names in full."""
        return days(self.text)

    @cached_property
    def amounts(self) -> Sequence[Amount]:
        """The numbers in it."""
        return tuple(amounts(self.text))

    @cached_property
    def found(self) -> dict[int, tuple[Wanted, Sequence[Candidate]]]:
        """The values that properties could have of it, as far as they were looked for, by the object's id."""
        return {}

    @cached_property
    def stems(self) -> frozenset[str]:
        """The stems of its words."""
        return frozenset[str]().union(*(token.stems for token in self.tokens))


class _Borne(dict[Mark, bool]):
    """Whether a clause bears a mark, or one of several, found out when asked."""

    def __init__(self, clause: Clause) -> None:
        super().__init__()
        self._clause = clause

    def __missing__(self, mark: Mark) -> bool:
        each = tuple(mark)
        if len(each) > 1:
            self[mark] = any(self[one] for one in each)
            return self[mark]
        whole = mark is Mark.UNSURE
        text = self._clause.sentence if whole else self._clause.text
        self[mark] = flags.bears(text, mark) or (whole and self._clause.doubted)
        return self[mark]


@dataclass(frozen=True)
class Statement:
    """One value of a fact and the names it stands under.

    Attributes:
        fact: where it comes from.
        leaf: a string, number, truth value, or a list of these.
        fields: the names of the JSON fields that lead to it, the outermost first.
        moment: for the order of facts: when it began to be true (the day of writing if nothing says so), then when
            it was written, in microseconds.
    """

    fact: Fact
    leaf: Json
    fields: tuple[str, ...]
    moment: tuple[int, int]
    key_words: tuple[str, ...]
    tagged: frozenset[str]

    @cached_property
    def text(self) -> str:
        """What it says, as text; at most 2,000 characters."""
        if isinstance(self.leaf, str):
            return self.leaf[:TEXT_CHARACTERS_MAX]
        if isinstance(self.leaf, bool):
            return "yes" if self.leaf else "no"
        if isinstance(self.leaf, list):
            return ", ".join(str(one)[:200] for one in self.leaf[:LEAVES_MAX])[:TEXT_CHARACTERS_MAX]
        return str(self.leaf)

    @cached_property
    def quoted(self) -> str:
        """The text as its source is told: with the field's name where it stands in JSON."""
        return f"{self.fields[-1]}: {self.text}" if self.fields else self.text

    @cached_property
    def name_stems(self) -> frozenset[str]:
        """The stems of its key and its fields."""
        return frozenset[str]().union(*(words.stems(word) for word in (*self.key_words, *self.field_words)))

    @cached_property
    def quick_stems(self) -> frozenset[str]:
        """The stems under which it is found among many: of its text, its key and its fields."""
        return words.quick_stems(self.text) | self.name_stems

    @cached_property
    def field_words(self) -> tuple[str, ...]:
        """The words of its fields' names."""
        return tuple(word for name in self.fields for word in words.name_words(name))

    @cached_property
    def kin(self) -> frozenset[str]:
        """People named in its key and fields."""
        return frozenset(word for word in (*self.key_words, *self.field_words) if word in flags.KIN_WORDS)

    @cached_property
    def clauses(self) -> Sequence[Clause]:
        """Its text in clauses, at most 24."""
        doubted = bool(_NAMES_UNSURE & set(self.key_words))
        found: list[Clause] = []
        before: tuple[Clause, ...] = ()
        for sentence in _SENTENCE.split(self.text):
            if not sentence.strip():
                continue
            before = _parts(sentence, before if _SAME_PERSON.match(sentence.strip()) else (), doubted=doubted)
            found.extend(before)
            if len(found) >= CLAUSES_MAX:
                break
        return found[:CLAUSES_MAX]

    @cached_property
    def stems(self) -> frozenset[str]:
        """The stems of its text."""
        return frozenset[str]().union(*(clause.stems for clause in self.clauses))


def _parts(sentence: str, before: tuple[Clause, ...], *, doubted: bool) -> tuple[Clause, ...]:
    """The clauses of one sentence. `before` are the clauses whose people its first clause is about as well."""
    pieces = [piece for piece in _CLAUSE.split(sentence) if piece and piece.strip()][:CLAUSES_MAX]
    made: list[Clause] = []
    for piece in pieces:
        made.append(Clause(piece, sentence, doubted, (made[0],) if made else before))
    return tuple(made)


def statements(facts: Iterable[Fact]) -> list[Statement]:
    """What the facts say, in an order that does not depend on theirs; those that give orders are left out."""
    return in_order(statement for fact in facts for statement in of_fact(fact))


def in_order(said: Iterable[Statement]) -> list[Statement]:
    """Statements in the order of time; of one moment, in one that does not depend on theirs."""
    return sorted(said, key=lambda one: (*one.moment, one.fact.memory_key, one.fact.memory_id, one.fields, one.text))


def of_fact(fact: Fact) -> Iterator[Statement]:
    """What one fact says; nothing where it gives an order."""
    if not ordered(fact.value):
        yield from _of(fact)


def ordered(value: Json) -> bool:
    """Whether a value holds text that tells its reader to change records."""
    return any(isinstance(leaf, str) and flags.is_order(leaf[:TEXT_CHARACTERS_MAX]) for _, leaf in leaves(value))


def _of(fact: Fact) -> Iterator[Statement]:
    tagged = frozenset(
        tag[len(TAG_PREFIX) :].strip().casefold() for tag in fact.tags if tag.casefold().startswith(TAG_PREFIX)
    )
    began = fact.valid_at if fact.valid_at is not None else fact.created_at // _DAY_US * _DAY_US
    key_words = tuple(words.name_words(fact.memory_key))
    for fields, leaf in leaves(fact.value):
        yield Statement(fact, leaf, fields, (began, fact.created_at), key_words, tagged)


def label_of(text: str) -> str:
    """What stands before a colon at the start of `text`, a few words long; empty without one."""
    found = _LABEL.match(text)
    return found[1] if found else ""


def leaves(value: Json) -> Iterator[tuple[tuple[str, ...], Json]]:
    """The values in `value` with the fields that lead to them; lists of plain values stay whole."""
    stack: list[tuple[tuple[str, ...], Json]] = [((), value)]
    left = LEAVES_MAX
    while stack and left > 0:
        fields, node = stack.pop()
        if isinstance(node, dict):
            if len(fields) < DEPTH_MAX:
                stack.extend(((*fields, name), child) for name, child in list(reversed(node.items()))[:LEAVES_MAX])
        elif isinstance(node, list) and any(isinstance(child, dict | list) for child in node):
            if len(fields) < DEPTH_MAX:
                stack.extend((fields, child) for child in reversed(node[:LEAVES_MAX]))
        elif node is not None:
            left -= 1
            yield fields, node
