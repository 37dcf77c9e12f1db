"""`loom code`, as a person types it."""

import json
from pathlib import Path

import pytest

from loom import compose
from loom.edges.cli import code
from loom.edges.cli.main import main

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOM_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("LOOM_EMBEDDER", "hashing")
    monkeypatch.delenv("LOOM_URL", raising=False)
    monkeypatch.chdir(tmp_path)


def run(*words: str) -> int:
    return main(["code", *words], compose.__name__)


def test_index_and_status(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "my app").mkdir()
    (tmp_path / "my app" / "a.py").write_text("def one(): pass\n")
    assert run("index", "my app", "--wait-vectors", "--json") == 0
    status = json.loads(capsys.readouterr().out)
    assert (status["state"], status["files_done"], status["symbols"], status["embedded"]) == ("ready", 1, 1, 1)
    assert run("status", "my app") == 0
    shown = capsys.readouterr().out
    assert "my-app" in shown
    assert "python 1 files, 1 lines" in shown


def test_what_cannot_be_indexed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("index", "nothing") == 1
    assert "no such folder" in capsys.readouterr().err
    assert run("index", f"file://{tmp_path}/nothing", "--json") == 1
    assert json.loads(capsys.readouterr().out)["state"] == "failed"


@pytest.mark.parametrize(
    ("source", "namespace"),
    [
        ("/srv/app", "app"),
        ("/srv/app/", "app"),
        ("https://git.example.com/acme/app.git", "app"),
        ("git@git.example.com:acme/app.git", "app"),
        ("/srv/my app (old)", "my-app-old"),
        ("", ""),
    ],
)
def test_the_namespace_is_named_as_the_repository(source: str, namespace: str) -> None:
    assert code.namespace_of(source) == namespace
