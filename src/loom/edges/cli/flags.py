"""Flags made from an operation's input, and the arguments read back from them."""

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from loom.edges.cli.problem import MISUSED, Problem
from loom.ops import schema
from loom.ops.spec import IDENTITY_FIELDS, NONE, AnyOp

FILE_LENGTH_MAX = 64 * 1024 * 1024
TRUE_WORDS = ("true", "yes", "1")
FALSE_WORDS = ("false", "no", "0")
COMMAND_FLAGS = frozenset({"url", "json", "args", "help"})
"""Flags of `loom call` itself, which no field's flag may take."""

ANYTHING = frozenset({"any"})
BOOLEAN = frozenset({"boolean"})

Schema = Mapping[str, Any]


def add_flags(parser: argparse.ArgumentParser, op: AnyOp) -> None:
    """A flag for each field of what `op` takes, with its description; also spelled as the field, for who knows that."""
    whole = schema.request_schema(op, listed=False)
    required = set(schema.request_schema(op, listed=True).get("required", ()))
    for name, part in whole["properties"].items():
        kinds = kinds_of(part, whole.get("$defs", {}))
        default = f" (default {json.dumps(part['default'], ensure_ascii=False)})" if part.get("default") else ""
        said = part.get("description", "") + (" (required)" if name in required else default)
        spelled = (flag_of(name),) if name in COMMAND_FLAGS else (flag_of(name), "--" + name)
        for flag in dict.fromkeys(spelled):
            parser.add_argument(
                flag,
                dest="field_" + name,
                action="append",
                nargs="?" if kinds == BOOLEAN else None,
                const="true" if kinds == BOOLEAN else None,
                metavar=_metavar(kinds),
                help=said.replace("%", "%%") if flag == flag_of(name) else argparse.SUPPRESS,
            )


def flag_of(name: str) -> str:
    """A field's flag: `--memory-key` for `memory_key`, and `--field-url` where the command has a flag of its own."""
    return ("--field-" if name in COMMAND_FLAGS else "--") + name.replace("_", "-")


def arguments(op: AnyOp, given: argparse.Namespace) -> dict[str, Any]:
    """The arguments that the flags stand for; fields without a flag are left out.

    Raises:
        Problem: a flag that is not a list was given twice, or a value does not parse.
    """
    whole = schema.request_schema(op, listed=False)
    found: dict[str, Any] = {}
    for name, part in whole["properties"].items():
        texts = getattr(given, "field_" + name)
        if texts is not None:
            if name in IDENTITY_FIELDS and texts == [NONE]:
                found[name] = NONE  # none, and not standard input
            else:
                found[name] = _value(flag_of(name), texts, kinds_of(part, whole.get("$defs", {})), part)
    return found


def kinds_of(part: Schema, defs: Schema) -> frozenset[str]:
    """The JSON types that a schema admits, null left out; `any` when it admits everything."""
    if "$ref" in part:
        name = str(part["$ref"]).rpartition("/")[2]
        # A definition is followed once, so that a recursive one ends; there it may be anything.
        rest = {other: found for other, found in defs.items() if other != name}
        return kinds_of(defs[name], rest) if name in defs else ANYTHING
    options = part.get("anyOf") or part.get("oneOf")
    if options:
        return frozenset[str]().union(*(kinds_of(option, defs) for option in options)) or ANYTHING
    if "enum" in part or "const" in part:
        return frozenset({"string"})
    kind = part.get("type")
    if kind is None:
        return ANYTHING
    return frozenset([kind] if isinstance(kind, str) else kind) - {"null"}


def _value(flag: str, texts: list[str], kinds: frozenset[str], part: Schema) -> Any:
    values = [_read(flag, text) for text in texts]
    if "array" in kinds and not (len(values) == 1 and values[0].lstrip().startswith("[")):
        return [_one(flag, value, _item_kinds(part)) for value in values]
    if len(values) > 1:
        raise Problem(f"{flag}: given twice, and it is not a list", MISUSED)
    return _one(flag, values[0], kinds)


def _item_kinds(part: Schema) -> frozenset[str]:
    options: list[Schema] = [part, *part.get("anyOf", [])]
    return next((kinds_of(option["items"], {}) for option in options if "items" in option), ANYTHING)


def _one(flag: str, text: str, kinds: frozenset[str]) -> Any:
    """A text as the first of the types it can be: a text stays one wherever a text is admitted."""
    if kinds & {"any", "object", "array"}:
        return _json_or_text(flag, text, text_too=bool(kinds & {"any", "string"}))
    if "string" in kinds:
        return text
    if kinds & {"integer", "number"}:
        return _number(flag, text, whole="number" not in kinds)
    if text.lower() in TRUE_WORDS + FALSE_WORDS:
        return text.lower() in TRUE_WORDS
    raise Problem(f"{flag}: wants true or false", MISUSED)


def _json_or_text(flag: str, text: str, *, text_too: bool) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        if text_too:
            return text
        raise Problem(f"{flag}: wants JSON", MISUSED) from None


def _number(flag: str, text: str, *, whole: bool) -> int | float:
    try:
        return int(text) if whole or text.lstrip("+-").isdigit() else float(text)
    except ValueError:
        raise Problem(f"{flag}: wants a {'whole ' if whole else ''}number", MISUSED) from None


def _read(flag: str, text: str) -> str:
    """A flag's text; `@file` is the file's content, `-` standard input, `@@` a text that begins with `@`."""
    if text.startswith("@@"):
        return text[1:]
    try:
        if text == "-":
            return _bounded(flag, sys.stdin.read(FILE_LENGTH_MAX + 1))
        if text.startswith("@"):
            with Path(text[1:]).open(encoding="utf-8") as file:
                return _bounded(flag, file.read(FILE_LENGTH_MAX + 1))
    except OSError as error:
        raise Problem(f"{flag}: cannot read {text[1:]}: {error.strerror}", MISUSED) from None
    except UnicodeDecodeError:
        raise Problem(f"{flag}: what it names is not UTF-8 text", MISUSED) from None
    return text


def _bounded(flag: str, text: str) -> str:
    if len(text) > FILE_LENGTH_MAX:
        raise Problem(f"{flag}: longer than {FILE_LENGTH_MAX} characters", MISUSED)
    return text


def _metavar(kinds: frozenset[str]) -> str:
    for kind, word in (("any", "JSON"), ("object", "JSON"), ("array", "ITEM"), ("string", "TEXT")):
        if kind in kinds:
            return word
    return "NUMBER" if kinds & {"integer", "number"} else "BOOL"


def as_args(given: object) -> dict[str, Any]:
    """A JSON object given whole; Problem when it is none."""
    if not isinstance(given, dict):
        raise Problem("the arguments must be a JSON object", MISUSED)
    return cast("dict[str, Any]", given)
