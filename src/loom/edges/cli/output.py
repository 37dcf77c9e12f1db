"""How answers look at a terminal: tables for people, JSON for programs."""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any, cast

from rich.console import Console
from rich.table import Table
from rich.text import Text

CELL_LENGTH_MAX = 200


def show_json(answer: object) -> None:
    """One JSON document."""
    print(json.dumps(answer, ensure_ascii=False, indent=2))


def show_table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> None:
    """A row for each mapping; a value that is missing or null stays empty."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column.replace("_", " "), overflow="fold")
    for row in rows:
        table.add_row(*(Text(shown(row.get(column))) for column in columns))
    _console().print(table)


def show_answer(answer: Mapping[str, Any]) -> None:
    """Any operation's answer, readable: a line a field, a table for a list of objects."""
    plain = {name: value for name, value in answer.items() if not _is_rows(value)}
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in plain.items():
        table.add_row(Text(name), Text(_whole(value)))
    _console().print(table)
    for name, value in answer.items():
        if _is_rows(value):
            print(f"\n{name}")
            columns = dict.fromkeys(column for row in value for column in row)
            show_table(value, [column for column in columns if any(row.get(column) is not None for row in value)])


def shown(value: object) -> str:
    """A value in one cell of a table, cut when it is long."""
    text = _whole(value)
    return text if len(text) <= CELL_LENGTH_MAX else text[: CELL_LENGTH_MAX - 1] + "…"


def _whole(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return "".join(char if char.isprintable() or char == "\n" else "�" for char in value)
    return json.dumps(value, ensure_ascii=False)


def _is_rows(value: object) -> bool:
    if not isinstance(value, list) or not value:
        return False
    return all(isinstance(row, dict) for row in cast("list[object]", value))


def _console() -> Console:
    return Console(file=sys.stdout, highlight=False, markup=False, emoji=False, soft_wrap=not sys.stdout.isatty())
