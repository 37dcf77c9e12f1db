"""Brings a database up to date when a server starts, and puts the wall between orgs around every table.

Two servers that start at once wait for each other: one migrates, the other finds
it done. Each step is a transaction with its record.

After the steps every table with a column `org` is under row-level security: a
statement sees and writes rows of the org that its transaction carries, whatever
it says itself. Superusers pass such walls, so a login that is one works under a role that is not.
One table stands outside: `text_entry`, since PostgreSQL asks a GIN index only what is
behind no wall. Its rows are found by numbers and lexemes that are hashes of the org, by one module alone.
"""

from collections.abc import Mapping, Sequence

import psycopg
from psycopg import errors, sql

from loom.storage.interface import StoreError
from loom.storage.migrate import ENGINE, SHARED, Migration, from_package, ordered, pending
from loom.storage.postgres.connection import FAULTS, Connection, literal, store_error
from loom.storage.postgres.dialect import APP_ROLE, SCHEMA, TEXT_INDEXES
from loom.storage.postgres.settings import PostgresSettings

STORE = "The database"
VECTOR_VERSION_MIN = (0, 8)
LOCK_KEY = (1280266061, 2)

OUTSIDE_THE_WALL = ("text_entry",)
WITHOUT_ORG = ("store_migration", "store_scrub", "store_unwiped")
"""Tables of the whole database, which say nothing of anyone."""

READ_BY_ALL = ("store_org",)
"""Rows of every org may be read, as the worker must know whom to work for."""

SAMPLED_WORDS = ("status", "sensitivity", "memory_type", "kind", "state", "role", "language")
"""Columns of text that are in no key and of which PostgreSQL may keep samples for its planner: they hold our words."""

_RECORD = f"""
CREATE TABLE IF NOT EXISTS {SCHEMA}.store_migration (
    stream TEXT NOT NULL,
    number INTEGER NOT NULL,
    name TEXT NOT NULL,
    applied_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (stream, number)
)
"""
_RECORDED = "SELECT number, name FROM store_migration WHERE stream = %s"
_NOTE = "INSERT INTO store_migration (stream, number, name) VALUES (%s, %s, %s)"
_TABLES = """
SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.relnamespace = CAST(%s AS regnamespace) AND c.relkind IN ('r', 'p') AND a.attname = 'org'
ORDER BY c.relname
"""
_UNORDERED = """
SELECT c.relname, a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
JOIN pg_collation o ON o.oid = a.attcollation
WHERE c.relnamespace = CAST(%s AS regnamespace) AND c.relkind IN ('r', 'p') AND a.attnum > 0
    AND a.atttypid = CAST('text' AS regtype) AND o.collname <> 'C'
"""
_SAMPLED = """
SELECT c.relname, a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.relnamespace = CAST(%s AS regnamespace) AND c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped
    AND coalesce(a.attstattarget, -1) <> 0
    AND (a.atttypid IN (CAST('bytea' AS regtype), CAST('tsvector' AS regtype), to_regtype('halfvec'))
        OR (a.atttypid = CAST('text' AS regtype) AND a.attname <> ALL(%s)
            AND NOT EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = c.oid AND a.attnum = ANY (i.indkey))))
"""
_VECTOR = """
SELECT e.extversion, n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
WHERE e.extname = 'vector'
"""
_PASSES_WALLS = "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"

_NO_VECTOR = (
    "The database server has no pgvector. Install it on the server (Debian and Ubuntu: apt install"
    " postgresql-<version>-pgvector; container image: pgvector/pgvector), then start Loom again."
)
_MAY_NOT_ADD = (
    "The database has no pgvector yet and this login may not add it. Have a superuser run in this database:"
    " CREATE EXTENSION vector;"
)
_OLD_VECTOR = "The database has pgvector {found}; Loom needs {needed} or later. Run: ALTER EXTENSION vector UPDATE;"
_MAY_NOT_MAKE = (
    "This login may not make Loom's tables. Give it the right, as the database's owner:"
    " GRANT CREATE ON DATABASE <name> TO <login>;"
)


class Prepared:
    """What later connections need to know.

    Attributes:
        path: the search path, quoted.
        role: the role to work under; None for the login itself.
    """

    def __init__(self, path: str, role: str | None) -> None:
        self.path = path
        self.role = role


def bring_up_to_date(connection: Connection, migrations: Sequence[Migration], settings: PostgresSettings) -> Prepared:
    """Make or update Loom's tables; `connection` is in autocommit mode.

    Raises:
        StoreError: something is missing on the server, a right is missing, or a newer Loom was here.
    """
    streams = {ENGINE: from_package("loom.storage.postgres"), SHARED: ordered(migrations)}
    try:
        _wait_for_turn(connection, settings.migrate_wait_s)
        connection.execute(literal(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}"))
        vector_schema = _vector_schema(connection)
        path = f'{SCHEMA}, "{vector_schema}"'
        connection.execute(literal(f"SET search_path TO {path}"))
        connection.execute(literal(_RECORD))
        waiting = {
            stream: pending(stream, steps, _recorded(connection, stream), STORE) for stream, steps in streams.items()
        }
        role = _role(connection)
        if any(waiting.values()):
            _apply(connection, waiting, role)
    except errors.InsufficientPrivilege as error:
        raise StoreError(_MAY_NOT_MAKE) from error
    except FAULTS as error:
        raise store_error(error) from error
    finally:
        if not connection.closed:
            connection.execute("SELECT pg_advisory_unlock(%s, %s)", LOCK_KEY)
    return Prepared(path, role)


def _wait_for_turn(connection: Connection, wait_s: int) -> None:
    connection.execute(literal(f"SET lock_timeout TO '{int(wait_s)}s'"))
    connection.execute("SELECT pg_advisory_lock(%s, %s)", LOCK_KEY)


def _vector_schema(connection: Connection) -> str:
    """The schema that holds pgvector, which is added if need be."""
    found = connection.execute(_VECTOR).fetchone()
    if found is None:
        try:
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        except errors.InsufficientPrivilege as error:
            raise StoreError(_MAY_NOT_ADD) from error
        except (errors.UndefinedFile, errors.FeatureNotSupported) as error:
            raise StoreError(_NO_VECTOR) from error
        found = connection.execute(_VECTOR).fetchone()
    if found is None:
        raise StoreError(_NO_VECTOR)
    version = tuple(int(part) for part in str(found[0]).split(".")[:2])
    if version < VECTOR_VERSION_MIN:
        needed = ".".join(map(str, VECTOR_VERSION_MIN))
        raise StoreError(_OLD_VECTOR.format(found=found[0], needed=needed))
    return str(found[1])


def _recorded(connection: Connection, stream: str) -> Mapping[int, str]:
    return {int(number): str(name) for number, name in connection.execute(_RECORDED, [stream])}


def passes_walls(connection: Connection) -> bool:
    """Whether the login is let through row-level security."""
    found = connection.execute(_PASSES_WALLS).fetchone()
    return found is not None and bool(found[0])


def _role(connection: Connection) -> str | None:
    """The role to work under: one that no wall lets through, where the login is not such a one itself."""
    if not passes_walls(connection):
        return None
    try:
        connection.execute(literal(f"CREATE ROLE {APP_ROLE} NOLOGIN"))
    except (errors.DuplicateObject, errors.UniqueViolation):
        # Roles belong to the whole server: another database's Loom made it.
        return APP_ROLE
    except errors.InsufficientPrivilege as error:
        raise StoreError(
            f"This login bypasses row-level security and may not make the role {APP_ROLE}. Use a login that does not,"
            f" or have a superuser run: CREATE ROLE {APP_ROLE} NOLOGIN; GRANT {APP_ROLE} TO <login>;"
        ) from error
    return APP_ROLE


def _apply(connection: Connection, waiting: Mapping[str, Sequence[Migration]], role: str | None) -> None:
    for stream, steps in waiting.items():
        for step in steps:
            with connection.transaction():
                # A step must see every org's rows; whoever owns the tables is let through for as long as it runs.
                for table in _tables(connection):
                    _alter(connection, "ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY", table)
                connection.execute(literal(step.sql))
                if stream == ENGINE:
                    for statement in TEXT_INDEXES:
                        connection.execute(literal(statement))
                connection.execute(_NOTE, [stream, step.number, step.name])
                _wall(connection, role)


def _wall(connection: Connection, role: str | None) -> None:
    """Order text by its bytes, as the other engine does, sample none, let each transaction see its own org alone."""
    for table, column in connection.execute(_UNORDERED, [SCHEMA]).fetchall():
        _alter(connection, 'ALTER TABLE {table} ALTER COLUMN {column} TYPE TEXT COLLATE "C"', table, column)
    # Samples of stored text would outlive it in the catalogue.
    for table, column in connection.execute(_SAMPLED, [SCHEMA, list(SAMPLED_WORDS)]).fetchall():
        _alter(connection, "ALTER TABLE {table} ALTER COLUMN {column} SET STATISTICS 0", table, column)
    for table in _tables(connection):
        if table in OUTSIDE_THE_WALL:
            continue
        for statement in (
            "ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",
            "ALTER TABLE {table} FORCE ROW LEVEL SECURITY",
            "DROP POLICY IF EXISTS own_org ON {table}",
            "CREATE POLICY own_org ON {table} USING (org = current_setting('loom.org', true))",
        ):
            _alter(connection, statement, table)
        if table in READ_BY_ALL:
            _alter(connection, "DROP POLICY IF EXISTS any_org ON {table}", table)
            _alter(connection, "CREATE POLICY any_org ON {table} FOR SELECT USING (true)", table)
    if role is not None:
        for statement in (
            f"GRANT USAGE ON SCHEMA {SCHEMA} TO {role}",
            f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {SCHEMA} TO {role}",
            f"REVOKE INSERT, UPDATE, DELETE ON {SCHEMA}.store_migration FROM {role}",
            f"GRANT USAGE, SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA {SCHEMA} TO {role}",
        ):
            connection.execute(literal(statement))


def _tables(connection: Connection) -> list[str]:
    return [str(name) for (name,) in connection.execute(_TABLES, [SCHEMA])]


def _alter(connection: Connection, statement: str, table: str, column: str = "") -> None:
    names = {"table": sql.Identifier(SCHEMA, table), "column": sql.Identifier(column or "org")}
    connection.execute(sql.SQL(literal(statement)).format(**names))


def connect(url: str, settings: PostgresSettings) -> Connection:
    """A connection of the login itself, in autocommit mode, for migrations and upkeep.

    Raises:
        StoreError: the server cannot be reached or does not let this login in.
    """
    try:
        return psycopg.connect(
            url, autocommit=True, connect_timeout=settings.connect_timeout_s, application_name="loom upkeep"
        )
    except psycopg.OperationalError as error:
        # libpq names the host and what it said, never the password.
        raise StoreError(f"The database does not answer: {_in_one_line(error)}") from error
    except psycopg.ProgrammingError as error:
        # What cannot be read as a URL is not shown, since it may hold a password.
        raise StoreError("LOOM_DATABASE_URL is not a PostgreSQL URL: postgresql://user@host:5432/name") from error


def _in_one_line(error: psycopg.Error) -> str:
    return " ".join(str(error).split())
