"""Invented people with memories, schemas, and the values that a right reader gives: made from lines of statements.

A file of statements: `@schema NAME` begins a domain; `PROPERTY | TYPE | DESCRIPTION` a property, with a pattern
behind a fourth bar if a description goes before it; `+ TEXT => VALUE` a statement that settles it;
`- TEXT :: REASON` one that tempts and settles nothing; `@noise` statements about nothing. People are drawn
from these with a fixed seed.
"""

import hashlib
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from loom.canonical import Json
from loom.planes.profile.structured.interface import Fact

FOLDER = Path(__file__).parent / "people"
FIT = FOLDER / "invented.txt"
KEPT_BACK = FOLDER / "kept_back.txt"
DAY_US = 86_400_000_000
BEGIN_US = 1_735_689_600_000_000
KEYED_SHARE = 0.2
NOISE = 4
STRANGE = 4
"""Statements of other domains in a person's memories."""


@dataclass
class Property:
    """One property: what settles it, and what only tempts."""

    name: str
    schema: dict[str, Json]
    says: list[tuple[str, Json]] = field(default_factory=list[tuple[str, Json]])
    tempts: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])


@dataclass
class Domain:
    """One schema with its statements."""

    name: str
    properties: list[Property] = field(default_factory=list[Property])
    noise: list[str] = field(default_factory=list[str])
    strange: list[str] = field(default_factory=list[str])

    @property
    def schema(self) -> dict[str, Json]:
        """The JSON Schema."""
        return {"type": "object", "properties": {one.name: one.schema for one in self.properties}}


@dataclass(frozen=True)
class Person:
    """One user to judge on.

    Attributes:
        name: for messages.
        schema_name: the schema's name.
        schema: the schema.
        facts: what is known, of normal sensitivity.
        gold: the value of each property, None where nothing settles it.
        evidence: of each value, the keys of the memories that give it.
        difficulty: of each property `keyed`, `typed` or `language`.
        reasons: of each null, why.
    """

    name: str
    schema_name: str
    schema: Mapping[str, Json]
    facts: Sequence[Fact]
    gold: Mapping[str, Json]
    evidence: Mapping[str, Sequence[str]]
    difficulty: Mapping[str, str]
    reasons: Mapping[str, str]


def sha256_of(path: Path) -> str:
    """Hex SHA-256 of a file of statements."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def domains(path: Path) -> list[Domain]:
    """The domains of a file of statements."""
    made: list[Domain] = []
    noisy = False
    for line in path.read_text("utf-8").splitlines():
        if line.startswith("@schema "):
            made.append(Domain(line.split()[1]))
            noisy = False
        elif line == "@noise":
            noisy = True
        elif noisy:
            made[-1].noise.append(line)
        elif line.startswith("+ "):
            text, _, value = line[2:].rpartition(" => ")
            one = made[-1].properties[-1]
            one.says.append((text, typed(one.schema, value)))
        elif line.startswith("- "):
            text, _, reason = line[2:].rpartition(" :: ")
            made[-1].properties[-1].tempts.append((text, reason))
        elif line and not line.startswith("#"):
            made[-1].properties.append(property_of([part.strip() for part in line.split("|")]))
    for one in made:
        one.strange = [
            text
            for other in made
            if other is not one
            for part in other.properties
            if part.schema["type"] not in ("boolean", "array") and part.schema.get("format") not in ("email", "uri")
            for text, _ in part.tempts
        ]
    return made


def property_of(parts: Sequence[str]) -> Property:
    """A property from the parts of its line."""
    name, kind, description, *pattern = parts
    word, _, rest = kind.partition(" ")
    schema: dict[str, Json] = {"description": description}
    if word == "enum":
        schema |= {"type": "string", "enum": list(rest.split(","))}
    elif word == "array":
        schema |= {"type": "array", "items": {"type": "string", "enum": list(rest.split(","))}, "uniqueItems": True}
    else:
        schema["type"] = word
        if rest in ("date", "email", "uri"):
            schema["format"] = rest
        if rest.startswith("pattern ") or pattern:
            schema["pattern"] = (pattern[0] if pattern else rest).removeprefix("pattern ")
    return Property(name, schema)


def typed(schema: Mapping[str, Json], text: str) -> Json:
    """A value as its line writes it."""
    kind = schema["type"]
    if kind == "array":
        return [] if text == "[]" else list(text.split(","))
    return json.loads(text) if kind in ("boolean", "integer", "number") else text


def people(domain: Domain, count: int, seed: int = 1) -> Iterator[Person]:
    """`count` people drawn from a domain."""
    dice = random.Random(f"{domain.name} {seed}")
    for number in range(count):
        yield person(domain, f"{domain.name}-{number}", dice)


def person(domain: Domain, name: str, dice: random.Random) -> Person:
    """One person: some properties settled, once or anew, some only tempted, some not touched."""
    said: list[tuple[str, str, list[str]]] = []
    gold: dict[str, Json] = {}
    evidence: dict[str, list[str]] = {}
    difficulty: dict[str, str] = {}
    reasons: dict[str, str] = {}
    for one in domain.properties:
        drawn, value, reason = draw(one, dice)
        keyed = bool(drawn) and value is not None and dice.random() < KEYED_SHARE
        gold[one.name] = value
        difficulty[one.name] = "keyed" if keyed else "typed"
        if value is None:
            reasons[one.name] = reason
        for place, (text, settles) in enumerate(drawn):
            key = f"{one.name}_{place}" if keyed and settles else f"note_{len(said):03}"
            said.append((key, text, []))
            if settles and place == max(spot for spot, (_, good) in enumerate(drawn) if good):
                evidence[one.name] = [key]
    noise = dice.sample(domain.noise, NOISE) + dice.sample(domain.strange, STRANGE)
    said += [(f"note_{len(said) + place:03}", text, []) for place, text in enumerate(noise)]
    facts = [
        Fact(key, key, text, "semantic", tags, None, BEGIN_US + place * DAY_US, 1)
        for place, (key, text, tags) in enumerate(said)
    ]
    return Person(name, domain.name, domain.schema, facts, gold, evidence, difficulty, reasons)


def draw(one: Property, dice: random.Random) -> tuple[list[tuple[str, bool]], Json, str]:
    """The statements about one property in the order of time, whether each settles it, its value, or why it is null."""
    turn = dice.random()
    safe = [text for text, reason in one.tempts if reason not in ("retracted", "absent", "vague")]
    if turn < 0.3:
        return [], None, "absent"
    if turn < 0.55 and one.tempts:
        text, reason = dice.choice(one.tempts)
        return [(text, False)], None, reason
    text, value = dice.choice(one.says)
    if turn < 0.7 and safe:
        return [(text, True), (dice.choice(safe), False)], value, ""
    if turn < 0.8 and one.schema["type"] != "array":
        before, _ = dice.choice(one.says)
        return [(before, True), (text, True)] if before != text else [(text, True)], value, ""
    return [(text, True)], value, ""
