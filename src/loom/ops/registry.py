"""The set of operations a server offers, checked once at start."""

import difflib
import re
from collections.abc import Iterable, Iterator

from pydantic import BaseModel

from loom.errors import UnknownOp
from loom.ops.spec import AnyOp, Audited, Kind, tool_name

NAME = re.compile(r"[a-z]+(\.[a-z][a-z_]*)+")
TOOL = re.compile(r"[a-z][a-z0-9_]{0,36}")
NAME_LENGTH_MAX = 64
"""Of a name that does not exist, what is compared with those that do."""

SUMMARY_LENGTH_MAX = 1024


class Registry:
    """Operations by name and by MCP tool name.

    Raises:
        ValueError: a name is malformed or taken, a field has no description,
            an example is not a valid input, or the audit is to keep what there is not.
    """

    def __init__(self, ops: Iterable[AnyOp]) -> None:
        self._by_name: dict[str, AnyOp] = {}
        self._by_tool: dict[str, AnyOp] = {}
        for op in sorted(ops, key=lambda op: op.name):
            self._check(op)
            self._by_name[op.name] = op
            self._by_tool[tool_name(op)] = op

    def __iter__(self) -> Iterator[AnyOp]:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)

    def named(self, name: str) -> AnyOp:
        """The operation called `name`; UnknownOp when there is none."""
        op = self.by_name(name)
        if op is None:
            raise self.unknown(name, "ops.capabilities")
        return op

    def unknown(self, name: str, index: str) -> UnknownOp:
        """The refusal of a name that no operation has, with the one that is nearly it; `index` lists them."""
        close = difflib.get_close_matches(name[:NAME_LENGTH_MAX], self._by_name, n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        return UnknownOp(f"no operation has this name; {hint}{index} lists them")

    def by_name(self, name: str) -> AnyOp | None:
        """The operation called `name`, or None."""
        return self._by_name.get(name)

    def by_tool(self, tool: str) -> AnyOp | None:
        """The operation behind an MCP tool name, listed or not."""
        return self._by_tool.get(tool)

    def _check(self, op: AnyOp) -> None:
        if not NAME.fullmatch(op.name):
            raise ValueError(f"{op.name!r} is not a dotted lower-case name")
        if not TOOL.fullmatch(tool_name(op)):
            raise ValueError(f"{op.name}: {tool_name(op)!r} does not suit every MCP client")
        if op.name in self._by_name or tool_name(op) in self._by_tool:
            raise ValueError(f"two operations are called {op.name} or {tool_name(op)}")
        if not op.summary or len(op.summary) > SUMMARY_LENGTH_MAX:
            raise ValueError(f"{op.name}: a summary of 1 to {SUMMARY_LENGTH_MAX} characters is needed")
        for model in (op.takes, op.gives):
            check_described(op.name, model)
        if op.audited is not None:
            _check_audited(op, op.audited)
        unknown = set(op.example) - set(op.takes.model_fields)
        missing = {name for name, info in op.takes.model_fields.items() if info.is_required()} - set(op.example)
        missing -= {"org", "namespace", "agent"}
        if unknown or missing:
            raise ValueError(f"{op.name}: the example has unknown {sorted(unknown)} or lacks {sorted(missing)}")


def _check_audited(op: AnyOp, audited: Audited) -> None:
    takes, gives = set(op.takes.model_fields), set(op.gives.model_fields)
    unknown = {*audited.about} - takes - gives | {*audited.outcome} - gives | {audited.namespace} - takes
    if op.kind is Kind.READ or unknown:
        raise ValueError(f"{op.name}: only writes are audited, by fields that they have; unknown: {sorted(unknown)}")


def check_described(op_name: str, model: type[BaseModel]) -> None:
    """ValueError unless every field of `model` has a description."""
    for field, info in model.model_fields.items():
        if not info.description:
            raise ValueError(f"{op_name}: {model.__name__}.{field} has no description")
