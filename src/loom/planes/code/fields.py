"""Fields that the code operations share, and how symbols and files are shown."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from loom.access import namespaces
from loom.errors import NotFound, Rejected
from loom.ops.text_checks import has_control
from loom.planes.code import store
from loom.planes.code.extract import QUALIFIED_CHARACTERS_MAX
from loom.planes.code.files import PATH_CHARACTERS_MAX
from loom.planes.code.graph import Caller
from loom.planes.code.store import Repository
from loom.planes.code.symbols import Held
from loom.storage.interface import Transaction

EXCERPT_CHARACTERS = 300
ID_CHARACTERS = 20
ID_DIGITS = 16

SymbolName = Annotated[str, Field(max_length=QUALIFIED_CHARACTERS_MAX)]
SymbolId = Annotated[str, Field(max_length=ID_CHARACTERS)]
Path = Annotated[str, Field(max_length=PATH_CHARACTERS_MAX)]


class Shown(BaseModel):
    """Base of what answers hold."""

    model_config = ConfigDict(frozen=True)


class SymbolShown(Shown):
    """A symbol in a list."""

    symbol_id: Annotated[str, Field(description="Names this symbol until its file changes and is indexed again.")]
    name: Annotated[str, Field(description="Its own name.")]
    qualified_name: Annotated[str, Field(description="Its name with those of what it stands in, joined by dots.")]
    kind: Annotated[str, Field(description="function, method, class, constant and so on; file for a file's own code.")]
    language: Annotated[str, Field(description="The language; empty for one that is not parsed.")]
    path: Annotated[str, Field(description="Its file, from the top of the repository.")]
    start_line: Annotated[int, Field(description="Its first line, decorators included, from 1.")]
    end_line: Annotated[int, Field(description="Its last line.")]
    signature: Annotated[str, Field(description="How it is declared, in one line.")]
    docstring: Annotated[str, Field(description="What is written about it; in lists its beginning.")]


class CallerShown(Shown):
    """One use of a symbol."""

    symbol_id: Annotated[str, Field(description="What uses it; empty for a file's own code.")]
    qualified_name: Annotated[str, Field(description="The name of what uses it; empty for a file's own code.")]
    kind: Annotated[str, Field(description="What kind of thing uses it; file for a file's own code.")]
    path: Annotated[str, Field(description="The file of the use.")]
    line: Annotated[int, Field(description="The line of the use.")]
    how: Annotated[
        str, Field(description="call; member_call, of an object or module; mention, as a value; base, inherited from.")
    ]
    match: Annotated[
        str,
        Field(
            description="What speaks for it: same_file, imported, qualified (called of its class or module), or name: "
            "only the name is the same, so look before you rely on it."
        ),
    ]
    uses: Annotated[
        str, Field(description="The qualified name of what is used: what you asked for, or a caller of it.")
    ]
    depth: Annotated[int, Field(description="1 for a use of what you asked for, 2 for a use of such a user.")]


def shown(held: Held, docstring_max: int = EXCERPT_CHARACTERS) -> SymbolShown:
    """A symbol as answers show it."""
    return SymbolShown(
        symbol_id=symbol_id_of(held.item_id),
        name=held.name,
        qualified_name=held.qualified,
        kind=held.kind,
        language=held.language,
        path=held.path,
        start_line=held.start_line,
        end_line=held.end_line,
        signature=held.signature,
        docstring=held.docstring[:docstring_max],
    )


def callers_shown(tx: Transaction, namespace: str, found: list[Caller]) -> list[CallerShown]:
    """Uses as answers show them."""
    paths = store.paths_by_id(tx, namespace, sorted({one.file_id for one in found}))
    return [
        CallerShown(
            symbol_id="" if one.symbol is None else symbol_id_of(one.symbol.item_id),
            qualified_name="" if one.symbol is None else one.symbol.qualified,
            kind="file" if one.symbol is None else one.symbol.kind,
            path=paths[one.file_id][0],
            line=one.line,
            how=one.how,
            match=one.match,
            uses=one.of.qualified,
            depth=one.depth,
        )
        for one in found
        if one.file_id in paths
    ]


def symbol_id_of(item_id: int) -> str:
    """A symbol's id as callers see it: `sym_` and 16 hex digits."""
    return f"sym_{item_id:0{ID_DIGITS}x}"


def item_id_of(symbol_id: str) -> int:
    """The number behind a symbol's id.

    Raises:
        Rejected: it is not one.
    """
    digits = symbol_id.removeprefix("sym_")
    if digits == symbol_id or len(digits) != ID_DIGITS or not set(digits) <= set("0123456789abcdef"):
        raise Rejected("symbol_id: is not one; code.search and code.symbol give them", field="symbol_id")
    number = int(digits, 16)
    return number if number < 1 << 63 else 0


def indexed(tx: Transaction, namespace: str) -> Repository:
    """The repository of the namespace.

    Raises:
        NotFound: it holds none.
    """
    repository = store.of_namespace(tx, namespace)
    if repository is None:
        others = [space.name for space in namespaces.listed(tx, None, kind="code", most=1)]
        hint = "name another namespace" if others else "index one with code.index"
        raise NotFound(f"namespace: holds no repository; {hint}", field="namespace")
    return repository


def plain(value: str) -> str:
    """A one-line text, for a validator; ValueError when it holds control characters."""
    if has_control(value):
        raise ValueError("control characters are not allowed")
    return value
