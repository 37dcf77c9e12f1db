"""The structure of a JSON Schema: its parts, what they refer to, and whether following that ends soon."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, cast
from urllib.parse import unquote

from loom.canonical import Json
from loom.planes.profile.structured import assertions

PATTERN_LENGTH_MAX: Final = 500
EXPANDED_MAX: Final = 5_000
"""Parts of a schema, each counted as often as references lead to it."""

MAPPED: Final = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
LISTED: Final = ("allOf", "anyOf", "oneOf", "prefixItems")
SINGLE: Final = (
    "items",
    "contains",
    "additionalProperties",
    "propertyNames",
    "not",
    "if",
    "then",
    "else",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentSchema",
)
REFERRING: Final = ("$ref", "$dynamicRef")
NAMING: Final = ("$anchor", "$dynamicAnchor")
REPEATING: Final = frozenset("*+{")
GROUPING: Final = frozenset("()\\|")

Path = tuple[str, ...]


class Unusable(Exception):
    """A schema that Loom does not take.

    Attributes:
        path: the steps to the part.
        reason: what is wrong there, without its text.
    """

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(reason)
        self.path = path
        self.reason = reason


@dataclass
class Walk:
    """The parts of a schema.

    Attributes:
        parts: the path of each part that is a schema, and the paths of those right inside it.
        names: the path of the part that has an anchor's name.
        refers: from a part's path to the reference that stands in it.
    """

    parts: dict[Path, list[Path]] = field(default_factory=dict[Path, list[Path]])
    names: dict[str, Path] = field(default_factory=dict[str, Path])
    refers: dict[Path, list[tuple[str, str]]] = field(default_factory=dict[Path, list[tuple[str, str]]])


def check(document: Mapping[str, Json]) -> None:
    """Unusable when a reference leads outside or in a circle, a pattern may not be used, or the whole is too large.

    Args:
        document: a schema that its metaschema allows, of bounded depth.
    """
    walk = Walk()
    stack: list[tuple[Path, Mapping[str, Json]]] = [((), document)]
    while stack:
        path, part = stack.pop()
        inside = list(_inside(path, part))
        walk.parts[path] = [where for where, _ in inside]
        _note(walk, path, part)
        for where, one in inside:
            walk.parts.setdefault(where, [])
            if isinstance(one, dict):
                stack.append((where, one))
    _check_sizes({path: _targets(walk, path) for path in walk.parts})


def _inside(path: Path, part: Mapping[str, Json]) -> Iterator[tuple[Path, Json]]:
    """The schemas right inside a part."""
    for word, value in part.items():
        if word in MAPPED and isinstance(value, dict):
            yield from (((*path, word, name), one) for name, one in value.items())
        elif word in LISTED and isinstance(value, list):
            yield from (((*path, word, str(place)), one) for place, one in enumerate(value))
        elif word in SINGLE:
            yield (*path, word), value


def _note(walk: Walk, path: Path, part: Mapping[str, Json]) -> None:
    """Take in what a part says of itself.

    Raises:
        Unusable: it has an address of its own, a name that is taken, or a pattern that may not be used.
    """
    for word in ("$id", "$schema"):
        if path and word in part:
            raise Unusable((*path, word), "only the whole schema may have one")
    for word in NAMING:
        name = part.get(word)
        if isinstance(name, str) and walk.names.setdefault(name, path) != path:
            raise Unusable((*path, word), "another part has this name")
    walk.refers[path] = [(word, cast("str", part[word])) for word in REFERRING if word in part]
    if isinstance(part.get("pattern"), str):
        _check_pattern((*path, "pattern"), cast("str", part["pattern"]))
    for pattern in cast("Mapping[str, Json]", part.get("patternProperties") or {}):
        where = (*path, "patternProperties", pattern)
        _check_pattern(where, pattern)
        if GROUPING & set(pattern) or sum(character in REPEATING for character in pattern) > 1:
            raise Unusable(where, "a pattern of names may repeat one thing, and group nothing")


def _check_pattern(path: Path, pattern: str) -> None:
    if len(pattern) > PATTERN_LENGTH_MAX:
        raise Unusable(path, f"a pattern has at most {PATTERN_LENGTH_MAX} characters")
    if not assertions.compiles(pattern):
        raise Unusable(path, "is no regular expression")


def _targets(walk: Walk, path: Path) -> list[Path]:
    """What a part leads to: the parts inside it, and those it refers to."""
    return [*walk.parts[path], *(_target(walk, path, *one) for one in walk.refers.get(path, ()))]


def _target(walk: Walk, path: Path, word: str, reference: str) -> Path:
    where = (*path, word)
    if not reference.startswith("#"):
        raise Unusable(where, "refers to something outside the schema; copy it into $defs")
    rest = reference[1:]
    if rest and not rest.startswith("/"):
        if rest not in walk.names:
            raise Unusable(where, "refers to a name that nothing in the schema has")
        return walk.names[rest]
    steps = tuple(_step(one) for one in rest.split("/")[1:])
    if steps not in walk.parts:
        raise Unusable(where, "refers to nothing that is a schema here")
    return steps


def _step(text: str) -> str:
    """A step of a JSON pointer in a fragment, as the name it stands for."""
    return unquote(text).replace("~1", "/").replace("~0", "~")


def _check_sizes(leads: Mapping[Path, list[Path]]) -> None:
    """Unusable when following the parts from the whole comes back to one, or goes through too many."""
    sizes: dict[Path, int] = {}
    open_paths: set[Path] = set()
    stack: list[tuple[Path, bool]] = [((), False)]
    while stack:
        path, after = stack.pop()
        if after:
            open_paths.discard(path)
            sizes[path] = 1 + sum(sizes[one] for one in leads[path])
            if sizes[path] > EXPANDED_MAX:
                raise Unusable(path, f"has more than {EXPANDED_MAX} parts when its references are followed")
            continue
        if path in sizes:
            continue
        if path in open_paths:
            raise Unusable(path, "refers to itself, which has no end")
        open_paths.add(path)
        stack.append((path, True))
        for one in leads[path]:
            if one in open_paths:
                raise Unusable(path, "leads back to itself, which has no end")
            stack.append((one, False))
