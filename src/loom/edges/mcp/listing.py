"""The registry as MCP tools: which are listed to whom, and how each is described."""

from collections.abc import Mapping, Sequence
from typing import Any

from mcp_types import Tool, ToolAnnotations

from loom.access.caller import Role
from loom.errors import UnknownOp
from loom.ops.registry import Registry
from loom.ops.schema import answer_schema, request_schema
from loom.ops.spec import AnyOp, Kind, Toolset, tool_name

ANY_TOOL = "loom_op"
HELP = "help"

INSTRUCTIONS = """\
Loom is a memory shared by every agent of this person or team: you find what others stored, they what you store.
1. At the start of a task read the profile (loom_profile_render), and search before you ask or guess (loom_search).
2. Store what a later session will need as soon as you learn it (loom_memory_set): one claim per memory, under a
readable key like shop/deploy; memory_type says whether it is a decision, a constraint, or how something is done.
What is stored and wrong, whoever stored it, correct through loom_op:
{"op": "memory.update", "args": {"memory_key": "shop/deploy", "value": "..."}}
3. What the user wants or likes goes into the profile, through loom_op:
{"op": "profile.append", "args": {"label": "preferences", "addition": "Likes small commits."}}
{"op": "profile.replace", "args": {"label": "preferences", "old": "small", "new": "tiny"}} corrects a part; add the
section's "agent" to args where the profile shows another than yours.
4. More hits of loom_memory_search: {"op": "memory.next_page", "args": {"page": "<its next_page>"}} through loom_op.
Leave identity arguments out: they are filled in. Results below their threshold are flagged; do not rely on them.
loom_op reaches every other operation (update, delete, history, pin...): {"op": "help"} lists them, and
{"op": "help", "args": {"op": "<name>"}} shows the fields of one."""

ANY_DESCRIPTION = (
    "Call any Loom operation by its name, also those that are not listed as tools: change the profile "
    "(profile.append, profile.replace), update, delete or restore a memory, read its history. The operation's own "
    'fields go inside args: op="memory.delete", args={"memory_key": "team/tea"}. op="help" lists the operations your '
    'role allows; op="help" with args={"op": "memory.set"} gives the input schema of one.'
)


def tools_of(registry: Registry, toolset: Toolset, role: Role) -> list[Tool]:
    """The tools that `toolset` lists to a caller of `role`, in the order of their names, `loom_op` last."""
    listed = [tool_of(op) for op in registry if toolset in op.toolsets and role >= op.role]
    return [*sorted(listed, key=lambda tool: tool.name), any_tool()]


def tool_of(op: AnyOp) -> Tool:
    """One operation as a tool."""
    return Tool(
        name=tool_name(op),
        title=title_of(op),
        description=f"{op.summary}\n\nNeeds the {op.role.word} role.",
        input_schema=request_schema(op, listed=True),
        output_schema=answer_schema(op),
        annotations=ToolAnnotations(
            title=title_of(op),
            read_only_hint=op.kind is Kind.READ,
            idempotent_hint=op.kind is not Kind.WRITE,
            destructive_hint=op.destructive,
            open_world_hint=False,
        ),
        _meta={"loom/op": op.name},
    )


def title_of(op: AnyOp) -> str:
    """The operation's name as words: `Profile set`."""
    return op.name.replace(".", " ").replace("_", " ").capitalize()


def any_tool() -> Tool:
    """The tool that reaches every operation."""
    return Tool(
        name=ANY_TOOL,
        title="Any operation",
        description=ANY_DESCRIPTION,
        input_schema={
            "type": "object",
            "properties": {
                "op": {"type": "string", "description": "The operation's name, like profile.append, or help."},
                "args": {"type": "object", "description": "The operation's fields, as an object.", "default": {}},
            },
            "required": ["op"],
        },
        output_schema={"type": "object"},
        annotations=ToolAnnotations(
            title="Any operation",
            read_only_hint=False,
            idempotent_hint=False,
            destructive_hint=True,
            open_world_hint=False,
        ),
        _meta={"loom/op": "*"},
    )


def help_for(registry: Registry, role: Role, args: Mapping[str, Any]) -> dict[str, Any]:
    """What `loom_op` answers to `help`: every operation within `role`, or one with its schema.

    Raises:
        UnknownOp: `args` names an operation that does not exist.
    """
    wanted = args.get("op")
    if isinstance(wanted, str) and wanted not in ("", "-", HELP):
        op = registry.by_tool(wanted) or registry.by_name(wanted)
        if op is None:
            raise unknown(registry, wanted)
        # Every identity field is shown, since one may have to be named; none is required, as they are filled in.
        shown = request_schema(op, listed=False) | {"required": _required(op)}
        return {**_line(op), "input_schema": shown, "example": dict(op.example)}
    return {"ops": [_line(op) for op in registry if role >= op.role]}


def unknown(registry: Registry, name: str) -> UnknownOp:
    """The refusal of a name; it points at `help`, which is a hundredth of what ops.capabilities answers."""
    return registry.unknown(name, 'loom_op with op="help"')


def _line(op: AnyOp) -> dict[str, Any]:
    return {
        "name": op.name,
        "summary": op.summary,
        "role": op.role.word,
        "kind": op.kind.value,
        "required": _required(op),
    }


def _required(op: AnyOp) -> Sequence[str]:
    required: Sequence[str] = request_schema(op, listed=True).get("required", [])
    return required
