"""Every statement that is written once, beside the domain that needs it, is understood by both engines."""

import importlib
import pkgutil
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import cast

import pytest

import loom
from loom.storage.interface import Database, Param

VERBS = ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH")
OWN_SQL = ("loom.storage", "loom.edges", "loom.client", "loom.__main__")
"""Rooms whose SQL is not shared, or that have none."""


def modules() -> Iterator[str]:
    for found in pkgutil.walk_packages(loom.__path__, "loom."):
        if not found.name.startswith(OWN_SQL):
            yield found.name


def texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from texts(list(cast("Mapping[object, object]", value).values()))
    elif isinstance(value, list | tuple):
        for one in cast("Iterable[object]", value):
            yield from texts(one)


def statements() -> Mapping[str, str]:
    found: dict[str, str] = {}
    for module in modules():
        for name, value in vars(importlib.import_module(module)).items():
            for number, text in enumerate(texts(value)):
                if text.lstrip().startswith(VERBS) and ":org" in text:
                    found.setdefault(text, f"{module}.{name}.{number}")
    return {where: text for text, where in found.items()}


STATEMENTS = statements()


def unknown(sql: str) -> Mapping[str, Param]:
    """A value for each parameter: none, or a list without members."""
    lists = set(re.findall(r"IN \(:([a-z0-9_]+)\)", sql))
    names = set(re.findall(r":([a-z_][a-z0-9_]*)", sql)) - {"org"}
    return {name: cast("Param", [] if name in lists else None) for name in names}


def test_there_are_statements() -> None:
    assert len(STATEMENTS) > 40
    assert any("ON CONFLICT" in sql for sql in STATEMENTS.values())


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_it_can_be_prepared(kind: str, request: pytest.FixtureRequest) -> None:
    database: Database = request.getfixturevalue(f"{kind}_database")
    refused: dict[str, str] = {}
    for where, sql in STATEMENTS.items():
        try:
            with database.transaction("dev", write=True) as tx:
                tx.rows(f"EXPLAIN {sql.strip()}", **unknown(sql))
        except Exception as error:  # noqa: BLE001  # every statement is to be tried
            refused[where] = str(error)
    assert refused == {}
