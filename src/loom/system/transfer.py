"""store.export and store.import: all that an org keeps, with ids, versions and history, as lines for a file."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, cast

from pydantic import BaseModel, ConfigDict, Field, JsonValue, WithJsonSchema

from loom.access.caller import ReadScope, Role
from loom.errors import Denied, LoomError, Rejected
from loom.ops import handles, invalid
from loom.ops.fields import HANDLE_LENGTH_MAX
from loom.ops.spec import Answer, AnyOp, Audited, Context, Kind, Op, OpenRequest, Prepare, prepared_as
from loom.planes.cargo import AnyCargo, Carried, Line, Reach
from loom.storage.interface import Transaction
from loom.system import carried_namespaces

LINES_MAX = 500
EXPORT_CHARACTERS_MAX = 4_000_000
"""Characters of texts in one answer, about; one line is always given."""

KEY_PARTS_MAX = 3
KEY_TEXT_LENGTH_MAX = 256
LINE_DEPTH_MAX = 72
"""How deep a request of lines is nested: what a line holds may itself be as deep as a request."""

LINE_SCHEMA = {"type": "array", "maxItems": LINES_MAX, "minItems": 1, "items": {"type": "object"}}


class ExportRequest(OpenRequest):
    """What store.export takes."""

    all_namespaces: Annotated[
        bool, Field(description="Every namespace of the org that the caller reaches, not the named one alone.")
    ] = False
    limit: Annotated[int, Field(ge=1, le=LINES_MAX, description="At most this many lines.")] = LINES_MAX
    cursor: Annotated[
        str,
        Field(max_length=HANDLE_LENGTH_MAX, description="next_cursor of the answer before; empty for the first."),
    ] = ""


class ExportAnswer(Answer):
    """What store.export answers."""

    lines: Annotated[
        list[dict[str, JsonValue]],
        Field(description="Namespaces first, then what they hold, each for a line of a file."),
    ]
    total: Annotated[
        int,
        Field(description="How many namespaces, memories, documents and so on there are; a long one has more lines."),
    ]
    next_cursor: Annotated[str, Field(description="Send as cursor to read on; empty at the end.")]
    plane_orgs: Annotated[
        dict[str, str],
        Field(description="Planes that keep an org of their own for this caller; export each with org as well."),
    ]


class ImportRequest(OpenRequest):
    """What store.import takes."""

    DEPTH_MAX: ClassVar[int] = LINE_DEPTH_MAX

    lines: Annotated[
        list[JsonValue],
        Field(min_length=1, max_length=LINES_MAX, description="Lines of store.export, as they are."),
        WithJsonSchema(cast("dict[str, object]", LINE_SCHEMA)),
    ]


class Refusal(BaseModel):
    """Why a line was not imported."""

    model_config = ConfigDict(frozen=True)

    line: Annotated[int, Field(description="Its place in lines, from 0.")]
    code: Annotated[str, Field(description="The code of the error.")]
    reason: Annotated[str, Field(description="What does not fit.")]


class ImportAnswer(Answer):
    """What store.import answers."""

    imported: Annotated[int, Field(description="Lines that changed the store.")]
    unchanged: Annotated[int, Field(description="Lines that were there already.")]
    refused: Annotated[list[Refusal], Field(description="Lines that were not imported; the others are not touched.")]


class Cursor(BaseModel):
    """Where an export goes on.

    Attributes:
        kind: among the lines of this kind.
        after: after this place in their order.
        total: how many rows there were when the export began.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    kind: Annotated[str, Field(max_length=KEY_TEXT_LENGTH_MAX)]
    after: Annotated[
        list[Annotated[int, Field(ge=-(1 << 63), lt=1 << 63)] | Annotated[str, Field(max_length=KEY_TEXT_LENGTH_MAX)]],
        Field(max_length=KEY_PARTS_MAX),
    ]
    total: Annotated[int, Field(ge=0, lt=1 << 63)]


@dataclass(frozen=True, slots=True)
class Taken:
    """A line that passed its own checks, and the cargo that keeps it."""

    cargo: AnyCargo
    line: object


@dataclass(frozen=True, slots=True)
class OtherOrgs:
    """The planes that keep an org of their own beside the one that is exported, each with it."""

    by_plane: dict[str, str]


@dataclass(frozen=True, slots=True)
class Checked:
    """Every line of a request, or why it is not taken."""

    lines: Sequence[Taken | LoomError]


@dataclass(frozen=True, slots=True)
class Transfer:
    """Moves what the cargos know, in their order."""

    cargos: Sequence[AnyCargo]

    def other_orgs(self, prepare: Prepare, request: ExportRequest) -> OtherOrgs:
        """See `OtherOrgs`."""
        return OtherOrgs({plane: org for plane, org in sorted(prepare.plane_orgs.items()) if org != request.org})

    def export(self, ctx: Context, request: ExportRequest) -> ExportAnswer:
        """One page of lines."""
        check_reads_everything(ctx)
        reach = Reach((request.namespace,))
        if request.all_namespaces:
            reach = Reach(None if ctx.caller.namespaces is None else tuple(sorted(ctx.caller.namespaces)))
        if request.cursor:
            start = handles.unpacked(Cursor, request.cursor, "cursor")
        else:
            total = sum(_count(ctx, cargo, reach) for cargo in self.cargos)
            start = Cursor(kind=self.cargos[0].kind, after=list(self.cargos[0].start), total=total)
        found, end = page(self._carried(ctx.tx, reach, start), start, request.limit)
        return ExportAnswer(
            lines=[cast("dict[str, JsonValue]", one.model_dump(mode="json")) for one in found],
            total=start.total,
            next_cursor=handles.packed(end) if end else "",
            plane_orgs=prepared_as(ctx, OtherOrgs).by_plane,
        )

    def _carried(self, tx: Transaction, reach: Reach, start: Cursor) -> Iterator[tuple[str, Carried]]:
        """Every line after a place, with its kind.

        Raises:
            Rejected: there is no such place.
        """
        kinds = [cargo.kind for cargo in self.cargos]
        first = kinds.index(start.kind) if start.kind in kinds else len(kinds)
        if first == len(kinds) or [type(part) for part in start.after] != [type(p) for p in self.cargos[first].start]:
            raise Rejected("cursor: not a handle of an earlier answer; begin again without it", field="cursor")
        for cargo in self.cargos[first:]:
            after = tuple(start.after) if cargo.kind == start.kind else cargo.start
            for one in cargo.read(tx, reach, after):
                yield cargo.kind, one

    def ready(self, prepare: Prepare, request: ImportRequest) -> Checked:
        """Read each line and check it by itself, before anything is written."""
        del prepare
        return Checked([self._read(raw) for raw in request.lines])

    def _read(self, raw: JsonValue) -> Taken | LoomError:
        try:
            kind = raw.get("kind") if isinstance(raw, dict) else None
            cargo = next((one for one in self.cargos if one.kind == kind), None)
            if cargo is None or not isinstance(raw, dict):
                kinds = ", ".join(one.kind for one in self.cargos)
                raise Rejected(f"kind: should be one of {kinds}; is this a line of store.export?", field="kind")
            return Taken(cargo, cargo.ready(invalid.parsed(cargo.line, raw, "line")))
        except LoomError as error:
            return error

    def import_lines(self, ctx: Context, request: ImportRequest) -> ImportAnswer:
        """Take each line that fits. A line is checked whole before it changes anything."""
        check_writes_everything(ctx)
        imported, refused = 0, list[Refusal]()
        for place, one in enumerate(prepared_as(ctx, Checked).lines):
            try:
                imported += _taken(ctx, one)
            except LoomError as error:
                refused.append(Refusal(line=place, code=error.code, reason=error.message))
        unchanged = len(request.lines) - imported - len(refused)
        return ImportAnswer(imported=imported, unchanged=unchanged, refused=refused)


def page(carried: Iterator[tuple[str, Carried]], start: Cursor, limit: int) -> tuple[list[Line], Cursor | None]:
    """As many lines as fit into one answer, and where to go on; None at the end."""
    found: list[Line] = []
    room, end = EXPORT_CHARACTERS_MAX, start
    for kind, one in carried:
        if len(found) >= limit or (room < one.length and found):
            return found, end
        found.append(one.line)
        room -= one.length
        end = Cursor(kind=kind, after=list(one.key), total=start.total)
    return found, None


def _count(ctx: Context, cargo: AnyCargo, reach: Reach) -> int:
    row = ctx.tx.row(cargo.count, **reach.params())
    return cast("int", row["total"]) if row else 0


def _taken(ctx: Context, one: Taken | LoomError) -> bool:
    if isinstance(one, LoomError):
        raise one
    return one.cargo.take(ctx, one.line)


def check_reads_everything(ctx: Context) -> None:
    """Denied for a token that does not read every user's rows."""
    if ctx.scope is not ReadScope.NAMESPACE:
        raise Denied("export and import need a token that reads the whole namespace")


def check_writes_everything(ctx: Context) -> None:
    """Denied for a token that may not write every user's rows: lines name whose they are."""
    check_reads_everything(ctx)
    if not ctx.caller.reaches_everybody:
        raise Denied("import needs a token that is limited to no agent, user or session: lines name their own")


def ops(cargos: Sequence[AnyCargo] = ()) -> tuple[AnyOp, ...]:
    """The operations; `cargos` are what the planes move, beside the namespaces themselves."""
    transfer = Transfer((carried_namespaces.CARGO, *cargos))
    return (
        Op(
            name="store.export",
            summary="Export everything: memories, documents, conversations, issues and code, with ids and history.",
            takes=ExportRequest,
            gives=ExportAnswer,
            role=Role.ADMIN,
            kind=Kind.READ,
            run=transfer.export,
            prepare=transfer.other_orgs,
            example={"limit": 100},
            raises=(Denied,),
            toolsets=frozenset(),
        ),
        Op(
            name="store.import",
            summary="Import lines of store.export with their ids, versions and times; what is there already stays.",
            takes=ImportRequest,
            gives=ImportAnswer,
            role=Role.ADMIN,
            kind=Kind.IDEMPOTENT,
            audited=Audited(outcome=("imported", "unchanged")),
            run=transfer.import_lines,
            prepare=transfer.ready,
            example={
                "lines": [
                    {
                        "kind": "namespace",
                        "name": "local",
                        "namespace_kind": "memory",
                        "description": "Notes of the team",
                        "created_at": "2026-01-31T09:30:00Z",
                    }
                ]
            },
            raises=(Denied,),
            toolsets=frozenset(),
        ),
    )
