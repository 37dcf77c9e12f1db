"""The statements of the domains: each names the org, and keeps to the dialect that SQLite and PostgreSQL share."""

import importlib
import pkgutil
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

import pytest

import loom

ROOT = Path(loom.__file__).parent
STATEMENT = re.compile(r"(SELECT|INSERT|UPDATE|DELETE|WITH)\s")
LITERAL = re.compile(r"'[^']*'")
OF_ONE_ENGINE = re.compile(
    r"\b(?:LIKE|GLOB|REGEXP|MATCH|IFNULL|NVL|ROWID|JSON_\w+|INSERT OR|REPLACE INTO|AUTOINCREMENT|PRAGMA|STRICT|ILIKE"
    r"|TRUE|FALSE|LENGTH|INSTR|STRFTIME|DATETIME)\b"
    r"|\b(?:MAX|MIN)\([^()]*,[^()]*\)|\bAS (?:INTEGER|BLOB)\)|::|\|\||%|\?|\"|`",
    re.IGNORECASE,
)
"""What one of the two does not know, or reads otherwise: LIKE folds case in one of them, lengths count bytes."""


def statements() -> Iterator[tuple[str, str]]:
    """Every constant that is a statement, outside the engines' own folders."""
    for found in pkgutil.walk_packages([str(ROOT)], "loom."):
        if found.name.startswith(("loom.storage.sqlite", "loom.storage.postgres")) or found.name == "loom.__main__":
            continue
        module = importlib.import_module(found.name)
        for name, value in vars(module).items():
            values = cast("Mapping[object, object]", value).values() if isinstance(value, Mapping) else [value]
            for text in values:
                if isinstance(text, str) and STATEMENT.match(text.strip()):
                    yield f"{found.name}.{name}", text


EVERY = sorted(set(statements()))


def test_there_are_statements_to_check() -> None:
    assert len({sql for _, sql in EVERY}) > 50


def test_each_statement_names_its_org() -> None:
    whole = [(name, sql) for name, sql in EVERY if "WHERE" in sql or "INSERT" in sql]
    assert [name for name, sql in whole if ":org" not in sql] == []


def test_each_statement_is_in_the_shared_dialect() -> None:
    assert {name: found[0] for name, sql in EVERY if (found := OF_ONE_ENGINE.search(sql))} == {}


def test_no_literal_holds_what_a_driver_takes_for_a_parameter() -> None:
    assert [name for name, sql in EVERY if any(set(":%?") & set(text) for text in LITERAL.findall(sql))] == []


def test_the_schema_is_in_the_shared_dialect() -> None:
    scripts = sorted((ROOT / "schema").glob("*.sql"))
    assert scripts
    bare = {path.name: re.sub(r"--.*", "", path.read_text("utf-8")) for path in scripts}
    assert {name: found[0] for name, sql in bare.items() if (found := OF_ONE_ENGINE.search(sql))} == {}


@pytest.mark.parametrize(
    ("sql", "shared"),
    [
        ("SELECT a FROM t WHERE org = :org AND a NOT LIKE 'x'", False),
        ("SELECT max(a, b) FROM t", False),
        ("SELECT max(a) FROM t ORDER BY min(b), c", True),
        ("SELECT a FROM t WHERE a IN (SELECT value FROM json_each(:a))", False),
        ("UPDATE t SET a = a || 'x'", False),
    ],
)
def test_what_one_engine_alone_knows_is_recognised(sql: str, shared: bool) -> None:
    assert (OF_ONE_ENGINE.search(sql) is None) is shared
