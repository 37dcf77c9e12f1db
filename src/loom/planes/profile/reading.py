"""profile.render and profile.structured: reading sections, and noting who read."""

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from loom.access.caller import ReadScope, Role
from loom.errors import Denied
from loom.ledger.rules import Item, Reader
from loom.ops.fields import Instant, ScopeWord
from loom.ops.identity import ANY_AGENT
from loom.ops.spec import Answer, Context, Kind, Op, Request, Toolset
from loom.planes.profile import activity, render, rules, store
from loom.planes.profile.fields import Label, one_of

LABELS_MAX = 1000
FORMATS = {"xml": render.xml, "markdown": render.markdown}
THIS_AGENT = "this_agent"


class RenderRequest(Request):
    """What profile.render takes."""

    format: Annotated[
        str, one_of(*FORMATS), Field(description="How to write the fragment down: 'xml' or 'markdown'.")
    ] = "xml"
    labels: Annotated[
        Annotated[list[Label], Field(max_length=LABELS_MAX)] | None,
        Field(description="Only these sections, in this order; unknown ones are left out. Null for all, by label."),
    ] = None
    scope: Annotated[
        str,
        one_of("namespace", THIS_AGENT),
        Field(description="Whose sections: 'namespace' for every agent's, 'this_agent' for the caller's own."),
    ] = "namespace"
    read_scope: Annotated[
        ScopeWord,
        Field(
            description="Whose users' sections: everybody's, or one's own beside those of no user. The token narrows "
            "it further."
        ),
    ] = "namespace"


class RenderAnswer(Answer):
    """What profile.render answers."""

    ABSENT_WHEN_NONE = frozenset({"degraded"})

    rendered: Annotated[str, Field(description="The sections as one text for a prompt; empty when there are none.")]
    section_count: Annotated[int, Field(description="Number of sections in the text.")]
    total_chars: Annotated[int, Field(description="Characters of the text, its markup counted.")]
    labels: Annotated[list[str], Field(description="The label of each section in the text, in the text's order.")]
    degraded: Annotated[
        list[str] | None,
        Field(description="Parts left out (sections: there are more than a render holds); absent when none is."),
    ] = None


class StructuredRequest(Request):
    """What profile.structured takes."""

    read_scope: Annotated[
        Literal["namespace", "own_user"],
        Field(description="Kept for symmetry with other reads: the one user named is read, whatever is sent here."),
    ] = "namespace"


class StructuredAnswer(Answer):
    """What profile.structured answers."""

    status: Annotated[
        Literal["ready", "stale", "pending", "no_schema"],
        Field(
            description="ready: up to date. stale: something it rests on has changed. pending: not built, or not to "
            "be shown. no_schema: the namespace has no usable schema."
        ),
    ]
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


def render_sections(ctx: Context, request: RenderRequest) -> RenderAnswer:
    """Render what the reader may see."""
    own = request.scope == THIS_AGENT and request.agent != ANY_AGENT
    found = store.sections(
        ctx.tx,
        request.namespace,
        request.agent if own else None,
        Reader(ctx.scope, request.user_id, request.session_id),
        request.labels,
        ctx.now_us,
    )
    shown = found[: store.SECTIONS_MAX]
    if request.labels is not None:
        place = {label: number for number, label in reversed(list(enumerate(request.labels)))}
        shown.sort(key=lambda section: place[section.memory_key])
    rendered = FORMATS[request.format]([_part(section) for section in shown])
    activity.note(ctx, request, "profile.render")
    return RenderAnswer(
        rendered=rendered,
        section_count=len(shown),
        total_chars=len(rendered),
        labels=[section.memory_key for section in shown],
        degraded=["sections"] if len(found) > len(shown) else None,
    )


def structured(ctx: Context, request: StructuredRequest) -> StructuredAnswer:
    """Say that the namespace has no schema: nothing can set one yet."""
    if ctx.caller.read_scope is ReadScope.OWN_SESSION:
        raise Denied("read_scope: this token reads its own session alone; a structured profile is a whole user's")
    activity.note(ctx, request, "profile.structured")
    return StructuredAnswer(
        status="no_schema", profile={}, built_at=None, memory_id="", version=0, version_text="0", schema_sha256=""
    )


def _part(section: Item) -> render.Part:
    return render.Part(section.memory_key, rules.text_of(section), section.place.agent, section.place.user_id)


RENDER = Op(
    name="profile.render",
    summary="Read the whole profile as one fragment for a prompt: who the user is, what they want, how they like it.",
    takes=RenderRequest,
    gives=RenderAnswer,
    role=Role.VIEWER,
    kind=Kind.READ,
    run=render_sections,
    example={"format": "markdown"},
    toolsets=frozenset({Toolset.DEFAULT, Toolset.ALL}),
    may_lag=True,
)

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
