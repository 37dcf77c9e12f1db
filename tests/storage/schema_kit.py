"""What a release's code relies on in the tables, written down, and whether later tables still keep it.

Servers of two releases work on one database while an upgrade goes on. So a migration may add tables, indexes
that are not unique, and columns that may be left out. A snapshot holds what the code of a release writes and
reads: make one when a release is made, and leave it as it is from then on.

    PYTHONPATH=tests python tests/storage/schema_kit.py NAME
"""

import json
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

import psycopg

from loom.storage.migrate import from_package
from loom.storage.postgres.engine import PostgresDatabase
from loom.storage.sqlite import SqliteDatabase, SqliteSettings
from loom.storage.sqlite.connection import connect, execute
from loom.storage.sqlite.org_file import file_name_of
from postgres_server import test_server
from test_shared_statements import STATEMENTS

FOLDER = Path(__file__).parent / "promises"
ORG = "acme"

REQUIRED, DEFAULTED, NULLABLE = "required", "defaulted", "nullable"
"""What a column asks of a statement that leaves it out: it must not, it need not, and null may be written."""

POSTGRES_COLUMNS = """
SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.atthasdef
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.relnamespace = CAST('loom' AS regnamespace) AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
"""
POSTGRES_KEYS = """
SELECT c.relname, (SELECT array_agg(pg_get_indexdef(i.indexrelid, n, true) ORDER BY n)
    FROM generate_series(1, i.indnkeyatts) AS n)
FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
WHERE c.relnamespace = CAST('loom' AS regnamespace) AND i.indisunique
"""


@dataclass(frozen=True)
class Table:
    """One table.

    Attributes:
        columns: by name, the type and what the column asks for.
        unique: the columns of every unique key, in order.
    """

    columns: Mapping[str, Sequence[str]]
    unique: Sequence[Sequence[str]]


Tables = Mapping[str, Table]


def sqlite_tables(folder: Path) -> Tables:
    """The tables of a new store file."""
    database = SqliteDatabase(folder, from_package("loom"))
    with database.transaction(ORG, write=True):
        pass
    database.close()
    connection = connect(folder / file_name_of(ORG), SqliteSettings(), write=False, busy_timeout_s=1.0)
    made: dict[str, Table] = {}
    listed = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    for (table,) in execute(connection, listed):
        columns: dict[str, Sequence[str]] = {}
        for name, kind, not_null, default, key in execute(
            connection, 'SELECT name, type, "notnull", dflt_value, pk FROM pragma_table_info(?)', (table,)
        ):
            asks = _asks(not_null=bool(not_null or key), default=default is not None)
            columns[str(name)] = (str(kind), asks)
        keys = [
            [str(name) for (name,) in execute(connection, "SELECT name FROM pragma_index_info(?)", (index,))]
            for index, unique in execute(connection, 'SELECT name, "unique" FROM pragma_index_list(?)', (table,))
            if unique
        ]
        made[str(table)] = Table(columns, sorted(keys))
    connection.close()
    return made


def postgres_tables(url: str) -> Tables:
    """The tables of a database that is up to date."""
    columns: dict[str, dict[str, Sequence[str]]] = {}
    unique: dict[str, list[list[str]]] = {}
    with psycopg.connect(url) as connection:
        for table, name, kind, not_null, default in connection.execute(POSTGRES_COLUMNS):
            columns.setdefault(table, {})[name] = (kind, _asks(not_null=not_null, default=default))
        for table, names in connection.execute(POSTGRES_KEYS):
            unique.setdefault(table, []).append(names)
    return {table: Table(columns[table], sorted(unique.get(table, []))) for table in sorted(columns)}


def _asks(*, not_null: bool, default: bool) -> str:
    if not not_null:
        return NULLABLE
    return DEFAULTED if default else REQUIRED


def broken(promised: Tables, now: Tables) -> Sequence[str]:
    """What code that relies on `promised` would stumble over in the tables as they are now, a sentence each."""
    found: list[str] = []
    for name, table in promised.items():
        if name not in now:
            found.append(f"the table {name} is gone")
            continue
        columns = now[name].columns
        for column, (kind, asks) in table.columns.items():
            if column not in columns:
                found.append(f"{name}.{column} is gone")
            elif columns[column][0] != kind:
                found.append(f"{name}.{column} was {kind} and is {columns[column][0]}")
            elif columns[column][1] not in {asks, DEFAULTED if asks == REQUIRED else asks}:
                found.append(f"{name}.{column} was {asks} and is {columns[column][1]}")
        added = columns.keys() - table.columns.keys()
        found.extend(
            f"{name}.{column} is new and may not be left out" for column in added if columns[column][1] == REQUIRED
        )
        known = [list(key) for key in table.unique]
        found.extend(f"{name} has a new unique key: {list(key)}" for key in now[name].unique if list(key) not in known)
        # ON CONFLICT names the key it meets.
        found.extend(f"{name} lost the unique key {key}" for key in known if key not in map(list, now[name].unique))
    return sorted(found)


@dataclass(frozen=True)
class Promise:
    """A snapshot: the tables of both engines, and every shared statement of a release's code."""

    sqlite: Tables
    postgres: Tables
    statements: Sequence[str]


def read(path: Path) -> Promise:
    """The snapshot in a file."""
    told = json.loads(path.read_text("utf-8"))
    engines = [{name: Table(**table) for name, table in told[engine].items()} for engine in ("sqlite", "postgres")]
    return Promise(engines[0], engines[1], cast("list[str]", told["statements"]))


def write(path: Path, promise: Promise) -> None:
    """Write the snapshot to a file, a table or statement a line."""
    told = asdict(promise)
    text = json.dumps(told, indent=1, sort_keys=True)
    # A column or a key stays on one line.
    text = re.sub(r"\[\s+(\"[^\[\]]*?\")\s+\]", lambda match: "[" + re.sub(r"\s*\n\s*", " ", match[1]) + "]", text)
    path.write_text(text + "\n", "utf-8")


def main(name: str) -> None:
    """Write down what the code as it is relies on."""
    with test_server() as server, server.bare() as url, tempfile.TemporaryDirectory() as folder:
        PostgresDatabase(url, from_package("loom")).close()
        statements = sorted(sql.strip() for sql in STATEMENTS.values())
        write(FOLDER / f"{name}.json", Promise(sqlite_tables(Path(folder)), postgres_tables(url), statements))


if __name__ == "__main__":
    main(sys.argv[1])
