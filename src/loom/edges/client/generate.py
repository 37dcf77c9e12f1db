"""Writes the client's typed methods from the registry.

`make docs` runs it; a test checks that what is committed is what it writes.
For each plane there is a module of field types (`profile_fields`) and one of
methods (`profile`). The fields stand in a TypedDict, so that the blocking and the
other class share them.
"""

import keyword
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic.fields import FieldInfo

from loom.edges.client.annotations import Source
from loom.ops.registry import Registry
from loom.ops.spec import IDENTITY_FIELDS, AnyOp, Kind, plane_of

HEAD = "# Generated from the registry by `make docs`. Do not edit.\n"
LINES_MAX = 330
"""Lines of fields in one file before the next is begun; the formatter adds some."""
DOC_LENGTH_MAX = 96


@dataclass
class FieldsFile:
    """A module of TypedDicts being written."""

    module: str
    source: Source = field(default_factory=Source)
    blocks: list[str] = field(default_factory=list[str])

    @property
    def length(self) -> int:
        """Lines so far."""
        return sum(block.count("\n") for block in self.blocks)


def files(registry: Registry) -> Mapping[str, str]:
    """File name to content, for the folder `planes`. Not yet formatted."""
    by_plane: dict[str, list[AnyOp]] = {}
    for op in registry:
        by_plane.setdefault(plane_of(op), []).append(op)
    written: dict[str, str] = {"__init__.py": _index(registry, sorted(by_plane))}
    for plane, ops in by_plane.items():
        field_files = list(_field_files(plane, ops))
        for part in field_files:
            written[f"{part.module}.py"] = _fields_module(part, plane)
        places = {op.name: part.module for part, chunk in _assigned(field_files, ops) for op in chunk}
        written[f"{plane}.py"] = _methods_module(plane, ops, places)
    return written


def method_name(op: AnyOp) -> str:
    """The method for an operation: its name after the plane's, with `_` added to a Python keyword."""
    name = op.name.partition(".")[2].replace(".", "_")
    return name + "_" if keyword.iskeyword(name) else name


def _type_name(op: AnyOp) -> str:
    return "".join(word.capitalize() for word in op.name.replace(".", "_").split("_")) + "Fields"


def _field_files(plane: str, ops: Sequence[AnyOp]) -> Iterator[FieldsFile]:
    number, part = 1, FieldsFile(f"{plane}_fields")
    for op in ops:
        block = _fields_block(op, Source())
        if part.blocks and part.length + block.count("\n") > LINES_MAX:
            yield part
            number += 1
            part = FieldsFile(f"{plane}_fields_{number}")
        part.blocks.append(_fields_block(op, part.source))
    yield part


def _assigned(parts: Sequence[FieldsFile], ops: Sequence[AnyOp]) -> Iterator[tuple[FieldsFile, Sequence[AnyOp]]]:
    start = 0
    for part in parts:
        yield part, ops[start : start + len(part.blocks)]
        start += len(part.blocks)


def _fields_block(op: AnyOp, source: Source) -> str:
    lines = [f"class {_type_name(op)}(Identity):", f'    """What `{op.name}` takes."""', ""]
    own = {name: info for name, info in op.takes.model_fields.items() if name not in IDENTITY_FIELDS}
    for name, info in own.items():
        wrapper = "Required" if info.is_required() else "NotRequired"
        source.imports.add(("typing", wrapper))
        lines += [f"    {name}: {wrapper}[{source.of(info.annotation)}]", *_field_doc(info)]
    return "\n".join(lines) + "\n\n\n"


def _field_doc(info: FieldInfo) -> list[str]:
    text = " ".join((info.description or "").split()).replace("\\", "\\\\").replace('"', "'")
    if len(text) > DOC_LENGTH_MAX:
        text = text[: DOC_LENGTH_MAX - 3].rsplit(" ", 1)[0] + "..."
    return [f'    """{text}"""']


def _fields_module(part: FieldsFile, plane: str) -> str:
    part.source.imports.add(("loom.edges.client.core", "Identity"))
    head = f'{HEAD}"""Fields of the operations of `{plane}`."""\n\n'
    return head + _imports(part.source.imports) + "\n\n" + "".join(part.blocks)


def _methods_module(plane: str, ops: Sequence[AnyOp], places: Mapping[str, str]) -> str:
    imports = {("typing", "Unpack"), ("loom.edges.client.running", "AsyncRun"), ("loom.edges.client.running", "Run")}
    for op in ops:
        imports.add((op.gives.__module__, op.gives.__name__))
        imports.add((f"loom.edges.client.planes.{places[op.name]}", _type_name(op)))
    name = plane.capitalize()
    text = f'{HEAD}"""The operations of `{plane}` as methods."""\n\n' + _imports(imports)
    for prefix, run in (("", "Run"), ("Async", "AsyncRun")):
        how = "awaited" if prefix else "waiting for each answer"
        text += f'\n\nclass {prefix}{name}:\n    """The operations of `{plane}`, {how}."""\n\n'
        text += f"    def __init__(self, run: {run}) -> None:\n        self._run = run\n"
        for op in ops:
            text += _method(op, prefix)
    return text


def _method(op: AnyOp, prefix: str) -> str:
    define, wait = ("async def", "await ") if prefix else ("def", "")
    summary = " ".join(op.summary.split()).replace("\\", "\\\\").replace('"""', "'''")
    return (
        f"\n    {define} {method_name(op)}(self, **fields: Unpack[{_type_name(op)}]) -> {op.gives.__name__}:\n"
        f'        """{_wrapped(summary)}"""\n'
        f'        return {wait}self._run("{op.name}", {op.gives.__name__}, fields)\n'
    )


def _wrapped(text: str) -> str:
    """A summary of several sentences: the first, an empty line, the others folded."""
    first, dot, rest = text.partition(". ")
    if not dot:
        return text if text.endswith((".", "?", "!")) else text + "."
    lines: list[str] = []
    for word in rest.split():
        if lines and len(lines[-1]) + len(word) < DOC_LENGTH_MAX:
            lines[-1] += " " + word
        else:
            lines.append(" " * 8 + word)
    return f"{first}.\n\n" + "\n".join(lines) + "\n" + " " * 8


def _index(registry: Registry, planes: Sequence[str]) -> str:
    imports = {("loom.edges.client.running", "Run"), ("loom.edges.client.running", "AsyncRun")}
    imports.add(("loom.edges.client.core", "Repeats"))
    for plane in planes:
        module = f"loom.edges.client.planes.{plane}"
        imports |= {(module, plane.capitalize()), (module, "Async" + plane.capitalize())}
    reads = sorted(op.name for op in registry if op.kind is Kind.READ)
    secrets = sorted(op.name for op in registry if op.kind is not Kind.READ and not op.replayable)
    text = f'{HEAD}"""Every plane of the client, and what may be sent twice."""\n\n' + _imports(imports)
    text += f"\n\nREPEATS = Repeats(reads=frozenset({_set(reads)}), secrets=frozenset({_set(secrets)}))\n"
    for prefix, run in (("", "Run"), ("Async", "AsyncRun")):
        how = "awaited" if prefix else "waiting for each answer"
        text += (
            f'\n\nclass {prefix}Planes:\n    """Every plane, {how}."""\n\n    def __init__(self, run: {run}) -> None:\n'
        )
        text += "".join(f"        self.{plane} = {prefix}{plane.capitalize()}(run)\n" for plane in planes)
    return text


def _set(names: Sequence[str]) -> str:
    return "{" + ", ".join(f'"{name}"' for name in names) + "}" if names else ""


def _imports(names: set[tuple[str, str]]) -> str:
    by_module: dict[str, list[str]] = {}
    for module, name in sorted(names):
        by_module.setdefault(module, []).append(name)
    return "\n".join(f"from {module} import {', '.join(found)}" for module, found in by_module.items()) + "\n"
