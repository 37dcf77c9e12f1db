"""What a language model's answer is worth: each value against its schema, each id against what was sent. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from referencing.exceptions import Unresolvable

from loom.canonical import Json, encoded
from loom.planes.profile.structured.assertions import Validator
from loom.planes.profile.structured.interface import Fact, Source
from loom.planes.profile.structured.model_prompt import Named

VALUE_LENGTH_MAX: Final = 8_192
"""Characters of one property's value, once encoded."""

SOURCES_MAX: Final = 20
"""Facts that are kept as a value's sources."""

QUOTED_LENGTH_MAX: Final = 500
QUOTED_BEFORE: Final = 200
"""Of a long fact, how many characters before the place that says the value are quoted."""

TOGETHER: Final = frozenset(
    {
        *("required", "minProperties", "maxProperties", "dependentRequired", "dependentSchemas", "propertyNames"),
        *("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "unevaluatedProperties"),
    }
)
"""What a schema says of its properties together. One call may settle a few of them; the whole is judged later."""


@dataclass(frozen=True, slots=True)
class Settling:
    """What one call says of one property.

    Attributes:
        value: None where it says that the facts leave it open, or take it back.
        facts: the facts that were sent and that it names, each once.
    """

    value: Json
    facts: Sequence[Named]


@dataclass(frozen=True, slots=True)
class Read:
    """An answer, read.

    Attributes:
        settled: by property; those that it does not speak of, or has no evidence for, are not there.
        problems: what is wrong with it, for the model to mend; no problem when there are none.
    """

    settled: Mapping[str, Settling]
    problems: Sequence[Mapping[str, Json]]


class Checker:
    """Judges values by a schema, and looks at nothing outside of it."""

    def __init__(self, schema: Mapping[str, Json]) -> None:
        alone = {word: part for word, part in schema.items() if word not in TOGETHER}
        self._validator = Validator(alone)

    def problem(self, name: str, value: Json) -> str | None:
        """What is wrong with a property's value, without repeating it; None when it fits."""
        if len(encoded(value)) > VALUE_LENGTH_MAX:
            return f"the value has over {VALUE_LENGTH_MAX} characters"
        try:
            found = next(iter(self._validator.faults({name: value})), None)
        except (Unresolvable, RecursionError):
            return "the schema cannot be followed"
        if found is None:
            return None
        where = "".join(f"/{step}" for step in found.path[1:])
        return f'the value{" at " if where else ""}{where} does not fit the schema\'s "{found.rule}"'


def read(answer: Json, names: Sequence[str], facts: Sequence[Named], checker: Checker) -> Read:
    """What an answer says of the properties it was asked for, by facts that were sent with the question."""
    if not isinstance(answer, dict):
        return Read({}, [{"property": "", "problem": "the answer should be an object of the properties"}])
    by_id = {one.fact_id: one for one in facts}
    settled: dict[str, Settling] = {}
    problems: list[Mapping[str, Json]] = []
    for name in names:
        part = answer.get(name)
        if part is None:
            continue
        if not isinstance(part, dict) or "value" not in part:
            problems.append({"property": name, "problem": 'should be an object of "value" and "facts"'})
            continue
        evidence = _evidence(part.get("facts"), by_id)
        value = part["value"]
        if not evidence:
            continue
        wrong = None if value is None else checker.problem(name, value)
        if wrong is None:
            settled[name] = Settling(value, evidence)
        else:
            problems.append({"property": name, "problem": wrong})
    return Read(settled, problems)


def sources(settling: Settling) -> list[Source]:
    """The facts of a value as its sources, in the order in which the model named them."""
    return [
        Source(one.fact.memory_id, one.fact.version, quoted(one.fact, settling.value))
        for one in settling.facts[:SOURCES_MAX]
    ]


def quoted(fact: Fact, value: Json) -> str:
    """The part of a fact's text that gives the value: all of a short one, else what stands around it."""
    text = fact.value if isinstance(fact.value, str) else encoded(fact.value)
    if len(text) <= QUOTED_LENGTH_MAX:
        return text
    wanted = value if isinstance(value, str) else encoded(value)
    place = text.casefold().find(wanted.casefold()) if wanted else -1
    start = max(0, min(place - QUOTED_BEFORE, len(text) - QUOTED_LENGTH_MAX))
    return text[start : start + QUOTED_LENGTH_MAX]


def _evidence(ids: Json, by_id: Mapping[str, Named]) -> list[Named]:
    listed = ids if isinstance(ids, list) else []
    return [by_id[one] for one in dict.fromkeys(one for one in listed if isinstance(one, str)) if one in by_id]
