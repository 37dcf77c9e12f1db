"""The text under which a memory is found: its key, its tags, and what its value says."""

from collections.abc import Iterable, Iterator
from typing import Final

from loom.canonical import Json

SEARCHABLE_CHARACTERS_MAX: Final = 200_000
_NODES_MAX: Final = 50_000


def searchable(key: str, value: Json, tags: Iterable[str]) -> str:
    """One text of the key, the tags, and every name, string, number and truth value of `value`.

    Nested values are flattened in order; null says nothing. At most 200,000 characters
    and 50,000 parts of the value count, however deep it is.
    """
    lines: list[str] = []
    room = SEARCHABLE_CHARACTERS_MAX
    for line in _lines(key, value, tags):
        lines.append(line[:room])
        room -= len(line) + 1
        if room <= 0:
            break
    return "\n".join(lines)


def value_text(value: Json) -> str:
    """`value` as a person would read it: a string as it is, anything else flattened; bounded as `searchable`."""
    if isinstance(value, str):
        return value[:SEARCHABLE_CHARACTERS_MAX]
    return "\n".join(_flat(value))[:SEARCHABLE_CHARACTERS_MAX]


def _lines(key: str, value: Json, tags: Iterable[str]) -> Iterator[str]:
    yield key
    joined = " ".join(tags)
    if joined:
        yield joined
    yield from _flat(value)


def _flat(value: Json) -> Iterator[str]:
    """The leaves of `value`, each with the name it stands under; a stack, so that depth costs no recursion."""
    stack: list[tuple[str, Json]] = [("", value)]
    for _ in range(_NODES_MAX):
        if not stack:
            return
        name, node = stack.pop()
        if isinstance(node, dict):
            if name:
                yield name
            stack.extend(reversed(node.items()))
        elif isinstance(node, list):
            stack.extend((name if place == 0 else "", child) for place, child in reversed(list(enumerate(node))))
        elif node is not None:
            leaf = str(node).lower() if isinstance(node, bool) else str(node)
            yield f"{name}: {leaf}" if name else leaf
