"""memory.export and memory.import: every memory with its whole history, as lines for a file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, cast

from pydantic import BaseModel, ConfigDict, Field, JsonValue, WithJsonSchema

from loom.access import namespaces
from loom.access.caller import ReadScope, Role
from loom.errors import Denied, LoomError, Rejected
from loom.ledger import rules as ledger
from loom.ledger import store, writes
from loom.ledger.rules import LIVE, REDACTED, SUPERSEDED, Item, Version
from loom.ops.fields import HANDLE_LENGTH_MAX, microseconds
from loom.ops.spec import IDENTITY_LENGTH_MAX, Answer, Context, Kind, Op, OpenRequest
from loom.planes import handles
from loom.planes.memory import lines, rules
from loom.planes.memory.lines import MemoryLine, NamespaceLine

LINES_MAX = 500
NAMESPACES_MAX = 100_000
"""Namespaces that an export looks at."""

EXPORT_CHARACTERS_MAX = 4_000_000
"""Characters of values in one answer, about; one line is always given."""

AHEAD_MAX_NS = 10 * 60 * 1_000_000_000
"""How far ahead of the clock a version's number may be, which two clocks that are set may differ by.

It pushes up every later number, and with it the times that are told of later versions.
"""

ITEMS = (
    store.COLUMNS
    + """
WHERE i.org = :org AND (:every = 1 OR i.namespace IN (:namespaces)) AND i.item_id >= :least
ORDER BY i.item_id LIMIT :most
"""
)

COUNT = """
SELECT count(*) AS total FROM ledger_item
WHERE org = :org AND (:every = 1 OR namespace IN (:namespaces))
"""

NUMBERS = """
SELECT version, content_sha256 FROM ledger_version
WHERE org = :org AND item_id = :item_id AND version IN (:numbers)
"""

LINE_SCHEMA = {"type": "array", "maxItems": LINES_MAX, "minItems": 1, "items": {"type": "object"}}


class ExportRequest(OpenRequest):
    """What memory.export takes."""

    all_namespaces: Annotated[
        bool, Field(description="Every namespace of the org that the caller reaches, not the named one alone.")
    ] = False
    limit: Annotated[int, Field(ge=1, le=LINES_MAX, description="At most this many lines.")] = LINES_MAX
    cursor: Annotated[
        str,
        Field(max_length=HANDLE_LENGTH_MAX, description="next_cursor of the answer before; empty for the first."),
    ] = ""


class ExportAnswer(Answer):
    """What memory.export answers."""

    lines: Annotated[
        list[dict[str, JsonValue]],
        Field(description="Namespaces first, then memories with their versions; each for a line of a file."),
    ]
    total: Annotated[
        int, Field(description="How many memories there are in all; one with a long history has more lines.")
    ]
    next_cursor: Annotated[str, Field(description="Send as cursor to read on; empty at the end.")]


class ImportRequest(OpenRequest):
    """What memory.import takes."""

    lines: Annotated[
        list[JsonValue],
        Field(min_length=1, max_length=LINES_MAX, description="Lines of memory.export, as they are."),
        WithJsonSchema(cast("dict[str, object]", LINE_SCHEMA)),
    ]


class Refusal(BaseModel):
    """Why a line was not imported."""

    model_config = ConfigDict(frozen=True)

    line: Annotated[int, Field(description="Its place in lines, from 0.")]
    code: Annotated[str, Field(description="The code of the error.")]
    reason: Annotated[str, Field(description="What does not fit.")]


class ImportAnswer(Answer):
    """What memory.import answers."""

    imported: Annotated[int, Field(description="Lines that changed the store.")]
    unchanged: Annotated[int, Field(description="Lines that were there already.")]
    refused: Annotated[list[Refusal], Field(description="Lines that were not imported; the others are not touched.")]


class Cursor(BaseModel):
    """Where an export goes on.

    Attributes:
        space: after the namespace of this name; None once every namespace was given.
        item_id: at this item.
        before: at its versions below this number; 0 for after the item.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    space: Annotated[str, Field(max_length=IDENTITY_LENGTH_MAX)] | None

    item_id: Annotated[int, Field(ge=0, lt=(1 << 63) - 1)]
    before: Annotated[int, Field(ge=0, lt=1 << 63)]


@dataclass(frozen=True, slots=True)
class Reach:
    """The namespaces that are exported; None for every one of the org."""

    names: tuple[str, ...] | None

    def params(self) -> Mapping[str, int | list[str]]:
        """The parameters of the statements above."""
        return {"every": int(self.names is None), "namespaces": list(self.names or ("",))}


def export(ctx: Context, request: ExportRequest) -> ExportAnswer:
    """One page of lines."""
    check_whole_reach(ctx)
    reach = Reach((request.namespace,))
    if request.all_namespaces:
        reach = Reach(None if ctx.caller.namespaces is None else tuple(sorted(ctx.caller.namespaces)))
    row = ctx.tx.row(COUNT, **reach.params())
    total = cast("int", row["total"]) if row else 0
    found: list[BaseModel] = []
    start = Cursor(space="", item_id=0, before=0)
    if request.cursor:
        start = handles.unpacked(Cursor, request.cursor, "cursor")
    end = spaces_on(ctx, reach, start, found, request.limit) or read_on(ctx, reach, start, found, request.limit)
    return ExportAnswer(
        lines=[cast("dict[str, JsonValue]", one.model_dump(mode="json")) for one in found],
        total=total,
        next_cursor=handles.packed(end) if end else "",
    )


def spaces_on(ctx: Context, reach: Reach, start: Cursor, found: list[BaseModel], limit: int) -> Cursor | None:
    """Add lines of namespaces to `found`, by name; where to go on, None when there are no more."""
    if start.space is None:
        return None
    there = sorted(namespaces.listed(ctx.tx, reach.names, most=NAMESPACES_MAX), key=lambda one: one.name)
    left = [one for one in there if one.name > start.space]
    found += [lines.namespace_line(one) for one in left[:limit]]
    if len(left) < limit:
        return None
    return start.model_copy(update={"space": left[limit - 1].name})


def read_on(ctx: Context, reach: Reach, start: Cursor, found: list[BaseModel], limit: int) -> Cursor | None:
    """Add lines of memories to `found` from a place on; where to go on, None at the end."""
    room = EXPORT_CHARACTERS_MAX
    least = start.item_id + (0 if start.before else 1)
    items = [store.item_of(row) for row in ctx.tx.rows(ITEMS, least=least, most=limit + 1, **reach.params())]
    for item in items:
        before = start.before if item.item_id == start.item_id and start.before else store.BEFORE_ALL
        while True:
            if len(found) >= limit or room < 0:
                # The place before this line: within the item, or at its beginning.
                return Cursor(space=None, item_id=item.item_id, before=before)
            versions, more = slice_of(ctx, item, before)
            found.append(lines.memory_line(item, versions))
            room -= sum(version.value_length for version in versions)
            if not more:
                break
            before = versions[-1].version
    return Cursor(space=None, item_id=items[-1].item_id, before=0) if len(items) > limit else None


def slice_of(ctx: Context, item: Item, before: int) -> tuple[Sequence[Version], bool]:
    """Versions below `before` for one line, the newest first, and whether older ones are left."""
    there = store.history(ctx.tx, item.item_id, lines.VERSIONS_MAX + 1, before)
    taken: list[Version] = []
    room = lines.LINE_CHARACTERS_MAX
    for version in there[: lines.VERSIONS_MAX]:
        room -= version.value_length
        if room < 0 and taken:
            break
        taken.append(version)
    return taken, len(there) > len(taken)


def check_whole_reach(ctx: Context) -> None:
    """Denied for a token that does not read every user's rows."""
    if ctx.scope is not ReadScope.NAMESPACE:
        raise Denied("export and import need a token that reads the whole namespace")


def import_lines(ctx: Context, request: ImportRequest) -> ImportAnswer:
    """Take each line that fits. A line is checked whole before it changes anything."""
    check_whole_reach(ctx)
    imported, refused = 0, list[Refusal]()
    for place, raw in enumerate(request.lines):
        try:
            imported += import_line(ctx, raw)
        except LoomError as error:
            refused.append(Refusal(line=place, code=error.code, reason=error.message))
    return ImportAnswer(imported=imported, unchanged=len(request.lines) - imported - len(refused), refused=refused)


def import_line(ctx: Context, raw: JsonValue) -> bool:
    """Take one line; whether it changed anything."""
    kind = raw.get("kind") if isinstance(raw, dict) else None
    if kind == "namespace":
        return import_namespace(ctx, rules.parsed(NamespaceLine, raw))
    if kind == "memory":
        return import_memory(ctx, rules.parsed(MemoryLine, raw))
    raise Rejected("kind: should be namespace or memory; is this a line of memory.export?", field="kind")


def check_reached(ctx: Context, namespace: str) -> None:
    """Denied when the token does not reach the namespace."""
    if not ctx.caller.reaches(namespace):
        raise Denied("namespace: this token does not reach it", field="namespace")


def import_namespace(ctx: Context, line: NamespaceLine) -> bool:
    """Make the namespace, or describe one that has no description."""
    check_reached(ctx, line.name)
    there = namespaces.read(ctx.tx, line.name)
    if there is None:
        created_at = microseconds(line.created_at)
        return namespaces.create(ctx.tx, line.name, line.namespace_kind, line.description, created_at)
    if there.description or not line.description:
        return False
    return namespaces.describe(ctx.tx, line.name, line.description)


def import_memory(ctx: Context, line: MemoryLine) -> bool:
    """Add the versions that are missing, and make the line's latest one the latest where it is newer.

    What was erased here stays erased: a version that is there is never replaced. What was redacted where
    the line comes from is redacted here too.
    """
    check_reached(ctx, line.namespace)
    versions = [lines.version_of(one) for one in line.versions]
    lines.check_versions(line, versions)
    number = rules.version_number(line.version_text)
    item_id = ledger.item_id_of(line.memory_id) or 0
    largest = max(item_id, number, *(version.version for version in versions))
    check_not_ahead(ctx, largest)
    there = same_row(ctx, line, item_id)
    if there is not None and there.status == REDACTED:
        if line.status == REDACTED:
            return False
        raise Rejected("memory_id: the memory was redacted here, and stays so", field="memory_id")
    if there is not None and line.status == REDACTED and number >= there.head.version:
        ledger.check_deletable(there)
        writes.redact(ctx.tx, there)
        return True
    known = numbers_there(ctx, item_id, versions) if there else frozenset[int]()
    new = [version for version in versions if version.version not in known]
    newer = there is None or number > there.head.version
    head = next((version for version in versions if version.version == number), None)
    if newer and head is None:
        raise Rejected("versions: the latest one is not here; import the lines in their order", field="versions")
    if newer:
        ledger.check_writable(there)
    item = lines.item_of(line, head) if newer and head is not None else None
    if not new and not newer:
        return False
    ctx.tx.outstrip(largest)
    for version in new:
        superseded = version.status == LIVE and not (newer and version.version == number)
        writes.insert_version(ctx.tx, item_id, replace(version, status=SUPERSEDED) if superseded else version)
    if item is not None:
        if there is not None and there.status == LIVE:
            writes.supersede(ctx.tx, there)
        writes.insert_item(ctx.tx, there, item)
    return True


def check_not_ahead(ctx: Context, number: int) -> None:
    """Rejected when a version's number lies too far ahead of the clock."""
    if number > ctx.now_us * 1000 + AHEAD_MAX_NS:
        raise Rejected("version_text: lies in the future; is the clock right?", field="version_text")


def same_row(ctx: Context, line: MemoryLine, item_id: int) -> Item | None:
    """The row the line is about, locked; None when it is not there yet.

    Raises:
        Rejected: the key is another row's, or the id another key's.
    """
    place = ledger.Place(line.namespace, line.agent, line.user_id)
    store.lock(ctx.tx, place, line.memory_key)
    there = store.exact(ctx.tx, place, line.memory_key)
    if there is not None and there.item_id != item_id:
        raise Rejected("memory_key: another memory has this key here", field="memory_key")
    if there is None and item_id and store.by_id(ctx.tx, item_id) is not None:
        raise Rejected("memory_id: another key has this id here", field="memory_id")
    return there


def numbers_there(ctx: Context, item_id: int, versions: Sequence[Version]) -> frozenset[int]:
    """Which of these versions the store has.

    Raises:
        Rejected: it has one of them with another value, so it is another store's memory of the same name.
    """
    wanted = {version.version: version.content_sha256 for version in versions}
    rows = ctx.tx.rows(NUMBERS, item_id=item_id, numbers=list(wanted)) if wanted else ()
    known = {cast("int", row["version"]): cast("str", row["content_sha256"]) for row in rows}
    if any(sha256 and wanted[number] and sha256 != wanted[number] for number, sha256 in known.items()):
        raise Rejected("versions: one is here with another value; this is another memory", field="versions")
    return frozenset(known)


EXPORT = Op(
    name="memory.export",
    summary="Export memories and profile sections with every version, as lines for a file; nothing is lost.",
    takes=ExportRequest,
    gives=ExportAnswer,
    role=Role.ADMIN,
    kind=Kind.READ,
    run=export,
    example={"limit": 100},
    toolsets=frozenset(),
)

IMPORT = Op(
    name="memory.import",
    summary="Import lines of memory.export with their ids, versions and times; what is there already stays as it is.",
    takes=ImportRequest,
    gives=ImportAnswer,
    role=Role.ADMIN,
    kind=Kind.IDEMPOTENT,
    run=import_lines,
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
    toolsets=frozenset(),
)
