"""profile.render: reading sections, and noting who read."""

from typing import Annotated

from pydantic import Field

from loom.access.caller import Role
from loom.ledger.rules import Item, Reader
from loom.ops.fields import ScopeWord
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
