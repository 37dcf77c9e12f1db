"""profile.schema_set, profile.schema_get and profile.schema_delete: the shape of a namespace's structured profiles."""

import json
from collections.abc import Mapping
from typing import Annotated, ClassVar, cast

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from loom.access import namespaces
from loom.access.caller import Role
from loom.canonical import Json
from loom.errors import NotFound, Rejected, ShaMismatch
from loom.ops.fields import IfMatch, Instant, instant, instant_or_none
from loom.ops.spec import Answer, Audited, Context, Kind, Op, OpenRequest
from loom.planes.profile.structured import job, queries, store
from loom.planes.profile.structured import schema as schemas
from loom.planes.profile.structured.building import BUILD
from loom.planes.profile.structured.store import StoredSchema

HISTORY_MAX = 50
VERSION_TEXT_LENGTH_MAX = 19

IF_MATCH = "Change it only while schema_sha256 is this, else 409; empty for no check."


class SchemaSetRequest(OpenRequest):
    """What profile.schema_set takes."""

    json_schema: Annotated[
        dict[str, JsonValue],
        Field(
            description="A JSON Schema, draft 2020-12, of type object: at most 65,536 bytes and 200 properties. "
            "References stay inside it. A property's name and description say what to look for."
        ),
    ]
    if_match_sha256: Annotated[IfMatch, Field(description=IF_MATCH)] = ""


class SchemaGetRequest(OpenRequest):
    """What profile.schema_get takes."""

    version_text: Annotated[
        str,
        Field(max_length=VERSION_TEXT_LENGTH_MAX, description="Read this version of it; empty for the present one."),
    ] = ""


class SchemaDeleteRequest(OpenRequest):
    """What profile.schema_delete takes."""

    if_match_sha256: Annotated[IfMatch, Field(description=IF_MATCH)] = ""


class SchemaVersion(BaseModel):
    """One version of a schema."""

    model_config = ConfigDict(frozen=True)

    version_text: Annotated[str, Field(description="Its number; send it to profile.schema_get to read it.")]
    schema_sha256: Annotated[str, Field(description="The schema's hash; empty where it was deleted.")]
    updated_by: Annotated[str, Field(description="Who set or deleted it.")]
    updated_at: Annotated[Instant, Field(description="When.")]


class SchemaAnswer(Answer):
    """What profile.schema_set and profile.schema_delete answer."""

    ABSENT_WHEN_NONE: ClassVar[frozenset[str]] = frozenset()

    schema_sha256: Annotated[str, Field(description="The hash of the schema as it is now; empty without one.")]
    changed: Annotated[bool, Field(description="Whether this call changed it.")]
    version_text: Annotated[str, Field(description="The version that is in force; 0 when there never was one.")]
    updated_by: Annotated[str, Field(description="Who changed it last; empty when nobody did.")]
    updated_at: Annotated[Instant | None, Field(description="When it was changed last; null when it never was.")]


class SchemaGetAnswer(Answer):
    """What profile.schema_get answers."""

    found: Annotated[bool, Field(description="Whether there is such a schema; false is no error.")]
    json_schema: Annotated[dict[str, JsonValue] | None, Field(description="The schema; null when there is none.")]
    schema_sha256: Annotated[str, Field(description="Its hash; send it as if_match_sha256 with the next change.")]
    usable: Annotated[bool, Field(description="Whether this version of Loom can build profiles from it.")]
    version_text: Annotated[str, Field(description="Its version; 0 when there never was one.")]
    updated_by: Annotated[str, Field(description="Who set it, or deleted it; empty when nobody did.")]
    updated_at: Annotated[Instant | None, Field(description="When; null when it never was.")]
    history: Annotated[list[SchemaVersion], Field(description="At most 50 versions of it, the newest first.")]


NEVER = StoredSchema(0, "", "", "", 0)


def schema_set(ctx: Context, request: SchemaSetRequest) -> SchemaAnswer:
    """Set the schema, and ask for the profiles of everybody who has facts."""
    document = cast("dict[str, Json]", request.json_schema)
    made = schemas.checked(document)
    latest = opened(ctx, request.namespace, request.if_match_sha256)
    if latest.sha256 == made.sha256:
        return answer_of(latest, changed=False)
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    stored = written(ctx, request.namespace, text, made.sha256)
    ctx.tx.run(queries.WATCH, namespace=request.namespace, job_kind=BUILD)
    job.begin_spread(ctx.tx, request.namespace)
    return answer_of(stored, changed=True)


def schema_delete(ctx: Context, request: SchemaDeleteRequest) -> SchemaAnswer:
    """Delete the schema. Profiles that were built stay as they are, and are shown by no reader of profiles."""
    latest = opened(ctx, request.namespace, request.if_match_sha256)
    if not latest.text:
        raise NotFound("namespace: it has no schema; profile.schema_get shows earlier ones", field="namespace")
    stored = written(ctx, request.namespace, "", "")
    ctx.tx.run(queries.UNWATCH, namespace=request.namespace)
    return answer_of(stored, changed=True)


def opened(ctx: Context, namespace: str, if_match_sha256: str) -> StoredSchema:
    """The latest version, held against other writers and checked to be the one that is meant."""
    namespaces.enter(ctx.tx, namespace)
    ctx.tx.lock("profile_schema", namespace)
    latest = next(iter(store.schemas(ctx.tx, namespace, 1)), NEVER)
    if if_match_sha256 and latest.sha256 != if_match_sha256.lower():
        what = "has another hash (current_sha256); read it again" if latest.text else "is not there"
        raise ShaMismatch(f"if_match_sha256: the schema {what}", field="if_match_sha256", current_sha256=latest.sha256)
    return latest


def written(ctx: Context, namespace: str, text: str, sha256: str) -> StoredSchema:
    """Add a version."""
    number = ctx.tx.stamp()
    made = StoredSchema(number, text, sha256, ctx.caller.principal, number // 1000)
    store.put_schema(ctx.tx, namespace, made)
    namespaces.touch(ctx.tx, namespace, number)
    return made


def answer_of(stored: StoredSchema, *, changed: bool) -> SchemaAnswer:
    """A version as a change of it answers."""
    return SchemaAnswer(
        schema_sha256=stored.sha256,
        changed=changed,
        version_text=str(stored.version),
        updated_by=stored.updated_by,
        updated_at=instant_or_none(stored.updated_at or None),
    )


def schema_get(ctx: Context, request: SchemaGetRequest) -> SchemaGetAnswer:
    """Show the schema, or an earlier version of it."""
    history = store.schemas(ctx.tx, request.namespace, HISTORY_MAX)
    stored = next(iter(history), NEVER)
    if request.version_text:
        stored = store.schema_version(ctx.tx, request.namespace, number_of(request.version_text)) or NEVER
    document = cast("Mapping[str, JsonValue]", json.loads(stored.text)) if stored.text else None
    return SchemaGetAnswer(
        found=document is not None,
        json_schema=None if document is None else dict(document),
        schema_sha256=stored.sha256,
        usable=document is not None and schemas.opened(stored.text) is not None,
        version_text=str(stored.version),
        updated_by=stored.updated_by,
        updated_at=instant_or_none(stored.updated_at or None),
        history=[
            SchemaVersion(
                version_text=str(one.version),
                schema_sha256=one.sha256,
                updated_by=one.updated_by,
                updated_at=instant(one.updated_at),
            )
            for one in history
        ],
    )


def number_of(version_text: str) -> int:
    """The number of a version.

    Raises:
        Rejected: it is none.
    """
    if not version_text.isascii() or not version_text.isdigit() or int(version_text) >= 1 << 63:
        raise Rejected("version_text: a version's number as a decimal text, as answers give it", field="version_text")
    return int(version_text)


EXAMPLE: Mapping[str, Json] = {
    "json_schema": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "What the user wants to be called."},
            "diet": {"enum": ["any", "vegetarian", "vegan"], "description": "What the user eats."},
        },
    }
}

SCHEMA_SET = Op(
    name="profile.schema_set",
    summary="Set the JSON Schema that every user's structured profile of the namespace has; profiles are built anew.",
    takes=SchemaSetRequest,
    gives=SchemaAnswer,
    role=Role.ADMIN,
    kind=Kind.IDEMPOTENT,
    run=schema_set,
    example=EXAMPLE,
    raises=(ShaMismatch,),
    toolsets=frozenset(),
    destructive=True,
    audited=Audited(about=("version_text",), outcome=("changed",)),
)

SCHEMA_GET = Op(
    name="profile.schema_get",
    summary="Read the JSON Schema of the namespace's structured profiles, now or in an earlier version.",
    takes=SchemaGetRequest,
    gives=SchemaGetAnswer,
    role=Role.VIEWER,
    kind=Kind.READ,
    run=schema_get,
    example={},
    toolsets=frozenset(),
)

SCHEMA_DELETE = Op(
    name="profile.schema_delete",
    summary="Delete the JSON Schema of the namespace's structured profiles; none are built or shown from then on.",
    takes=SchemaDeleteRequest,
    gives=SchemaAnswer,
    role=Role.ADMIN,
    kind=Kind.IDEMPOTENT,
    run=schema_delete,
    example={},
    raises=(NotFound, ShaMismatch),
    toolsets=frozenset(),
    destructive=True,
    audited=Audited(about=("version_text",), outcome=("changed",)),
)

OPS = (SCHEMA_SET, SCHEMA_GET, SCHEMA_DELETE)
