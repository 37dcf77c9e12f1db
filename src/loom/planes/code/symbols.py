"""The symbols' rows, and both indexes with them."""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, cast

from loom.planes import candidates
from loom.planes.code import store
from loom.planes.code.extract import Symbol, Use
from loom.planes.code.files import Text
from loom.retrieval import tokens
from loom.storage.indexes import Shelf
from loom.storage.interface import Param, Row, Transaction, Value

COLLECTION: Final = "code"
LINES_A_USE_MAX: Final = 50
"""Lines kept of the uses of one name in one file and role."""

ADD: Final = """
INSERT INTO code_symbol (org, item_id, namespace, file_id, parent_id, kind, name, name_key, qualified, signature,
    docstring, start_line, end_line, vector_space)
VALUES (:org, :item_id, :namespace, :file_id, :parent_id, :kind, :name, :name_key, :qualified, :signature,
    :docstring, :start_line, :end_line, '')
"""
_READ: Final = """
SELECT s.item_id, s.file_id, s.parent_id, s.kind, s.name, s.qualified, s.signature, s.docstring, s.start_line,
    s.end_line, f.path, f.language
FROM code_symbol s JOIN code_file f ON f.org = s.org AND f.file_id = s.file_id
WHERE s.org = :org AND s.namespace = :namespace
"""
BY_IDS: Final = _READ + " AND s.item_id IN (:ids)"
BY_NAMES: Final = _READ + " AND s.name_key IN (:names) ORDER BY +s.item_id LIMIT :most"
IN_FILES: Final = _READ + " AND s.file_id IN (:files) ORDER BY s.file_id, s.start_line, s.end_line DESC"
UNEMBEDDED: Final = (
    _READ  # noqa: S608  # a constant
    + """ AND s.item_id IN (
    SELECT item_id FROM code_symbol WHERE org = :org AND namespace = :namespace AND vector_space = '' LIMIT :most)
ORDER BY +s.item_id
"""
)
ANY_UNEMBEDDED: Final = """
SELECT 1 AS one FROM code_symbol WHERE org = :org AND namespace = :namespace AND vector_space <> :space LIMIT 1
"""
IDS_IN_FILE: Final = "SELECT item_id FROM code_symbol WHERE org = :org AND file_id = :file_id"
DROP_IN_FILE: Final = "DELETE FROM code_symbol WHERE org = :org AND file_id = :file_id"
EMBEDDED: Final = """
UPDATE code_symbol SET vector_space = :space WHERE org = :org AND namespace = :namespace AND item_id IN (:ids)
"""
OTHER_SPACES: Final = """
UPDATE code_symbol SET vector_space = ''
WHERE org = :org AND namespace = :namespace AND vector_space <> '' AND vector_space <> :space
"""
VISIBLE_PAGE: Final = """
SELECT s.item_id, f.path FROM code_file f JOIN code_symbol s ON s.org = f.org AND s.file_id = f.file_id
WHERE f.org = :org AND f.namespace = :namespace AND (:any_kind = 1 OR s.kind IN (:kinds))
    AND (:any_language = 1 OR f.language IN (:languages))
    AND (:under = '' OR substr(f.path, 1, :under_length) = :under)
    AND f.path >= :path AND (f.path > :path OR s.item_id > :after)
ORDER BY f.path, +s.item_id LIMIT :most
"""


@dataclass(frozen=True, slots=True)
class Held:
    """A symbol as it is stored, and the file it is in.

    Attributes:
        item_id: names it in the indexes and in answers.
        file_id: its file's number.
        parent_id: the symbol it stands in; 0 for none.
        kind: one of `grammar.KINDS`.
        name: its own name.
        qualified: with the names around it.
        signature: how it is declared.
        docstring: what is written about it.
        start_line: its first line, from 1.
        end_line: its last line.
        path: its file.
        language: empty for none that is read.
    """

    item_id: int
    file_id: int
    parent_id: int
    kind: str
    name: str
    qualified: str
    signature: str
    docstring: str
    start_line: int
    end_line: int
    path: str
    language: str


def shelf(namespace: str) -> Shelf:
    """Where a namespace's symbols are indexed."""
    return Shelf(COLLECTION, namespace)


@dataclass(frozen=True, slots=True)
class Made:
    """A file ready to be written.

    Attributes:
        path: its path.
        digest: of its content.
        text: its content and language.
        broken: whether it has syntax errors.
        symbols: what it defines.
        texts: under which words each symbol is found.
        uses: the names it uses.
    """

    path: str
    digest: str
    text: Text
    broken: bool
    symbols: Sequence[Symbol]
    texts: Sequence[str]
    uses: Sequence[Use]


@dataclass(frozen=True, slots=True)
class Ids:
    """The numbers that a file had in another store.

    Attributes:
        file_id: its own.
        symbol_ids: those of its symbols in their order; None when they are to have new ones.
    """

    file_id: int
    symbol_ids: Sequence[int] | None


def put(tx: Transaction, namespace: str, made: Made, known: Ids | None = None) -> None:
    """Keep a file with its symbols, in both indexes, in place of what was under its path.

    Args:
        tx: a write transaction.
        namespace: where the file is.
        made: the file.
        known: the numbers to keep it under; None for new ones.
    """
    drop(tx, namespace, made.path)
    file_id = known.file_id if known else tx.stamp()
    tx.run(
        store.ADD_FILE,
        namespace=namespace,
        path=made.path,
        file_id=file_id,
        digest=made.digest,
        language=made.text.language,
        line_count=len(store.lines_of(made.text.content)),
        broken=int(made.broken),
        content=store.deflated(made.text.content),
    )
    given = known.symbol_ids if known else None
    ids = [tx.stamp() for _ in made.symbols] if given is None else given
    tx.run_many(
        ADD,
        [
            {
                "item_id": item_id,
                "namespace": namespace,
                "file_id": file_id,
                "parent_id": ids[symbol.parent] if symbol.parent >= 0 else 0,
                "kind": symbol.kind,
                "name": symbol.name,
                "name_key": symbol.name.casefold(),
                "qualified": symbol.qualified,
                "signature": symbol.signature,
                "docstring": symbol.docstring,
                "start_line": symbol.start_line,
                "end_line": symbol.end_line,
            }
            for item_id, symbol in zip(ids, made.symbols, strict=True)
        ],
    )
    where = shelf(namespace)
    for item_id, text in zip(ids, made.texts, strict=True):
        tx.text.put(where, item_id, tokens.document(text))
    tx.run_many(store.ADD_USE, _uses(namespace, file_id, made.uses))


def _uses(namespace: str, file_id: int, uses: Iterable[Use]) -> list[dict[str, Value]]:
    lines: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for use in uses:
        held = lines[use.name, use.role, use.receiver]
        if len(held) < LINES_A_USE_MAX and (not held or held[-1] != use.line):
            held.append(use.line)
    return [
        {
            "namespace": namespace,
            "name": name,
            "file_id": file_id,
            "role": role,
            "receiver": receiver,
            "lines": json.dumps(found),
        }
        for (name, role, receiver), found in lines.items()
    ]


def drop(tx: Transaction, namespace: str, path: str) -> None:
    """Forget a file and its symbols, in both indexes; no error when it is not there."""
    row = tx.row(store.FILE, namespace=namespace, path=path)
    if row is None:
        return
    file_id = cast("int", row["file_id"])
    where = shelf(namespace)
    for symbol in tx.rows(IDS_IN_FILE, file_id=file_id):
        item_id = cast("int", symbol["item_id"])
        tx.text.remove(where, item_id)
        tx.vectors.remove(where, item_id)
    tx.run(DROP_IN_FILE, file_id=file_id)
    tx.run(store.DROP_USES, file_id=file_id)
    tx.run(store.DROP_FILE, namespace=namespace, path=path)


def drop_all(tx: Transaction, namespace: str) -> int:
    """Forget everything of a namespace; how many symbols there were."""
    row = tx.row(store.SYMBOLS, namespace=namespace)
    for statement in store.DROP_ALL:
        tx.run(statement, namespace=namespace)
    tx.text.drop(shelf(namespace))
    tx.vectors.drop(shelf(namespace))
    return cast("int", row["symbols"]) if row else 0


def by_ids(tx: Transaction, namespace: str, ids: Sequence[int]) -> dict[int, Held]:
    """Symbols by number."""
    rows = tx.rows(BY_IDS, namespace=namespace, ids=list(ids)) if ids else ()
    return {held.item_id: held for held in map(_held, rows)}


def by_names(tx: Transaction, namespace: str, names: Sequence[str], most: int) -> list[Held]:
    """Symbols of these names, whatever their case."""
    keys = sorted({name.casefold() for name in names})
    return [_held(row) for row in tx.rows(BY_NAMES, namespace=namespace, names=keys, most=most)] if keys else []


def in_files(tx: Transaction, namespace: str, files: Sequence[int]) -> dict[int, list[Held]]:
    """The symbols of files in order, outer ones first."""
    found: dict[int, list[Held]] = defaultdict(list)
    for row in tx.rows(IN_FILES, namespace=namespace, files=list(files)) if files else ():
        held = _held(row)
        found[held.file_id].append(held)
    return found


def unembedded(tx: Transaction, namespace: str, most: int) -> list[Held]:
    """Symbols without a vector."""
    return [_held(row) for row in tx.rows(UNEMBEDDED, namespace=namespace, most=most)]


def visible(
    tx: Transaction, namespace: str, kinds: Sequence[str], languages: Sequence[str], under: str
) -> Iterator[Collection[int]]:
    """Symbols of these kinds and languages whose files' paths begin with `under`, in pages; empty for any."""
    params: dict[str, Param] = {
        "namespace": namespace,
        "any_kind": int(not kinds),
        "kinds": list(kinds) or [""],
        "any_language": int(not languages),
        "languages": list(languages) or [""],
        "under": under,
        "under_length": len(under),
    }

    def read(place: tuple[str, int], most: int) -> list[tuple[tuple[str, int], int | None]]:
        path, after = place
        rows = tx.rows(VISIBLE_PAGE, path=path, after=after, most=most, **params)
        return [((cast("str", row["path"]), cast("int", row["item_id"])), cast("int", row["item_id"])) for row in rows]

    return candidates.pages(read, ("", 0))


def _held(row: Row) -> Held:
    return Held(
        cast("int", row["item_id"]),
        cast("int", row["file_id"]),
        cast("int", row["parent_id"]),
        cast("str", row["kind"]),
        cast("str", row["name"]),
        cast("str", row["qualified"]),
        cast("str", row["signature"]),
        cast("str", row["docstring"]),
        cast("int", row["start_line"]),
        cast("int", row["end_line"]),
        cast("str", row["path"]),
        cast("str", row["language"]),
    )
