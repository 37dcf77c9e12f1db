"""Which symbols a name means: `name`, `Class.name` or `folder/module.Class.name`, in any language's spelling."""

import re
from collections.abc import Sequence
from typing import Final

from loom.planes.code import symbols
from loom.planes.code.grammar import FILE, PROTOTYPE
from loom.planes.code.symbols import Held
from loom.storage.interface import Transaction

SAME_NAME_MAX: Final = 500

_SEPARATORS: Final = re.compile(r"::|->|[.#/\\]")
_CALLED: Final = re.compile(r"\(.*\)\s*\Z", re.DOTALL)
_INDEX_NAMES: Final = frozenset({"__init__", "index", "mod", "lib", "main"})


def parts_of(name: str) -> tuple[str, ...]:
    """A name's parts, the outermost first; parentheses of a call at its end are dropped."""
    bare = _CALLED.sub("", name.strip())
    return tuple(part for part in (piece.strip() for piece in _SEPARATORS.split(bare)) if part)


def is_named(symbol: Held, parts: Sequence[str]) -> bool:
    """Whether the symbol's whole name, its file's path before it, ends in these parts, whatever their case."""
    if symbol.kind == FILE:
        return len(parts) == 1 and symbol.name.casefold() == parts[0].casefold()
    wanted = [part.casefold() for part in parts]
    return any(whole[-len(wanted) :] == wanted for whole in _whole_names(symbol) if len(whole) >= len(wanted))


def _whole_names(symbol: Held) -> list[list[str]]:
    """The symbol's names with the parts of its file's path before them; `x/__init__.py` is `x` too."""
    stem = symbol.path.rpartition(".")[0] or symbol.path
    module = [part.casefold() for part in stem.split("/")]
    own = [part.casefold() for part in symbol.qualified.split(".")]
    names = [[*module, *own]]
    if module[-1] in _INDEX_NAMES:
        names.append([*module[:-1], *own])
    return names


def resolved(tx: Transaction, namespace: str, name: str, path: str = "") -> list[Held]:
    """The symbols that a name means, the likeliest first: those of its very spelling, definitions, code before tests.

    Args:
        tx: a transaction.
        namespace: where.
        name: the name.
        path: only in this file, or in files whose paths end so; empty for any.
    """
    parts = parts_of(name)
    if not parts:
        return []
    rows = symbols.by_names(tx, namespace, [parts[-1], name.strip()], SAME_NAME_MAX)
    found = [row for row in rows if is_named(row, parts) or row.name == name.strip()]
    if path:
        found = [row for row in found if row.path == path or row.path.endswith("/" + path.lstrip("/"))]
    found.sort(key=lambda row: (row.name != parts[-1], row.kind == PROTOTYPE, _is_test(row.path), _place(row)))
    return found


def _is_test(path: str) -> bool:
    return "test" in path.casefold()


def _place(row: Held) -> tuple[int, str, int]:
    return row.path.count("/"), row.path, row.start_line
