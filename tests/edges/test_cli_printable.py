"""What is stored cannot command the terminal of who reads it."""

import json
import unicodedata
from collections.abc import Callable
from typing import Any

import pytest

from loom.edges.cli.output import show_answer, show_json, show_table
from loom.edges.cli.printable import printable

HOSTILE = "\x1b[31m|\x9b2J|\x1b]0;title\x07|\u202eright to left|\u2066|\x08\x7f\u2028"
HARMLESS = "中文\u3000Straße\u00a0x 👩\u200d👩\u200d👧 می\u200cم\tb\nc"


def unsafe(text: str) -> list[str]:
    """Characters that a terminal may obey."""
    shown = text.replace("\n", "").replace("\t", "")
    return [letter for letter in shown if unicodedata.category(letter) in ("Cc", "Cf", "Zl") and letter != "\u200d"]


ANSWERS: list[tuple[Callable[..., None], tuple[Any, ...]]] = [
    (show_answer, ({"value": HOSTILE},)),
    (show_answer, ({"value": {HOSTILE: {HOSTILE: 1}}},)),
    (show_answer, ({"value": [HOSTILE, {HOSTILE: 1}]},)),
    (show_answer, ({"value": [{HOSTILE: HOSTILE}]},)),
    (show_answer, ({"rows": [{name: [HOSTILE] for name in (HOSTILE, *"abcdefgh")}]},)),
    (show_answer, ({HOSTILE: [{"a": 1}]},)),
    (show_table, ([{HOSTILE: HOSTILE}], [HOSTILE])),
    (show_json, ({HOSTILE: [HOSTILE]},)),
]


@pytest.mark.parametrize(("show", "given"), ANSWERS)
def test_no_answer_reaches_the_terminal_as_it_is(
    capsys: pytest.CaptureFixture[str], show: Callable[..., None], given: tuple[Any, ...]
) -> None:
    show(*given)
    shown = capsys.readouterr().out
    assert "title" in shown
    assert unsafe(shown) == []


def test_json_for_programs_loses_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    answer = {HOSTILE: [HOSTILE, HARMLESS, "\U000e0001"]}
    show_json(answer)
    assert json.loads(capsys.readouterr().out) == answer


def test_what_is_harmless_is_shown_as_it_is() -> None:
    assert printable(HARMLESS) == HARMLESS
