"""`loom tracker import`: what files it reads, and what it tells."""

import json
from pathlib import Path

import pytest

from loom.edges.cli.main import main
from loom.edges.cli.problem import Problem
from loom.edges.cli.tracker import BATCH_ITEMS_MAX, batches, carried, items_of

Printed = pytest.CaptureFixture[str]
ISSUE: dict[str, object] = {
    "number": 7,
    "title": "It fails",
    "body": "\x00",
    "url": "https://github.com/acme/app/issues/7",
}
PULL: dict[str, object] = {"number": 8, "title": "A change", "pull_request": {}}


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOM_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("LOOM_EMBEDDER", "hashing")


def loom(*argv: str) -> int:
    return main(argv, "loom.compose")


@pytest.mark.parametrize(
    "text",
    [
        '[{"a": 1}, {"a": 2}]',
        '[{"a": 1}]\n[{"a": 2}]',
        '[{"a": 1}][{"a": 2}]',
        '{"a": 1}\n{"a": 2}\n',
        ' {"a": 1},{"a": 2}',
    ],
)
def test_the_shapes_of_an_export(text: str) -> None:
    assert list(items_of(text)) == [{"a": 1}, {"a": 2}]


def test_an_empty_file_has_no_issues() -> None:
    assert list(items_of("")) == []
    assert list(items_of(" \n ")) == []


@pytest.mark.parametrize("text", ["[{", "number,title\n1,x", "[" * 100_000, '{"a": 1}\n{"b"'])
def test_what_is_no_json_is_said_with_its_line(text: str) -> None:
    with pytest.raises(Problem, match="line"):
        list(items_of(text))


def test_calls_are_bounded_in_items_and_characters() -> None:
    few = list(batches([{"body": "x" * 400_000}] * 5))
    assert [len(batch) for batch in few] == [2, 2, 1]
    many = list(batches([{"n": n} for n in range(BATCH_ITEMS_MAX + 1)]))
    assert [len(batch) for batch in many] == [BATCH_ITEMS_MAX, 1]


def test_what_no_store_carries_is_replaced() -> None:
    assert carried({"a": ["x\x00", {"b": "\ud800y"}], "n": 1}) == {"a": ["x\ufffd", {"b": "\ufffdy"}], "n": 1}


def test_issues_are_imported_and_again_without_a_change(tmp_path: Path, capsys: Printed) -> None:
    file = tmp_path / "issues.json"
    file.write_text(json.dumps([ISSUE, PULL]), "utf-8")
    assert loom("tracker", "import", str(file), "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told == {
        "added": 1,
        "updated": 0,
        "unchanged": 0,
        "pull_requests": 1,
        "refused": [],
        "repository": "acme/app",
    }
    assert loom("tracker", "import", str(file)) == 0
    assert "0 added, 0 updated, 1 unchanged, 1 pull requests, 0 refused of acme/app" in capsys.readouterr().err
    assert loom("call", "tracker.get", "--number", "7", "--json") == 0
    assert json.loads(capsys.readouterr().out)["body"] == "\ufffd"


def test_refused_items_are_named_by_their_place(tmp_path: Path, capsys: Printed) -> None:
    file = tmp_path / "issues.json"
    file.write_text(json.dumps([PULL, {"number": 9}, ISSUE]), "utf-8")
    assert loom("tracker", "import", str(file), "--namespace", "bugs") == 1
    told = capsys.readouterr().err
    assert "item 2: title" in told
    assert "1 added" in told


def test_a_file_that_cannot_be_read_is_one_line(tmp_path: Path, capsys: Printed) -> None:
    assert loom("tracker", "import", str(tmp_path / "none.json")) == 1
    (tmp_path / "latin.json").write_bytes(b'["\xe9"]')
    assert loom("tracker", "import", str(tmp_path / "latin.json")) == 1
    assert capsys.readouterr().err.count("\n") == 2
