"""Schemas of structured profiles as lines of an export. The profiles themselves are memories."""

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, Final, Literal, cast

from pydantic import Field

from loom.access import namespaces
from loom.canonical import Json
from loom.errors import Rejected
from loom.ops.spec import IDENTITY_LENGTH_MAX, Context
from loom.planes import cargo
from loom.planes.cargo import Cargo, Carried, IdentityText, Key, Line, Moment, Reach, Stamp
from loom.planes.profile.structured import job, queries, store
from loom.planes.profile.structured import schema as schemas
from loom.planes.profile.structured.building import BUILD
from loom.planes.profile.structured.store import StoredSchema
from loom.storage.interface import Transaction

FROM = """
SELECT namespace, version, definition, schema_sha256, updated_by, updated_at FROM profile_schema
WHERE org = :org AND (:every = 1 OR namespace IN (:namespaces)) AND version > :after ORDER BY version LIMIT :most
"""

COUNT = """
SELECT count(*) AS total FROM profile_schema WHERE org = :org AND (:every = 1 OR namespace IN (:namespaces))
"""

SHA256_LENGTH: Final = 64


class SchemaLine(Line):
    """One version of a namespace's schema; an empty one says that it was deleted."""

    KIND: ClassVar[str] = "profile_schema"

    kind: Literal["profile_schema"]
    namespace: IdentityText
    version: Stamp
    json_schema: Annotated[str, Field(max_length=schemas.BYTES_MAX)]
    schema_sha256: Annotated[str, Field(max_length=SHA256_LENGTH)]
    updated_by: Annotated[str, Field(max_length=IDENTITY_LENGTH_MAX)]
    updated_at: Moment


def read(tx: Transaction, reach: Reach, after: Key) -> Iterator[Carried]:
    """Versions in the order in which they were made."""
    last = int(after[0])
    while True:
        rows = tx.rows(FROM, after=last, most=cargo.AT_ONCE, **reach.params())
        for row in rows:
            last = cast("int", row["version"])
            known = {"json_schema" if name == "definition" else name: value for name, value in row.items()}
            line = SchemaLine.model_validate({**known, "kind": "profile_schema"})
            yield Carried(line, (last,), len(line.json_schema))
        if len(rows) < cargo.AT_ONCE:
            return


def ready(line: SchemaLine) -> SchemaLine:
    """The line, once its schema is one that could be set.

    Raises:
        Rejected: it is none, or its hash is another's.
    """
    if not line.json_schema:
        if line.schema_sha256:
            raise Rejected("schema_sha256: a schema that was deleted has none", field="schema_sha256")
        return line
    try:
        document = json.loads(line.json_schema)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise Rejected("json_schema: should be a JSON object as text", field="json_schema")
    if schemas.checked(cast("Mapping[str, Json]", document)).sha256 != line.schema_sha256:
        raise Rejected("schema_sha256: is not the hash of the schema", field="schema_sha256")
    return line


def take(ctx: Context, line: SchemaLine) -> bool:
    """Add the version; where it is the latest it comes into force."""
    cargo.check_reached(ctx, line.namespace)
    cargo.check_not_ahead(ctx, line.version, field="version")
    namespaces.enter(ctx.tx, line.namespace)
    ctx.tx.lock("profile_schema", line.namespace)
    there = store.schema_version(ctx.tx, line.namespace, line.version)
    if there is not None:
        if there.sha256 != line.schema_sha256:
            raise Rejected("version: is here with another schema", field="version")
        return False
    latest = next(iter(store.schemas(ctx.tx, line.namespace, 1)), None)
    ctx.tx.outstrip(line.version)
    made = StoredSchema(line.version, line.json_schema, line.schema_sha256, line.updated_by, line.updated_at)
    store.put_schema(ctx.tx, line.namespace, made)
    namespaces.touch(ctx.tx, line.namespace, line.version)
    if latest is not None and latest.version > line.version:
        return True
    if line.json_schema:
        ctx.tx.run(queries.WATCH, namespace=line.namespace, job_kind=BUILD)
        job.begin_spread(ctx.tx, line.namespace)
    else:
        ctx.tx.run(queries.UNWATCH, namespace=line.namespace)
    return True


CARGO = Cargo(SchemaLine, (0,), COUNT, read, ready, take)
