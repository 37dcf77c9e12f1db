"""Turns a field's type back into source text, for generated code."""

import types
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ForwardRef, Literal, Union, get_args, get_origin

from pydantic import JsonValue

from loom.canonical import Json

CONTAINERS: Mapping[object, str] = {list: "list", dict: "dict", tuple: "tuple", set: "set", frozenset: "frozenset"}
ABSTRACT: Mapping[object, str] = {Sequence: "Sequence", Mapping: "Mapping"}


class Source:
    """Source text of types, and the imports it needs.

    Attributes:
        imports: pairs of module and name.
    """

    def __init__(self) -> None:
        self.imports: set[tuple[str, str]] = set()

    def of(self, annotation: Any) -> str:
        """`annotation` as it would be written; TypeError when there is no way to write it."""
        origin, args = get_origin(annotation), get_args(annotation)
        if annotation == Json or annotation is JsonValue or isinstance(annotation, ForwardRef):
            text = self._named("loom.canonical", "Json")
        elif origin is Annotated:
            text = self.of(args[0])
        elif origin is Literal:
            text = f"{self._named('typing', 'Literal')}[{', '.join(_quoted(arg) for arg in args)}]"
        elif origin in (Union, types.UnionType):
            text = " | ".join(dict.fromkeys(self.of(arg) for arg in args))
        elif origin is not None:
            text = self._generic(origin, args)
        else:
            text = self._plain(annotation)
        return text

    def _plain(self, annotation: Any) -> str:
        if annotation is None or annotation is type(None):
            return "None"
        if annotation is Any:
            return "object"
        if not isinstance(annotation, type):
            raise TypeError(f"no source for the type {annotation!r}")
        if annotation.__module__ == "builtins":
            return annotation.__name__
        return self._named(annotation.__module__, annotation.__name__)

    def _generic(self, origin: Any, args: tuple[Any, ...]) -> str:
        if origin in ABSTRACT:
            name = self._named("collections.abc", ABSTRACT[origin])
        elif origin in CONTAINERS:
            name = CONTAINERS[origin]
        else:
            raise TypeError(f"no source for the type {origin!r}")
        return f"{name}[{', '.join('...' if arg is Ellipsis else self.of(arg) for arg in args)}]"

    def _named(self, module: str, name: str) -> str:
        self.imports.add((module, name))
        return name


def _quoted(value: object) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"' if isinstance(value, str) else repr(value)
