"""ops.health and ops.capabilities: how the server is, and what it can do."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from loom import __version__
from loom.access.caller import Role
from loom.jobs import outbox
from loom.models.interface import EmbedderFailed, Space
from loom.ops.fields import RoleWord
from loom.ops.schema import answer_schema, request_schema
from loom.ops.spec import Answer, AnyOp, Context, Kind, Op, Prepare, ServerRequest, prepared_as, tool_name

EMBED_TIMEOUT_S = 2.0
PROBE = "health"

KindWord = Literal["read", "write", "idempotent"]


class HealthRequest(ServerRequest):
    """What ops.health takes."""


class SpaceView(Answer):
    """A model that makes vectors."""

    model: Annotated[str, Field(description="Its name.")]
    source: Annotated[str, Field(description="Where it comes from: a package, openai for an endpoint, or a library.")]
    dimension: Annotated[int, Field(description="Numbers in a vector.")]
    fingerprint: Annotated[str, Field(description="Short name of all that its vectors' meaning depends on.")]


class HealthAnswer(Answer):
    """What ops.health answers."""

    status: Annotated[Literal["ok", "degraded"], Field(description="ok, or degraded when a part does not work.")]
    server_version: Annotated[str, Field(description="The server's version.")]
    embedder_ok: Annotated[bool, Field(description="Whether texts become vectors; without, words are still searched.")]
    embedder: Annotated[
        SpaceView,
        Field(description="What this server's vectors are of; its store's too, unless that was switched meanwhile."),
    ]
    writer_configured: Annotated[
        bool, Field(description="Whether a language model is configured; whether it answers is not tried here.")
    ]
    jobs_waiting: Annotated[int, Field(description="Work of this tenant that is yet to be done, such as embedding.")]
    degraded: Annotated[list[str], Field(description="The parts that do not work; empty when all do.")]
    embedder_rest_s: Annotated[
        float | None,
        Field(description="For how long the embedder is not asked, as it failed several times in a row; absent else."),
    ] = None

    ABSENT_WHEN_NONE = frozenset({"embedder_rest_s"})


class CapabilitiesRequest(ServerRequest):
    """What ops.capabilities takes."""


class OpView(Answer):
    """One operation as clients see it."""

    name: Annotated[str, Field(description="The operation: POST /v1/<name>.")]
    mcp_tool: Annotated[str, Field(description="Its name as an MCP tool.")]
    summary: Annotated[str, Field(description="What it does and when to use it.")]
    role: Annotated[RoleWord, Field(description="The least role that may call it.")]
    kind: Annotated[KindWord, Field(description="read; write: a repeat writes again; idempotent: a repeat does not.")]
    toolsets: Annotated[list[str], Field(description="The MCP toolsets that list it; it can be called all the same.")]
    input_schema: Annotated[dict[str, JsonValue], Field(description="JSON Schema 2020-12 of what it takes.")]
    output_schema: Annotated[dict[str, JsonValue], Field(description="JSON Schema 2020-12 of what it answers.")]
    raises: Annotated[list[str], Field(description="Codes of its own errors, beside those every operation has.")]


class CapabilitiesAnswer(Answer):
    """What ops.capabilities answers."""

    server_version: Annotated[str, Field(description="The server's version.")]
    ops: Annotated[list[OpView], Field(description="Every operation, by name.")]


@dataclass(frozen=True, slots=True)
class Models:
    """How the models are.

    Attributes:
        space: what the embedder's vectors are of.
        embedder_ok: whether the embedder gives a vector in time.
        embedder_rest_s: how long it is not asked, since it failed several times in a row; None while it is.
        writer_configured: whether there is a language model.
    """

    space: Space
    embedder_ok: bool
    embedder_rest_s: float | None
    writer_configured: bool


def models(prepare: Prepare, request: HealthRequest) -> Models:
    """Look at the models. The text is another one each time, so that no remembered vector answers."""
    del request
    works, rest_s = True, 0.0
    try:
        prepare.embedder.embed_query(f"{PROBE} {prepare.now_us}", EMBED_TIMEOUT_S)
    except EmbedderFailed as failure:
        works, rest_s = False, failure.rest_s
    return Models(prepare.embedder.space, works, round(rest_s, 1) or None, prepare.writer is not None)


def health(ctx: Context, request: HealthRequest) -> HealthAnswer:
    """Say how the parts are; that this runs at all shows that the store can be read."""
    del request
    found = prepared_as(ctx, Models)
    works = found.embedder_ok
    return HealthAnswer(
        status="ok" if works else "degraded",
        server_version=__version__,
        embedder_ok=works,
        embedder=SpaceView(
            model=found.space.model,
            source=found.space.source,
            dimension=found.space.dimension,
            fingerprint=found.space.fingerprint,
        ),
        writer_configured=found.writer_configured,
        jobs_waiting=outbox.waiting(ctx.tx),
        degraded=[] if works else ["embedder"],
        embedder_rest_s=found.embedder_rest_s,
    )


@dataclass(frozen=True)
class Index:
    """The operations of this server, described when first asked for.

    Attributes:
        ops: every operation, this one among them; known once the registry is built.
    """

    ops: Callable[[], Iterable[AnyOp]]

    @cached_property
    def answer(self) -> CapabilitiesAnswer:
        """The whole index."""
        return CapabilitiesAnswer(server_version=__version__, ops=[view(op) for op in self.ops()])

    def run(self, ctx: Context, request: CapabilitiesRequest) -> CapabilitiesAnswer:
        """Show it."""
        del ctx, request
        return self.answer


def view(op: AnyOp) -> OpView:
    """An operation as clients see it."""
    return OpView.model_validate(
        {
            "name": op.name,
            "mcp_tool": tool_name(op),
            "summary": op.summary,
            "role": op.role.word,
            "kind": op.kind.value,
            "toolsets": sorted(toolset.value for toolset in op.toolsets),
            "input_schema": request_schema(op, listed=False),
            "output_schema": answer_schema(op),
            "raises": sorted({error.code for error in op.raises}),
        }
    )


HEALTH = Op(
    name="ops.health",
    summary="Check whether the server, its store and its embedder work, and how much work is waiting.",
    takes=HealthRequest,
    gives=HealthAnswer,
    role=Role.VIEWER,
    kind=Kind.READ,
    run=health,
    example={},
    prepare=models,
)


def capabilities(ops: Callable[[], Iterable[AnyOp]]) -> Op[CapabilitiesRequest, CapabilitiesAnswer]:
    """The operation that lists `ops`."""
    return Op(
        name="ops.capabilities",
        summary="List every operation with its role, kind, toolsets and schemas.",
        takes=CapabilitiesRequest,
        gives=CapabilitiesAnswer,
        role=Role.VIEWER,
        kind=Kind.READ,
        run=Index(ops).run,
        example={},
    )
