"""The top of the command line: exit codes, one line for a failure, and nothing heavy for help."""

import subprocess
import sys
from collections.abc import Callable
from types import ModuleType

import pytest

from loom.edges.cli import main as cli
from loom.edges.cli.help import help_texts
from loom.edges.cli.main import COMMANDS, main
from loom.edges.cli.problem import Problem
from loom.errors import Denied

HEAVY = ("pydantic", "rich", "starlette", "uvicorn", "mcp", "numpy", "apsw", "httpx")


class Failing(ModuleType):
    """A command that fails as it is told."""

    def __init__(self, error: BaseException) -> None:
        super().__init__("failing")
        self.error = error

    def add(self, parser: object) -> None:
        del parser

    def run(self, args: object, compose: Callable[[], ModuleType]) -> int:
        del args, compose
        raise self.error


@pytest.mark.parametrize(
    ("error", "exit_code", "said"),
    [
        (Denied("needs the admin role"), 1, "loom: needs the admin role\n"),
        (Problem("the port is taken"), 1, "loom: the port is taken\n"),
        (Problem("wants a number", 2), 2, "loom: wants a number\n"),
        (KeyboardInterrupt(), 130, ""),
        (SystemExit(0), 0, ""),
    ],
)
def test_failures(
    error: BaseException,
    exit_code: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, "failing_command", Failing(error))
    monkeypatch.setitem(cli.COMMANDS, "fail", cli.Command("failing_command", "fails"))
    assert main(["fail"], compose="loom.compose") == exit_code
    assert capsys.readouterr().err == said


def test_an_unknown_command_is_misuse(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nope"], compose="loom.compose") == 2
    assert "invalid choice: 'nope'" in capsys.readouterr().err


def test_without_a_command_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([], compose="loom.compose") == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in COMMANDS)


def test_every_command_has_help() -> None:
    texts = help_texts()
    assert set(texts) >= {"loom", "loom token mint", *(f"loom {name}" for name in COMMANDS)}
    assert all(text.startswith(f"usage: {name} ") for name, text in texts.items())


def test_help_imports_nothing_heavy() -> None:
    program = (
        "import sys\nfrom loom.edges.cli.main import main\nmain(['--help'], 'loom.compose')\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=30)
    assert shown.stdout.splitlines()[-1] == "[]"
