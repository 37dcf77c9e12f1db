"""Flags made from an operation's fields, and what they read."""

import argparse
import io
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field, JsonValue

from loom.access.caller import Role
from loom.edges.cli.flags import add_flags, arguments
from loom.edges.cli.problem import Problem
from loom.ops.spec import Answer, Context, Kind, Op, OpenRequest


class Everything(OpenRequest):
    """A field of each kind."""

    text: Annotated[str, Field(description="A text, 100% of it.")] = ""
    value: Annotated[JsonValue, Field(description="Any JSON.")] = None
    count: Annotated[int | None, Field(description="A whole number.")] = None
    share: Annotated[float, Field(description="A number.")] = 0.5
    loud: Annotated[bool, Field(description="Yes or no.")] = False
    tags: Annotated[list[str] | None, Field(description="Words.")] = None
    numbers: Annotated[tuple[int, ...], Field(description="Numbers.")] = ()
    rows: Annotated[list[dict[str, str]], Field(description="Objects.", default_factory=list)]
    mode: Annotated[Literal["a", "b"], Field(description="A word.")] = "a"


def run(ctx: Context, request: Everything) -> Answer:
    del ctx, request
    return Answer()


OP = Op("test.all", "Takes everything.", Everything, Answer, Role.VIEWER, Kind.READ, run, {})


def read(*flags: str) -> dict[str, Any]:
    parser = argparse.ArgumentParser()
    add_flags(parser, OP)
    return arguments(OP, parser.parse_args(flags))


@pytest.mark.parametrize(
    ("flags", "found"),
    [
        ((), {}),
        (("--text", "7"), {"text": "7"}),
        (("--text=-5",), {"text": "-5"}),
        (("--value", "7"), {"value": 7}),
        (("--value", '{"a": [1]}'), {"value": {"a": [1]}}),
        (("--value", "green tea"), {"value": "green tea"}),
        (("--value", '"7"'), {"value": "7"}),
        (("--count", "7"), {"count": 7}),
        (("--share", "0.25"), {"share": 0.25}),
        (("--loud",), {"loud": True}),
        (("--loud", "no"), {"loud": False}),
        (("--tags", "a", "--tags", "b c"), {"tags": ["a", "b c"]}),
        (("--tags", '["a", "b"]'), {"tags": ["a", "b"]}),
        (("--numbers", "1", "--numbers", "2"), {"numbers": [1, 2]}),
        (("--rows", '{"a": "b"}'), {"rows": [{"a": "b"}]}),
        (("--mode", "b", "--user-id", "ann"), {"mode": "b", "user_id": "ann"}),
        (("--text", "@@home"), {"text": "@home"}),
        (("--user_id", "ann"), {"user_id": "ann"}),
        (("--agent", "-", "--user-id", "-"), {"agent": "-", "user_id": "-"}),
    ],
)
def test_flags_become_json(flags: tuple[str, ...], found: dict[str, Any]) -> None:
    assert read(*flags) == found


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--count", "seven"), "--count: wants a whole number"),
        (("--share", "much"), "--share: wants a number"),
        (("--loud", "maybe"), "--loud: wants true or false"),
        (("--rows", "{"), "--rows: wants JSON"),
        (("--text", "a", "--text", "b"), "--text: given twice"),
        (("--text", "@nowhere.txt"), "--text: cannot read nowhere.txt"),
    ],
)
def test_misuse_names_the_flag(flags: tuple[str, ...], message: str) -> None:
    with pytest.raises(Problem) as caught:
        read(*flags)
    assert message in caught.value.message
    assert caught.value.exit_code == 2


def test_a_file_and_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "note.txt").write_text("grün\n", "utf-8")
    monkeypatch.setattr(sys, "stdin", io.StringIO("piped"))
    assert read("--text", f"@{tmp_path}/note.txt", "--value", "-") == {"text": "grün\n", "value": "piped"}


def test_help_shows_descriptions_and_defaults() -> None:
    parser = argparse.ArgumentParser()
    add_flags(parser, OP)
    shown = " ".join(parser.format_help().split())
    assert "A text, 100% of it." in shown
    assert "A number. (default 0.5)" in shown
