"""What a schema asks for: each property with its kind, its words, its choices and its units."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cached_property
from typing import Final

from loom.canonical import Json
from loom.planes.profile.structured import cues, units, words
from loom.planes.profile.structured.phrases import Phrases

PROPERTIES_MAX: Final = 400
"""Properties and parts of them that are read."""

DESCRIPTION_CHARACTERS_MAX: Final = 1_000
CHOICES_MAX: Final = 400
REFERENCES_MAX: Final = 8
PARTS_DEPTH_MAX: Final = 2
LEAD_WORDS_MAX: Final = 3
GLOSS_CHARACTERS_MIN: Final = 3

_GLOSS_BEFORE: Final = re.compile(
    r"(?:any |an? )?([^.:;'\"()]{2,60}) ?(?:\(([^()]{2,120})\))? (?:is|are|counts? as|means?) '([^']{1,60})'",
    re.IGNORECASE,
)
_GLOSS_SAME: Final = re.compile(r"\(?\b(\w[\w-]{1,30}) (?:is|counts as) (\w[\w-]{1,30})\b\)?")
_AIM: Final = cues.words("aim")
_AIMED: Final = re.compile(
    r"\baims? (?:for|at|to)\b|\bwants? to (?:reach|achieve|attain|become|get|keep|hit|have saved)\b"
)
_AHEAD: Final = re.compile(r"\b(?:next|upcoming|going to|registered for|entered for|signed up for|towards)\b")
_WANTS: Final = cues.words("wants")
_REFUSES: Final = cues.words("refuses")
_REFUSED: Final = re.compile(
    r"\b(?:does not|doesn't|do not|not want|must not|cannot) (?:want|eat|drink|wear|tolerate|like|use)\b|\bnot want\b"
)
_GENERAL: Final = cues.words("general")


class Kind(Enum):
    """How a property's value is found in text."""

    BOOLEAN = auto()
    NUMBER = auto()
    DATE = auto()
    MOMENT = auto()
    EMAIL = auto()
    URL = auto()
    CHOICE = auto()
    COUNTRY = auto()
    LANGUAGE = auto()
    CODE = auto()
    TEXT = auto()
    LIST = auto()
    OBJECT = auto()
    UNKNOWN = auto()


@dataclass(frozen=True)
class Wanted:
    """One property, or a part of one.

    Attributes:
        path: its name; of a part, the names that lead to it.
        schema: its schema, references followed.
        kind: how its value looks.
        integer: of a number, whether it is whole.
        description: what the schema says of it.
        items: of a list, what it holds.
        parts: of an object, its parts.
    """

    path: tuple[str, ...]
    schema: Mapping[str, Json]
    kind: Kind
    integer: bool
    description: str
    items: "Wanted | None" = None
    parts: Sequence["Wanted"] = field(default=())

    @property
    def name(self) -> str:
        """The last of its path."""
        return self.path[-1]

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The words of its name."""
        return tuple(words.name_words(self.name))

    @cached_property
    def strong(self) -> frozenset[str]:
        """Stems of the words of its name that name the topic."""
        content = [word for word in self.words if word not in words.FUNCTION] or list(self.words)
        topical = [word for word in content if word not in words.WEAK and word not in _type_words(self.kind)]
        topical = topical or [word for word in content if word not in _type_words(self.kind)] or content
        return frozenset[str]().union(*(words.stems(word) for word in topical))

    @cached_property
    def head(self) -> frozenset[str]:
        """Stems of the last topical word of its name."""
        for word in reversed(self.words):
            if words.stems(word) & self.strong:
                return words.stems(word)
        return frozenset()

    @cached_property
    def all_stems(self) -> frozenset[str]:
        """Stems of every word of its name."""
        return frozenset[str]().union(*(words.stems(word) for word in self.words))

    @cached_property
    def described(self) -> frozenset[str]:
        """Stems of the words of its description that say something."""
        plain = re.sub(r"'[^']*'", " ", self.description)
        found = {
            stem for token in words.read(plain) if token.text.casefold() not in words.FUNCTION for stem in token.stems
        }
        return frozenset(found) - _GENERAL

    @cached_property
    def gist(self) -> str:
        """The first sentence of its description."""
        return self.description.split(". ")[0]

    @cached_property
    def pairs(self) -> frozenset[tuple[str, str]]:
        """Neighbouring words of its description, those that say nothing left out, as stems."""
        return words.pairs(words.read(self.description))

    @cached_property
    def told(self) -> frozenset[str]:
        """Stems of every word of its name and description but the commonest."""
        spoken = (token for token in words.read(self.description) if token.text.casefold() not in words.FUNCTION)
        told = self.all_stems | {stem for token in spoken for stem in token.stems}
        return told | {"email"} if self.kind is Kind.EMAIL else frozenset(told)

    @cached_property
    def units(self) -> frozenset[str]:
        """The units that its name or description asks for."""
        return units.asked(self.words, self.description)

    @cached_property
    def aim(self) -> bool:
        """Whether it asks for what somebody aims at."""
        return bool(_AIM & self.all_stems) or bool(_AIMED.search(self.description))

    @cached_property
    def wish(self) -> bool:
        """Whether what somebody wants settles it."""
        return self.aim or bool(_WANTS & (self.all_stems | words.stems(self.description)))

    @cached_property
    def refusal(self) -> bool:
        """Whether it asks for what somebody does not want."""
        lowered = self.description.casefold()
        return bool(_REFUSES & (self.all_stems | words.stems(self.description))) or bool(_REFUSED.search(lowered))

    @cached_property
    def system(self) -> str:
        """The system of sizes that it asks for: `eu`, `us`, `uk`; empty for none."""
        named = {"eu", "us", "uk"} & set(self.words) or (
            {"eu"} if "european size" in self.description.casefold() else set[str]()
        )
        return min(named) if len(named) == 1 and "size" in self.told | self.all_stems else ""

    @cached_property
    def ahead(self) -> bool:
        """Whether it asks for a day that is still to come when it is told."""
        return bool({"next", "upcoming"} & set(self.words)) or bool(_AHEAD.search(self.description))

    @cached_property
    def empty_allowed(self) -> bool:
        """Whether its description says that a denial is an empty list."""
        return "empty list" in self.description.casefold() or "empty array" in self.description.casefold()

    @cached_property
    def phrases(self) -> Phrases:
        """From each way of writing a choice, without case and punctuation, to the choice."""
        return _phrases(self)

    def walk(self) -> Iterator["Wanted"]:
        """Itself and its parts."""
        yield self
        for part in self.parts:
            yield from part.walk()


def _type_words(kind: Kind) -> frozenset[str]:
    return {
        Kind.EMAIL: frozenset(("email", "mail", "address", "e")),
        Kind.URL: frozenset(("url", "link")),
        Kind.DATE: frozenset(("on", "at", "since", "date")),
    }.get(kind, frozenset())


def wanted(schema: Mapping[str, Json]) -> list[Wanted]:
    """The properties of `schema`, as far as their schemas are objects."""
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return []
    return [_wanted((name,), part, schema, 0) for name, part in list(properties.items())[:PROPERTIES_MAX]]


def _wanted(path: tuple[str, ...], part: Json, root: Mapping[str, Json], depth: int) -> Wanted:
    schema = followed(part, root)
    kind, integer = _kind(schema, path[-1])
    described = schema.get("description")
    if not isinstance(described, str) and isinstance(part, dict):
        described = part.get("description")
    title = schema.get("title")
    text = " ".join(one for one in (described, title) if isinstance(one, str))[:DESCRIPTION_CHARACTERS_MAX]
    items: Wanted | None = None
    parts: list[Wanted] = []
    if depth < PARTS_DEPTH_MAX:
        if kind is Kind.LIST:
            items = _wanted(path, {"description": text, **followed(schema.get("items"), root)}, root, depth + 1)
        inner = schema.get("properties")
        if kind is Kind.OBJECT and isinstance(inner, dict):
            parts = [_wanted((*path, name), one, root, depth + 1) for name, one in list(inner.items())[:PROPERTIES_MAX]]
    return Wanted(path, schema, kind, integer, text, items, parts)


def followed(part: Json, root: Mapping[str, Json]) -> Mapping[str, Json]:
    """`part` with its references within the document followed; of a choice with null, the branch that is not null."""
    for _ in range(REFERENCES_MAX):
        if not isinstance(part, dict):
            return {}
        reference = part.get("$ref")
        branches = part.get("anyOf") or part.get("oneOf")
        if isinstance(reference, str):
            part = {**_target(reference, root), **{name: value for name, value in part.items() if name != "$ref"}}
        elif isinstance(branches, list):
            real = [one for one in branches if not (isinstance(one, dict) and one.get("type") == "null")]
            if len(real) != 1 or not isinstance(real[0], dict):
                return part
            part = {**real[0], **{name: value for name, value in part.items() if name not in ("anyOf", "oneOf")}}
        else:
            return part
    return {}


def _target(reference: str, root: Mapping[str, Json]) -> Mapping[str, Json]:
    node: Json = dict(root)
    if not reference.startswith("#"):
        return {}
    for step in reference[1:].split("/")[1:]:
        if not isinstance(node, dict):
            return {}
        node = node.get(step.replace("~1", "/").replace("~0", "~"))
    return node if isinstance(node, dict) else {}


def _kind(schema: Mapping[str, Json], name: str) -> tuple[Kind, bool]:
    types = schema.get("type")
    named = (
        [types]
        if isinstance(types, str)
        else [one for one in types if one != "null"]
        if isinstance(types, list)
        else []
    )
    choices = schema.get("enum")
    if isinstance(choices, list) and any(isinstance(one, str) for one in choices):
        return Kind.CHOICE, False
    if len(named) != 1:
        return Kind.UNKNOWN, False
    simple = {
        "boolean": Kind.BOOLEAN,
        "integer": Kind.NUMBER,
        "number": Kind.NUMBER,
        "array": Kind.LIST,
        "object": Kind.OBJECT,
    }
    if named[0] in simple:
        return simple[named[0]], named[0] == "integer"
    return (_string_kind(schema, name) if named[0] == "string" else Kind.UNKNOWN), False


def _string_kind(schema: Mapping[str, Json], name: str) -> Kind:
    formats = {
        "date": Kind.DATE, "date-time": Kind.MOMENT, "email": Kind.EMAIL, "idn-email": Kind.EMAIL, "uri": Kind.URL,
        "url": Kind.URL, "iri": Kind.URL,
    }  # fmt: skip
    form = schema.get("format")
    if isinstance(form, str) and form in formats:
        return formats[form]
    described = f"{schema.get('description') or ''} {name}".casefold()
    if "iso 639" in described or "language code" in described:
        return Kind.LANGUAGE
    if "iso 3166" in described or "country code" in described or "alpha-2" in described:
        return Kind.COUNTRY
    return Kind.CODE if isinstance(schema.get("pattern"), str) else Kind.TEXT


def _phrases(one: Wanted) -> Phrases:
    choices = one.schema.get("enum")
    named = [choice for choice in choices if isinstance(choice, str)][:CHOICES_MAX] if isinstance(choices, list) else []
    made: dict[str, str] = {}
    for match in _GLOSS_BEFORE.finditer(one.description):
        if match[3] in named:
            listed = (match[2] or "").split(",")
            lead = match[1].split(" who ")[0].strip()
            for phrase in (*listed, *([lead] if lead.count(" ") < LEAD_WORDS_MAX else [])):
                _add(made, phrase, match[3])
            last = [word for word in lead.split() if word[:1].isupper()]
            for word in last:
                _add(made, word, match[3])
    for match in _GLOSS_SAME.finditer(one.description):
        if match[2] in named:
            _add(made, match[1], match[2])
    for choice in named:
        if choice.casefold() not in ("other", "none", "unknown"):
            made[words.plain(choice)] = choice
    return Phrases((phrase, choice) for phrase, choice in made.items() if phrase)


def _add(made: dict[str, str], phrase: str, choice: str) -> None:
    key = words.plain(phrase)
    if len(key) >= GLOSS_CHARACTERS_MIN and phrase.strip(" .").casefold() not in words.FUNCTION:
        made.setdefault(key, choice)
