"""profile.set, profile.append and profile.replace: changing one section."""

from dataclasses import replace
from typing import Annotated, ClassVar, TypedDict

from pydantic import Field

from loom.access.caller import Role
from loom.errors import Denied, KindConflict, Locked, NotFound, ShaMismatch, TextNotFound, TooLong
from loom.ledger import embedding, rules, writes
from loom.ledger import store as ledger
from loom.ledger.indexing import Embedded
from loom.ledger.rules import CHAR_LIMIT_DEFAULT, Draft, Item, Place, Reader
from loom.models.interface import EmbedderFailed
from loom.ops.fields import EMBEDDER, SOURCE_TRACE_LENGTH_MAX, CharLimit, IfMatch
from loom.ops.identity import check_one_agent
from loom.ops.spec import Context, Kind, Op, Prepare, Request
from loom.planes.profile import rules as section_rules
from loom.planes.profile import store
from loom.planes.profile.fields import Label, SectionAnswer
from loom.retrieval import values

SEPARATOR_LENGTH_MAX = 1024


class SetRequest(Request):
    """What profile.set takes."""

    label: Annotated[
        Label, Field(description="Name of the section, for instance persona; an existing one is replaced.")
    ]
    value: Annotated[str, Field(description="The section's text from now on, all of it.")]
    char_limit: Annotated[
        CharLimit, Field(description="Cap on the value's length as JSON, in characters; a longer value is refused.")
    ] = CHAR_LIMIT_DEFAULT
    source_trace: Annotated[
        str,
        Field(
            max_length=SOURCE_TRACE_LENGTH_MAX,
            description="Says where the text comes from; may not begin with memory.delete_version:, which marks a "
            "version that was taken away.",
        ),
    ] = ""
    if_match_sha256: Annotated[
        IfMatch,
        Field(description="Write only over the version whose content_sha256 this is, else 409; empty to write anyway."),
    ] = ""


class SetAnswer(SectionAnswer):
    """What profile.set answers."""

    ABSENT_WHEN_NONE: ClassVar[frozenset[str]] = frozenset({"degraded"})

    degraded: Annotated[
        list[str] | None,
        Field(description="Parts that were not ready (embedder: search by meaning follows); absent when all were."),
    ] = None


class AppendRequest(Request):
    """What profile.append takes."""

    label: Annotated[
        Label, Field(description="Name of the section to add to; made with the default cap when it does not exist.")
    ]
    addition: Annotated[str, Field(description="Text to put after what the section holds.")]
    separator: Annotated[
        str,
        Field(
            max_length=SEPARATOR_LENGTH_MAX,
            description="Text between what was there and the addition; left out of a section that is new.",
        ),
    ] = "\n"


class ReplaceRequest(Request):
    """What profile.replace takes."""

    label: Annotated[Label, Field(description="Name of the section to change; 404 when it does not exist.")]
    old: Annotated[
        str,
        Field(min_length=1, description="Text to look for; each occurrence is changed, and 422 when there is none."),
    ]
    new: Annotated[str, Field(description="Text to put in its place; empty to take the occurrences out.")]


def embedded_value(prepare: Prepare, request: SetRequest) -> Embedded | None:
    """The text's vectors, or None when the embedder gives none in time."""
    if len(request.value) > request.char_limit:
        return None
    text = values.searchable(request.label, request.value, ())
    try:
        return embedding.embedded(prepare.embedder, [text], embedding.WRITE_TIMEOUT_S)[0]
    except EmbedderFailed:
        return None


def set_section(ctx: Context, request: SetRequest) -> SetAnswer:
    """Create or replace."""
    row, section = _opened(ctx, request, request.label)
    rules.check_match(row, request.if_match_sha256, ctx.now_us)
    made = section_rules.set_to(section, request.value, request.char_limit, request.source_trace)
    if section is not None and not section_rules.changes(section, made):
        return SetAnswer(**_shown(section))
    vectors = ctx.prepared if isinstance(ctx.prepared, Embedded) else None
    # The vectors are of label and text; a section with tags is embedded with them, by the job.
    fitting = None if made.attributes.tags else vectors
    written = _written(ctx, request, (row, request.label), made, fitting)
    return SetAnswer(**_shown(written), degraded=[EMBEDDER] if vectors is None else None)


def append(ctx: Context, request: AppendRequest) -> SectionAnswer:
    """Add to the end. Its place in the order of appends is its place in the text."""
    row, section = _opened(ctx, request, request.label)
    made = section_rules.appended(section, request.addition, request.separator)
    return SectionAnswer(**_shown(_written(ctx, request, (row, request.label), made)))


def replace_text(ctx: Context, request: ReplaceRequest) -> SectionAnswer:
    """Change each occurrence."""
    row, section = _opened(ctx, request, request.label)
    if section is None:
        raise _missing(ctx, request)
    made = section_rules.replaced(section, request.old, request.new)
    if not section_rules.changes(section, made):
        return SectionAnswer(**_shown(section))
    return SectionAnswer(**_shown(_written(ctx, request, (row, request.label), made)))


def _missing(ctx: Context, request: ReplaceRequest) -> NotFound:
    """What to do about a section that is not there: often another agent has one of the same label."""
    reader = Reader(ctx.scope, request.user_id, request.session_id)
    found = store.sections(ctx.tx, request.namespace, None, reader, [request.label], ctx.now_us)
    agents = sorted({section.place.agent for section in found if section.place.user_id == request.user_id})
    if not agents:
        return NotFound("label: there is no such section; profile.render lists them", field="label")
    return NotFound(
        "label: this agent has no such section, others have; send the agent whose it is, or add to your own with "
        "profile.append",
        field="label",
        writers=agents,
    )


class _Shown(TypedDict):
    version: int
    memory_id: str
    content_sha256: str
    namespace: str
    label: str
    char_limit: int | None
    value_length: int


def _shown(section: Item) -> _Shown:
    return _Shown(
        version=section.head.version,
        memory_id=section.memory_id,
        content_sha256=section.head.content_sha256,
        namespace=section.place.namespace,
        label=section.memory_key,
        char_limit=section.head.attributes.char_limit,
        value_length=section.head.value_length,
    )


def _opened(ctx: Context, request: Request, label: str) -> tuple[Item | None, Item | None]:
    """The row that has the label, locked and checked, and the section in it while that lives."""
    check_one_agent(request)
    rules.check_own_words(label, rules.PROFILE, "label")
    row = store.held(ctx.tx, _place(request), label)
    rules.check_reach(row, Reader(ctx.scope, request.user_id, request.session_id))
    rules.check_kind(row, ctx.now_us, section=True)
    rules.check_writable(row)
    return row, row if row is not None and row.is_live(ctx.now_us) else None


def _place(request: Request) -> Place:
    return Place(request.namespace, request.agent, request.user_id)


def _turn(request: SetRequest | AppendRequest | ReplaceRequest) -> tuple[str, ...]:
    return ledger.turn(_place(request), request.label)


def _written(
    ctx: Context, request: Request, at: tuple[Item | None, str], made: Draft, vectors: Embedded | None = None
) -> Item:
    row, label = at
    named = replace(made, session_id=request.session_id, run_id=request.run_id)
    return writes.write(ctx.tx, row, (_place(request), label), named, vectors)


SET = Op(
    name="profile.set",
    summary="Create a profile section, or replace the text of an existing one as a whole.",
    takes=SetRequest,
    gives=SetAnswer,
    role=Role.WRITER,
    kind=Kind.IDEMPOTENT,
    run=set_section,
    turn=_turn,
    example={"label": "persona", "value": "Answers briefly. Likes worked examples."},
    prepare=embedded_value,
    raises=(TooLong, ShaMismatch, KindConflict, Locked, Denied),
    toolsets=frozenset(),
    destructive=True,
)

APPEND = Op(
    name="profile.append",
    summary="Add text to the end of a profile section; many agents may append at once and nothing is lost.",
    takes=AppendRequest,
    gives=SectionAnswer,
    role=Role.WRITER,
    kind=Kind.WRITE,
    run=append,
    turn=_turn,
    example={"label": "preferences", "addition": "Prefers tea to coffee."},
    raises=(TooLong, KindConflict, Locked, Denied),
    toolsets=frozenset(),
)

REPLACE = Op(
    name="profile.replace",
    summary="Change every occurrence of a text inside a profile section to another.",
    takes=ReplaceRequest,
    gives=SectionAnswer,
    role=Role.WRITER,
    kind=Kind.IDEMPOTENT,
    run=replace_text,
    turn=_turn,
    example={"label": "preferences", "old": "tea", "new": "green tea"},
    raises=(NotFound, TextNotFound, TooLong, KindConflict, Locked, Denied),
    toolsets=frozenset(),
    destructive=True,
)
