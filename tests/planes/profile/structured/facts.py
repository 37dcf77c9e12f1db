"""Small invented facts for tests of the builder."""

from collections.abc import Mapping, Sequence

from loom.canonical import Json
from loom.models.hashing import HashingEmbedder
from loom.planes.profile.structured.interface import Fact, Settled
from loom.planes.profile.structured.rules_builder import RulesBuilder

DAY_US = 86_400_000_000
START_US = 1_740_787_200_000_000
BUILD_S = 30.0


def fact(key: str, value: Json, day: int = 0, *, tags: Sequence[str] = (), valid_day: int | None = None) -> Fact:
    """A fact written on a day after the start."""
    valid_at = None if valid_day is None else START_US + valid_day * DAY_US
    return Fact(key, key, value, "semantic", tags, valid_at, START_US + day * DAY_US + 1, 1)


def built(properties: Mapping[str, Json], *facts: Fact) -> Mapping[str, Settled]:
    """What the rules settle."""
    schema: dict[str, Json] = {"type": "object", "properties": dict(properties)}
    return RulesBuilder(HashingEmbedder()).build(schema, facts, BUILD_S)


def value(schema: Json, *facts: Fact, name: str = "ferry_pass") -> Json:
    """The value of the only property, or None."""
    settled = built({name: schema}, *facts).get(name)
    return None if settled is None else settled.value
