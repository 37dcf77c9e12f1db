"""How answers look at a terminal: tables for people, JSON for programs."""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from rich.console import Console
from rich.table import Table
from rich.text import Text

from loom.edges.cli.printable import printable, printable_json

TIME = re.compile(r"^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)[.\d]*Z$")
CELL_LENGTH_MAX = 600
COLUMNS_MAX = 6
EMPTY: tuple[object, ...] = (None, "", "-", [], {})


def show_json(answer: object) -> None:
    """One JSON document."""
    print(printable_json(answer, indent=2))


def show_table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> None:
    """A row for each mapping; a value that is missing or null stays empty."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        # The first column names the row, and has to be copied whole.
        table.add_column(printable(column.replace("_", " ")), overflow="fold", no_wrap=column == columns[0])
    for row in rows:
        table.add_row(*(Text(shown(row.get(column))) for column in columns))
    _console().print(table)


def show_answer(answer: Mapping[str, Any]) -> None:
    """Any operation's answer, readable: a line a field that is not empty, then each list of objects under its name."""
    flat = dict(_flat(answer, ""))
    fields = {name: value for name, value in flat.items() if value not in EMPTY and not _is_rows(value)}
    if fields:
        _show_fields(fields)
    elif not any(map(_is_rows, flat.values())):
        print("nothing")
    for name, value in flat.items():
        if _is_rows(value):
            print(f"\n{printable(name)}")
            _show_rows(value)


def _flat(value: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    """Fields with those of objects inside, named `outer.inner`."""
    for name, part in value.items():
        if isinstance(part, dict) and part:
            yield from _flat(cast("dict[str, Any]", part), f"{prefix}{name}.")
        else:
            yield prefix + name, part


def _show_fields(fields: Mapping[str, Any]) -> None:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in fields.items():
        table.add_row(Text(printable(name)), Text(_whole(value)))
    _console().print(table)


def _show_rows(rows: Sequence[Mapping[str, Any]]) -> None:
    """A table while it is narrow enough to be read, else a block for each row without its empty fields."""
    columns = dict.fromkeys(column for row in rows for column in row)
    filled = [column for column in columns if any(row.get(column) not in EMPTY for row in rows)]
    if len(filled) <= COLUMNS_MAX:
        show_table(rows, filled)
        return
    for number, row in enumerate(rows, start=1):
        print(f"{number}.")
        _show_fields({name: value for name, value in _flat(row, "") if value not in EMPTY})


def shown(value: object) -> str:
    """A value in one cell of a table: a list's texts side by side, a time to the second, cut when it is long."""
    text = TIME.sub(r"\1 \2Z", _side_by_side(value) or _whole(value))
    return text if len(text) <= CELL_LENGTH_MAX else text[: CELL_LENGTH_MAX - 1] + "…"


def _side_by_side(value: object) -> str:
    if not isinstance(value, list):
        return ""
    parts = cast("list[object]", value)
    texts = [part for part in parts if isinstance(part, str)]
    return _whole(", ".join(texts)) if len(texts) == len(parts) else ""


def _whole(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return printable(value)
    return printable_json(value)


def _is_rows(value: object) -> bool:
    if not isinstance(value, list) or not value:
        return False
    return all(isinstance(row, dict) for row in cast("list[object]", value))


def _console() -> Console:
    return Console(file=sys.stdout, highlight=False, markup=False, emoji=False, soft_wrap=not sys.stdout.isatty())
