"""Who calls a symbol, and who calls those.

A syntax tree knows names and not types, so a use is traced to a definition by what stands beside it: the
same file, an import, the class or module it is called of. What only the name speaks for is
kept and marked `name`. A use that a nearer definition explains is left out.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Final, cast

from loom.planes.code import symbols
from loom.planes.code.extract import BASE, CALL, MEMBER_CALL, MENTION, OF_SOMETHING, SELF
from loom.planes.code.grammar import FILE, METHOD, PROTOTYPE
from loom.planes.code.symbols import Held
from loom.storage.interface import Row, Transaction

USES_MAX: Final = 2_000
"""Uses, each of one name in one file, that one step looks at."""

FRONTIER_MAX: Final = 100
"""Symbols whose callers one step asks for."""

MATCHES_AT_ONCE: Final = 100
"""Uses whose surroundings are read at once, until there are enough."""

PATHS_KEPT_MAX: Final = 4_096
PACKAGES_MAX: Final = 3
"""How many packages above a module may hand its names on."""

SAME_FILE, IMPORTED, QUALIFIED, BY_NAME = "same_file", "imported", "qualified", "name"
CERTAINTY: Final = (SAME_FILE, IMPORTED, QUALIFIED, BY_NAME)
OWN_METHODS_BARE: Final = frozenset({"java", "csharp", "cpp", "ruby"})
"""Languages in which a method calls its neighbours without saying of what."""

IMPORTING: Final = frozenset({"python", "javascript", "typescript", "rust"})
"""Languages in which another file's name is imported before it is mentioned."""

USES: Final = """
SELECT file_id, name, role, receiver, lines FROM code_use
WHERE org = :org AND namespace = :namespace AND name IN (:names) AND role IN (:roles)
ORDER BY name, file_id, role, receiver LIMIT :most
"""
IMPORTS: Final = """
SELECT file_id, name FROM code_use
WHERE org = :org AND namespace = :namespace AND name IN (:names) AND role = 'import' AND file_id IN (:files)
"""


@dataclass(frozen=True, slots=True)
class Caller:
    """A use of a symbol.

    Attributes:
        symbol: what uses it; None for a file's own code, outside of its definitions.
        file_id: the file.
        line: where.
        how: `call`, `member_call`, `mention` (handed on as a value) or `base` (inherited from).
        match: what speaks for it: `same_file`, `imported`, `qualified`, or only the `name`.
        of: the symbol that is used.
        depth: 1 for a use of what was asked for, 2 for a use of such a user.
    """

    symbol: Held | None
    file_id: int
    line: int
    how: str
    match: str
    of: Held
    depth: int


@dataclass(frozen=True, slots=True)
class Traced:
    """Callers, nearest first, and whether there were more than could be looked at."""

    callers: Sequence[Caller]
    cut: bool


@dataclass(frozen=True, slots=True)
class _Use:
    file_id: int
    name: str
    role: str
    receiver: str
    lines: Sequence[int]


@dataclass(frozen=True, slots=True)
class _Around:
    """What one step knows beside the uses: every definition of the names, and what each file imports.

    Attributes:
        definitions: by name.
        in_file: the symbols of files that define one of the names and use it of `self`.
        imports: the names that each file imports.
    """

    definitions: Mapping[str, Sequence[Held]]
    in_file: Mapping[int, Sequence[Held]]
    imports: Mapping[int, Collection[str]]


def callers(tx: Transaction, namespace: str, targets: Sequence[Held], depth: int, most: int) -> Traced:
    """Who uses `targets`, and up to `depth` steps on who uses those; at most `most`, the nearest and surest first.

    A use is told once, as one of the definition that it most likely means.
    """
    found: list[Caller] = []
    seen = {target.item_id for target in targets}
    frontier: list[Held] = list(targets)
    cut = False
    for step in range(1, depth + 1):
        roles = (CALL, MEMBER_CALL, MENTION, BASE) if step == 1 else (CALL, MEMBER_CALL)
        wanted = most + 1 if step == depth else max(most + 1, FRONTIER_MAX)
        level, full = _users(tx, namespace, frontier[:FRONTIER_MAX], roles, (step, wanted))
        cut = cut or full or len(frontier) > FRONTIER_MAX
        found += level
        frontier = []
        for one in level:
            if one.symbol is not None and one.how != MENTION and one.symbol.item_id not in seen:
                seen.add(one.symbol.item_id)
                frontier.append(one.symbol)
        if len(found) > most or not frontier:
            break
    return Traced(found[:most], cut or len(found) > most)


def _users(
    tx: Transaction, namespace: str, targets: Sequence[Held], roles: Sequence[str], step: tuple[int, int]
) -> tuple[list[Caller], bool]:
    """The users of one step, the surest first, about so many; and whether there were more uses than are looked at."""
    depth, wanted = step
    names = sorted({target.name for target in targets})
    rows = tx.rows(USES, namespace=namespace, names=names, roles=list(roles), most=USES_MAX) if names else ()
    uses = [_use(row) for row in rows]
    around = _around(tx, namespace, targets, uses)
    matches = _matches(uses, targets, around)
    found: list[Caller] = []
    once: set[tuple[int, int, int]] = set()
    in_file: dict[int, list[Held]] = {}
    for place, (use, line, target, match) in enumerate(matches):
        if place % MATCHES_AT_ONCE == 0:
            if len(found) >= wanted:
                break
            files = {one.file_id for one, _, _, _ in matches[place : place + MATCHES_AT_ONCE]} - in_file.keys()
            in_file |= symbols.in_files(tx, namespace, sorted(files))
        user = _enclosing(in_file.get(use.file_id, ()), line)
        key = (use.file_id, line if user is None else user.item_id, target.item_id)
        if key not in once and (user is None or user.item_id != target.item_id):
            once.add(key)
            found.append(Caller(user, use.file_id, line, use.role, match, target, depth))
    return found, len(uses) >= USES_MAX


def _matches(uses: Sequence[_Use], targets: Sequence[Held], around: _Around) -> list[tuple[_Use, int, Held, str]]:
    """Every use that may mean a target, by line, with the likeliest target; the surest first."""
    by_name: dict[str, list[Held]] = defaultdict(list)
    for target in targets:
        by_name[target.name].append(target)
    found: list[tuple[_Use, int, Held, str]] = []
    for use in uses:
        # What a line means depends on its own place only where it is said of `self` in a file that defines the name.
        placed = use.role == MEMBER_CALL and use.receiver in SELF and use.file_id in around.in_file
        for lines in [[line] for line in use.lines] if placed else [use.lines]:
            best = _best(use, lines[0], by_name[use.name], around)
            if best is not None:
                found += [(use, line, *best) for line in lines]
    found.sort(key=lambda one: (one[0].role == MENTION, CERTAINTY.index(one[3]), one[0].file_id, one[1]))
    return found


def _best(use: _Use, line: int, targets: Sequence[Held], around: _Around) -> tuple[Held, str] | None:
    """The target that a use most likely means, and what speaks for it; of equal ones the first."""
    best: tuple[Held, str] | None = None
    for target in targets:
        match = _match(use, line, target, around)
        if match is not None and (best is None or CERTAINTY.index(match) < CERTAINTY.index(best[1])):
            best = target, match
            if match == CERTAINTY[0]:
                break
    return best


def _around(tx: Transaction, namespace: str, targets: Sequence[Held], uses: Sequence[_Use]) -> _Around:
    definitions: dict[str, list[Held]] = defaultdict(list)
    for held in symbols.by_names(tx, namespace, [target.name for target in targets], USES_MAX):
        definitions[held.name].append(held)
    files = sorted({use.file_id for use in uses})
    known = [one for held in definitions.values() for one in held]
    wanted = {name for one in (*targets, *known) for name in (one.name, *_modules(one.path))}
    imports: dict[int, set[str]] = defaultdict(set)
    if files:
        for row in tx.rows(IMPORTS, namespace=namespace, names=sorted(wanted), files=files):
            imports[cast("int", row["file_id"])].add(cast("str", row["name"]))
    defining = {one.file_id for one in known}
    own = {use.file_id for use in uses if use.role == MEMBER_CALL and use.receiver in SELF and use.file_id in defining}
    return _Around(definitions, symbols.in_files(tx, namespace, sorted(own)), imports)


def _match(use: _Use, line: int, target: Held, around: _Around) -> str | None:
    """What speaks for this use meaning the target; None when something else explains it."""
    method = target.kind == METHOD or (target.kind == PROTOTYPE and bool(target.parent_id))
    if use.role == MENTION and method != (use.receiver == OF_SOMETHING):
        return None
    if use.role != MEMBER_CALL:
        return _bare_match(use, target, around, method=method)
    if use.receiver in SELF:
        return _own_match(use, line, target, around) if method else None
    if use.receiver and use.receiver in (*_outer(target)[-1:], _stem(target.path), _folder(target.path)):
        return QUALIFIED
    # A module's function called of something else than its module: an alias, or another thing's method.
    return BY_NAME if method or _stem(target.path) in around.imports.get(use.file_id, ()) else None


def _bare_match(use: _Use, target: Held, around: _Around, *, method: bool) -> str | None:
    """A name that stands alone."""
    same_file = use.file_id == target.file_id
    if method and use.role == CALL:
        return SAME_FILE if same_file and target.language in OWN_METHODS_BARE else None
    imported = around.imports.get(use.file_id, ())
    nearer = (one for one in around.definitions.get(use.name, ()) if one.file_id == use.file_id and one.kind != METHOD)
    if same_file:
        return SAME_FILE
    from_here = not _modules(target.path).isdisjoint(imported)
    if from_here and (use.name in imported or target.language not in IMPORTING):
        return IMPORTED
    if use.name in imported:
        known = around.definitions.get(use.name, ())
        return None if any(not _modules(one.path).isdisjoint(imported) for one in known) else BY_NAME
    unlikely = use.role == MENTION and (method or target.language in IMPORTING)
    return None if any(nearer) or unlikely else BY_NAME


def _own_match(use: _Use, line: int, target: Held, around: _Around) -> str | None:
    """A method of `self`: the class's own, or one that it may inherit."""
    user = _enclosing(around.in_file.get(use.file_id, ()), line)
    if user is None:
        return BY_NAME
    if use.file_id == target.file_id and _is_inside(user, target):
        return SAME_FILE
    own = (one for one in around.definitions.get(use.name, ()) if one.file_id == use.file_id)
    return None if any(_is_inside(user, one) for one in own) else BY_NAME


def _use(row: Row) -> _Use:
    return _Use(
        cast("int", row["file_id"]),
        cast("str", row["name"]),
        cast("str", row["role"]),
        cast("str", row["receiver"]),
        cast("list[int]", json.loads(cast("str", row["lines"]))),
    )


@lru_cache(maxsize=PATHS_KEPT_MAX)
def _stem(path: str) -> str:
    """The module of a file, as imports spell it: the file's name, or its folder's for an `__init__` or `index`."""
    file = PurePosixPath(path)
    return file.parent.name if file.stem in ("__init__", "index", "mod") else file.stem


@lru_cache(maxsize=PATHS_KEPT_MAX)
def _modules(path: str) -> frozenset[str]:
    """The parts of a path that an import from it may name: its module, and the packages that may hand it on."""
    return frozenset({_stem(path), *PurePosixPath(path).parent.parts[-PACKAGES_MAX:]} - {""})


@lru_cache(maxsize=PATHS_KEPT_MAX)
def _folder(path: str) -> str:
    """The folder a file is in, which is its package in Go."""
    return PurePosixPath(path).parent.name


def _outer(symbol: Held) -> list[str]:
    return symbol.qualified.split(".")[:-1]


def _enclosing(held: Sequence[Held], line: int) -> Held | None:
    """The innermost definition that holds the line."""
    best: Held | None = None
    for one in held:
        if one.start_line > line:
            break
        if one.kind != FILE and line <= one.end_line and (best is None or one.start_line >= best.start_line):
            best = one
    return best


def _is_inside(user: Held, method: Held) -> bool:
    """Whether the user stands in the class that the method belongs to, by their names: an `impl` has no symbol."""
    outer = _outer(method)
    return bool(outer) and user.qualified.split(".")[: len(outer)] == outer
