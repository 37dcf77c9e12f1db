"""profile.structured, profile.evidence, profile.users and profile.rebuild: one user's profile, and all of them."""

import json
from collections import defaultdict
from typing import Annotated, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from loom.access.caller import ReadScope, Role
from loom.canonical import Json
from loom.errors import Denied
from loom.jobs import outbox
from loom.ledger import derived
from loom.ledger.rules import memory_id_of
from loom.ops.fields import Instant, instant_or_none
from loom.ops.spec import IDENTITY_LENGTH_MAX, Answer, Context, Kind, Op, OpenRequest, Request
from loom.planes.profile import activity
from loom.planes.profile.structured import building, job, queries, status, store
from loom.planes.profile.structured.schema import PROPERTY_LENGTH_MAX
from loom.planes.profile.structured.status import Look, Status, Work
from loom.planes.profile.structured.store import StoredSource

USERS_MAX = 100
EVIDENCE_LENGTH_MAX = 1_000
"""Characters shown of one source."""

STATUS = (
    "ready: up to date. stale: something it rests on has changed. pending: not built, or not to "
    "be shown. no_schema: the namespace has no usable schema."
)
SCOPE = "Kept for symmetry with other reads: the one user named is read, whatever is sent here."


class StructuredRequest(Request):
    """What profile.structured takes."""

    read_scope: Annotated[Literal["namespace", "own_user"], Field(description=SCOPE)] = "namespace"


class StructuredAnswer(Answer):
    """What profile.structured answers."""

    status: Annotated[Status, Field(description=STATUS)]
    profile: Annotated[
        dict[str, JsonValue],
        Field(description="A value, or null where nothing settles it, for each property of the schema."),
    ]
    built_at: Annotated[
        Instant | None, Field(description="When its sources were read; null when no row keeps the profile.")
    ]
    memory_id: Annotated[str, Field(description="The row that keeps the profile and its history; empty without one.")]
    version: Annotated[int, Field(description="That row's version, rising with each build; 0 without one.")]
    version_text: Annotated[
        str, Field(description="The version in decimal digits, for languages whose numbers are floats; send this back.")
    ]
    schema_sha256: Annotated[str, Field(description="Hash of the namespace's schema as it is now; empty without one.")]


class EvidenceRequest(OpenRequest):
    """What profile.evidence takes."""

    property: Annotated[
        str, Field(max_length=PROPERTY_LENGTH_MAX, description="Only this property; empty for every one.")
    ] = ""
    read_scope: Annotated[Literal["namespace", "own_user"], Field(description=SCOPE)] = "namespace"


class SourceShown(BaseModel):
    """A memory that a value comes from."""

    model_config = ConfigDict(frozen=True)

    memory_id: Annotated[str, Field(description="The memory's row; memory.history reads it.")]
    memory_key: Annotated[str, Field(description="Its key; empty when the memory is gone.")]
    version_text: Annotated[str, Field(description="The version that was read.")]
    text: Annotated[
        str | None,
        Field(description="The part that gave the value, 1,000 characters at most; null when it may not be shown."),
    ]
    live: Annotated[bool, Field(description="Whether the memory is still served.")]
    current: Annotated[bool, Field(description="Whether the version is still its latest.")]


class PropertyShown(BaseModel):
    """One property, and why it has its value."""

    model_config = ConfigDict(frozen=True)

    property: Annotated[str, Field(description="The property.")]
    value: Annotated[JsonValue, Field(description="Its value; null where nothing settles it.")]
    sources: Annotated[list[SourceShown], Field(description="The memories it comes from, the strongest first.")]


class EvidenceAnswer(Answer):
    """What profile.evidence answers."""

    status: Annotated[Status, Field(description=STATUS)]
    memory_id: Annotated[str, Field(description="The row that keeps the profile; empty without one.")]
    version_text: Annotated[str, Field(description="That row's version; 0 without one.")]
    built_at: Annotated[Instant | None, Field(description="When the sources were read; null without a profile.")]
    builder: Annotated[str, Field(description="What built it: rules, or model; empty without a profile.")]
    properties: Annotated[list[PropertyShown], Field(description="The properties, in the schema's order.")]


class UsersRequest(OpenRequest):
    """What profile.users takes."""

    limit: Annotated[int, Field(ge=1, le=USERS_MAX, description="At most this many users.")] = 50
    cursor: Annotated[
        str, Field(max_length=IDENTITY_LENGTH_MAX, description="next_cursor of the answer before; empty for the first.")
    ] = ""


class UserShown(BaseModel):
    """One user of a namespace."""

    model_config = ConfigDict(frozen=True)

    user_id: Annotated[str, Field(description="The user; '-' for memories of no user.")]
    status: Annotated[Status, Field(description=STATUS)]
    settled: Annotated[int, Field(description="Properties that have a value.")]
    built_at: Annotated[Instant | None, Field(description="When the profile's sources were read; null without one.")]
    memory_id: Annotated[str, Field(description="The row that keeps the profile; empty without one.")]
    version_text: Annotated[str, Field(description="That row's version; 0 without one.")]
    failures: Annotated[int, Field(description="Builds that failed since something changed.")]


class UsersAnswer(Answer):
    """What profile.users answers."""

    schema_sha256: Annotated[str, Field(description="Hash of the namespace's schema; empty without one.")]
    properties: Annotated[int, Field(description="Properties of the schema.")]
    users: Annotated[list[UserShown], Field(description="Users who have memories, in order of their names.")]
    next_cursor: Annotated[str, Field(description="Send as cursor to read on; empty at the end.")]


class RebuildRequest(OpenRequest):
    """What profile.rebuild takes."""


class RebuildAnswer(Answer):
    """What profile.rebuild answers."""

    status: Annotated[Status, Field(description=STATUS)]
    asked: Annotated[bool, Field(description="Whether a build was asked for; false where there is nothing to build.")]


def looked(ctx: Context, request: Request) -> Look:
    """What is known of the profile that the request is about.

    Raises:
        Denied: the token reads one session alone.
    """
    if ctx.caller.read_scope is ReadScope.OWN_SESSION:
        raise Denied("read_scope: this token reads its own session alone; a structured profile is a whole user's")
    return status.look(ctx.tx, request.namespace, request.user_id, ctx.now_us)


def structured(ctx: Context, request: StructuredRequest) -> StructuredAnswer:
    """Show the profile, say whether it is current, and ask for a build if one is needed."""
    found = looked(ctx, request)
    activity.note(ctx, request, "profile.structured")
    if found.asks:
        ctx.later(job.ASK, request.org, {"namespace": request.namespace, "user_id": request.user_id})
    item = found.shows
    return StructuredAnswer(
        status=found.status,
        profile=cast("dict[str, JsonValue]", status.shown(ctx.tx, found)),
        built_at=instant_or_none(item.head.attributes.valid_at) if item else None,
        memory_id=item.memory_id if item else "",
        version=item.head.version if item else 0,
        version_text=str(item.head.version) if item else "0",
        schema_sha256=found.stored.sha256 if found.stored else "",
    )


def evidence(ctx: Context, request: EvidenceRequest) -> EvidenceAnswer:
    """Show where each value comes from. No text is kept beside the memories': what was erased there is not here."""
    found = looked(ctx, request)
    activity.note(ctx, request, "profile.evidence")
    item, build = found.shows, found.build
    told = status.shown(ctx.tx, found) if item else {}
    sources: list[StoredSource] = []
    if item is not None and build is not None:
        sources = store.sources(ctx.tx, item, build.built_at, ctx.now_us, request.property)
    of_property: defaultdict[str, list[StoredSource]] = defaultdict(list)
    for source in sources:
        of_property[source.property].append(source)
    return EvidenceAnswer(
        status=found.status,
        memory_id=item.memory_id if item else "",
        version_text=str(item.head.version) if item else "0",
        built_at=instant_or_none(item.head.attributes.valid_at) if item else None,
        builder=build.builder if item and build else "",
        properties=[
            PropertyShown(
                property=name,
                value=cast("JsonValue", value),
                sources=[] if value is None else [source_shown(one) for one in of_property[name]],
            )
            for name, value in told.items()
            if request.property in ("", name)
        ],
    )


def source_shown(source: StoredSource) -> SourceShown:
    """A source as answers show it."""
    text = None
    if source.value_text is not None:
        text = building.text_at(cast("Json", json.loads(source.value_text)), source.span, EVIDENCE_LENGTH_MAX)
    return SourceShown(
        memory_id=memory_id_of(source.source_id),
        memory_key=source.memory_key,
        version_text=str(source.source_version),
        text=text,
        live=source.live,
        current=source.current,
    )


def users(ctx: Context, request: UsersRequest) -> UsersAnswer:
    """Show a page of the users who have memories, each with the state of their profile."""
    if ctx.caller.read_scope is ReadScope.OWN_SESSION:
        raise Denied("read_scope: this token reads its own session alone; profiles are whole users'")
    found = users_within(ctx, request)
    shape = status.in_force(ctx.tx, request.namespace)
    return UsersAnswer(
        schema_sha256=shape.stored.sha256 if shape.stored else "",
        properties=len(shape.schema.properties) if shape.schema else 0,
        users=[
            user_shown(ctx, name, status.look_under(ctx.tx, shape, (request.namespace, name), ctx.now_us))
            for name in found[: request.limit]
        ],
        next_cursor=found[request.limit - 1] if len(found) > request.limit else "",
    )


def users_within(ctx: Context, request: UsersRequest) -> list[str]:
    """The users of the page and one more, if there is one; of a caller who reads one user alone, that one."""
    if ctx.scope is ReadScope.NAMESPACE:
        return store.users(ctx.tx, request.namespace, request.cursor, request.limit + 1)
    return [request.user_id] if store.has_facts(ctx.tx, request.namespace, request.user_id) else []


def user_shown(ctx: Context, user_id: str, found: Look) -> UserShown:
    """A user as lists show them."""
    item = found.shows
    settled = sum(value is not None for value in status.shown(ctx.tx, found).values()) if item else 0
    return UserShown(
        user_id=user_id,
        status=found.status,
        settled=settled,
        built_at=instant_or_none(item.head.attributes.valid_at) if item else None,
        memory_id=item.memory_id if item else "",
        version_text=str(item.head.version) if item else "0",
        failures=found.user.failures,
    )


def rebuild(ctx: Context, request: RebuildRequest) -> RebuildAnswer:
    """Ask for a build now, whether or not the profile is current."""
    found = looked(ctx, request)
    asked = found.schema is not None and found.has_facts and found.may_build
    if asked:
        ctx.tx.run(queries.WANT, namespace=request.namespace, user_id=request.user_id)
    if asked or found.work is not Work.NOTHING:
        outbox.enqueue(ctx.tx, building.BUILD, derived.subject_of(request.namespace, request.user_id))
    return RebuildAnswer(status=found.status, asked=asked or found.work is not Work.NOTHING)


STRUCTURED = Op(
    name="profile.structured",
    summary="Read a user's structured profile, shaped by the namespace's schema, and whether it is up to date.",
    takes=StructuredRequest,
    gives=StructuredAnswer,
    role=Role.VIEWER,
    kind=Kind.READ,
    run=structured,
    example={"user_id": "ada"},
    raises=(Denied,),
    toolsets=frozenset(),
)

EVIDENCE = Op(
    name="profile.evidence",
    summary="See which memories each value of a user's structured profile comes from, and whether they still stand.",
    takes=EvidenceRequest,
    gives=EvidenceAnswer,
    role=Role.VIEWER,
    kind=Kind.READ,
    run=evidence,
    example={"user_id": "ada"},
    raises=(Denied,),
    toolsets=frozenset(),
)

USERS = Op(
    name="profile.users",
    summary="List the users of a namespace who have memories, each with the state of their structured profile.",
    takes=UsersRequest,
    gives=UsersAnswer,
    role=Role.VIEWER,
    kind=Kind.READ,
    run=users,
    example={"limit": 20},
    raises=(Denied,),
    toolsets=frozenset(),
)

REBUILD = Op(
    name="profile.rebuild",
    summary="Build a user's structured profile anew, soon, whether or not something changed.",
    takes=RebuildRequest,
    gives=RebuildAnswer,
    role=Role.WRITER,
    kind=Kind.IDEMPOTENT,
    run=rebuild,
    example={"user_id": "ada"},
    raises=(Denied,),
    toolsets=frozenset(),
)

OPS = (STRUCTURED, EVIDENCE, USERS, REBUILD)
