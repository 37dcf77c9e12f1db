"""The words and patterns of `cues.toml`, read once."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Final

_TABLES: Final[Mapping[str, Mapping[str, Sequence[str]]]] = tomllib.loads(
    resources.files("loom.planes.profile.structured").joinpath("cues.toml").read_text(encoding="utf-8")
)


def words(name: str) -> frozenset[str]:
    """A set of single words or stems, lower case."""
    return frozenset(_TABLES["words"][name])


def pattern(name: str) -> re.Pattern[str]:
    """Finds any of a list of words and short patterns, as whole words whatever their case, or of Chinese words."""
    whole = rf"(?<![\w'])(?:{'|'.join(_TABLES['patterns'][name])})(?!\w)"
    return re.compile("|".join((whole, *_TABLES["chinese"].get(name, ()))), re.IGNORECASE)


def chinese(name: str) -> re.Pattern[str]:
    """Finds any of a list of Chinese words."""
    return re.compile("|".join(_TABLES["chinese"][name]))


def orders() -> re.Pattern[str]:
    """Finds text that tells its reader to change records."""
    return re.compile("|".join(_TABLES["orders"]["patterns"]), re.IGNORECASE)


def order_triggers() -> Sequence[str]:
    """Parts of words, of which every text that `orders` finds has one; lower case. Most texts have none."""
    return _TABLES["orders"]["triggers"]
