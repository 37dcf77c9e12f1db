"""code.symbol, code.callers and code.read."""

from typing import Annotated

from pydantic import AfterValidator, Field

from loom.access.caller import Role
from loom.errors import NotFound, Rejected
from loom.ops.spec import Answer, Context, Kind, Op, OpenRequest, Toolset
from loom.planes.code import fields, graph, resolve, search, store, symbols
from loom.planes.code.comments import DOCSTRING_CHARACTERS_MAX
from loom.planes.code.fields import CallerShown, Path, SymbolId, SymbolName, SymbolShown, plain
from loom.planes.code.search import Quest
from loom.planes.code.symbols import Held

DEFINITIONS_MAX = 5
CALLERS_EACH = 10
SUGGESTIONS = 5
BODY_LINES_MAX = 400
BODY_CHARACTERS_MAX = 20_000
CALLERS_DEFAULT, CALLERS_MAX = 50, 200
DEPTH_MAX = 3
READ_LINES_DEFAULT, READ_LINES_MAX = 200, 1_000
READ_CHARACTERS_MAX = 100_000
LINE_NUMBER_MAX = 10_000_000


class Named(OpenRequest):
    """Names a symbol."""

    name: Annotated[
        SymbolName,
        AfterValidator(plain),
        Field(description="The symbol: name, Class.name or module.Class.name, as your language spells it."),
    ] = ""
    symbol_id: Annotated[SymbolId, Field(description="Or the id that an answer gave; then the name is not needed.")] = (
        ""
    )
    path: Annotated[
        Path,
        AfterValidator(plain),
        Field(description="Only in this file, or in files whose paths end so; empty for any."),
    ] = ""


class SymbolRequest(Named):
    """What code.symbol takes."""

    bodies: Annotated[bool, Field(description="Whether to show each definition's source.")] = True


class Definition(SymbolShown):
    """A definition, whole."""

    body: Annotated[
        str, Field(description="Its source, at most 400 lines and 20,000 characters; empty if not asked for.")
    ]
    body_cut: Annotated[bool, Field(description="Whether there is more of it; code.read gives the rest.")]
    callers: Annotated[list[CallerShown], Field(description="At most 10 uses of it; code.callers gives more.")]


class SymbolAnswer(Answer):
    """What code.symbol answers."""

    found: Annotated[bool, Field(description="Whether there is a symbol of this name.")]
    definitions: Annotated[list[Definition], Field(description="At most 5, the likeliest first.")]
    more: Annotated[int, Field(description="How many more have this name; say where with path, or Class.name.")]
    suggestions: Annotated[
        list[SymbolShown], Field(description="When none is found, symbols whose words are like the name's.")
    ]
    commit_id: Annotated[str, Field(description="The commit that is indexed; empty when it is not known.")]


class CallersRequest(Named):
    """What code.callers takes."""

    depth: Annotated[
        int, Field(ge=1, le=DEPTH_MAX, description="How many steps to go: callers, their callers, 1 to 3.")
    ] = 1
    limit: Annotated[int, Field(ge=1, le=CALLERS_MAX, description="At most this many uses, 1 to 200.")] = (
        CALLERS_DEFAULT
    )


class CallersAnswer(Answer):
    """What code.callers answers."""

    found: Annotated[bool, Field(description="Whether there is a symbol of this name.")]
    of: Annotated[list[SymbolShown], Field(description="The definitions whose uses these are.")]
    callers: Annotated[list[CallerShown], Field(description="The uses, nearest and surest first.")]
    truncated: Annotated[bool, Field(description="Whether there are more than these.")]


class ReadRequest(OpenRequest):
    """What code.read takes."""

    path: Annotated[
        Annotated[str, Field(min_length=1, max_length=1024)],
        AfterValidator(plain),
        Field(description="The file, from the top of the repository."),
    ]
    start_line: Annotated[int, Field(ge=1, le=LINE_NUMBER_MAX, description="The first line, from 1.")] = 1
    end_line: Annotated[
        int,
        Field(ge=0, le=LINE_NUMBER_MAX, description="The last line; 0 for 200 lines. At most 1,000 lines are given."),
    ] = 0


class ReadAnswer(Answer):
    """What code.read answers."""

    path: Annotated[str, Field(description="The file.")]
    language: Annotated[str, Field(description="Its language; empty for one that is not parsed.")]
    text: Annotated[str, Field(description="The lines, joined by newlines, as they were when the file was indexed.")]
    start_line: Annotated[int, Field(description="The first line that is given.")]
    end_line: Annotated[int, Field(description="The last line that is given; less than start_line when there is none.")]
    total_lines: Annotated[int, Field(description="Lines of the whole file.")]
    truncated: Annotated[
        bool, Field(description="Whether lines that were asked for are left out; go on at end_line + 1.")
    ]
    broken: Annotated[bool, Field(description="Whether the file has syntax errors.")]
    commit_id: Annotated[str, Field(description="The commit that is indexed; empty when it is not known.")]


def wanted(ctx: Context, request: Named) -> list[Held]:
    """The symbols that a request names.

    Raises:
        Rejected: it names none.
        NotFound: the namespace holds no repository, or its symbols have no such id.
    """
    fields.indexed(ctx.tx, request.namespace)
    if request.symbol_id:
        item_id = fields.item_id_of(request.symbol_id)
        held = symbols.by_ids(ctx.tx, request.namespace, [item_id]).get(item_id)
        if held is None:
            raise NotFound(
                "symbol_id: there is no such symbol any more; its file changed, or it is of another namespace",
                field="symbol_id",
            )
        return [held]
    if not request.name.strip():
        raise Rejected("name: name a symbol, or send its symbol_id", field="name")
    return resolve.resolved(ctx.tx, request.namespace, request.name, request.path)


def symbol(ctx: Context, request: SymbolRequest) -> SymbolAnswer:
    """Definitions of a name, with their callers."""
    found = wanted(ctx, request)
    repository = fields.indexed(ctx.tx, request.namespace)
    shown = found[:DEFINITIONS_MAX]
    files = store.files_by_id(ctx.tx, request.namespace, sorted({one.file_id for one in shown}))
    definitions = [
        _definition(ctx, request.namespace, one, files[one.file_id].lines() if request.bodies else []) for one in shown
    ]
    return SymbolAnswer(
        found=bool(found),
        definitions=definitions,
        more=len(found) - len(shown),
        suggestions=[] if found else _suggestions(ctx, request),
        commit_id=repository.commit_id,
    )


def _definition(ctx: Context, namespace: str, held: Held, lines: list[str]) -> Definition:
    own = lines[held.start_line - 1 : held.end_line]
    body = "\n".join(own[:BODY_LINES_MAX])[:BODY_CHARACTERS_MAX]
    traced = graph.callers(ctx.tx, namespace, [held], 1, CALLERS_EACH)
    return Definition(
        **fields.shown(held, DOCSTRING_CHARACTERS_MAX).model_dump(),
        body=body,
        body_cut=len(body) < len("\n".join(own)),
        callers=fields.callers_shown(ctx.tx, namespace, list(traced.callers)),
    )


def _suggestions(ctx: Context, request: Named) -> list[SymbolShown]:
    quest = Quest(request.namespace, request.name, None, "", 0.0, SUGGESTIONS)
    return [fields.shown(hit.symbol) for hit in search.found(ctx.tx, quest)]


def callers(ctx: Context, request: CallersRequest) -> CallersAnswer:
    """Uses of a name."""
    found = wanted(ctx, request)[: graph.FRONTIER_MAX]
    traced = graph.callers(ctx.tx, request.namespace, found, request.depth, request.limit)
    return CallersAnswer(
        found=bool(found),
        of=[fields.shown(one) for one in found[:DEFINITIONS_MAX]],
        callers=fields.callers_shown(ctx.tx, request.namespace, list(traced.callers)),
        truncated=traced.cut,
    )


def read(ctx: Context, request: ReadRequest) -> ReadAnswer:
    """Lines of a file."""
    repository = fields.indexed(ctx.tx, request.namespace)
    if request.end_line and request.end_line < request.start_line:
        raise Rejected("end_line: is before start_line", field="end_line")
    path = request.path.removeprefix("./")
    file = store.file(ctx.tx, request.namespace, path)
    if file is None:
        like = store.like_named(ctx.tx, request.namespace, path, SUGGESTIONS)
        hint = f"did you mean {' or '.join(like)}?" if like else "code.search finds files by their words"
        raise NotFound(f"path: no such file is indexed; {hint}", field="path")
    lines = file.lines()
    asked = min(request.end_line or request.start_line + READ_LINES_DEFAULT - 1, len(lines))
    last = min(asked, request.start_line + READ_LINES_MAX - 1)
    own: list[str] = []
    length = 0
    for line in lines[request.start_line - 1 : last]:
        length += len(line) + 1
        if own and length > READ_CHARACTERS_MAX:
            break
        own.append(line)
    end = request.start_line + len(own) - 1
    return ReadAnswer(
        path=file.path,
        language=file.language,
        text="\n".join(own),
        start_line=request.start_line,
        end_line=end,
        total_lines=file.line_count,
        truncated=bool(request.end_line) and end < asked,
        broken=file.broken,
        commit_id=repository.commit_id,
    )


SYMBOL_OP = Op(
    name="code.symbol",
    summary="Look a definition up by name: where it is, its signature, documentation, source and callers.",
    takes=SymbolRequest,
    gives=SymbolAnswer,
    role=Role.VIEWER,
    kind=Kind.READ,
    run=symbol,
    example={"namespace": "project-x", "name": "Parser.parse"},
    raises=(NotFound,),
)

CALLERS_OP = Op(
    name="code.callers",
    summary="See who calls a function or class, up to three steps away; read it before you change a signature.",
    takes=CallersRequest,
    gives=CallersAnswer,
    role=Role.VIEWER,
    kind=Kind.READ,
    run=callers,
    example={"namespace": "project-x", "name": "Parser.parse", "depth": 2},
    raises=(NotFound,),
)

READ_OP = Op(
    name="code.read",
    summary="Read lines of an indexed file, as they were when it was indexed.",
    takes=ReadRequest,
    gives=ReadAnswer,
    role=Role.VIEWER,
    kind=Kind.READ,
    run=read,
    example={"namespace": "project-x", "path": "src/parser.py", "start_line": 1, "end_line": 80},
    raises=(NotFound,),
)

__all__ = ["CALLERS_OP", "READ_OP", "SYMBOL_OP", "Toolset"]
