"""`loom knowledge add` over the local store and over a server."""

import json
from pathlib import Path

import pytest

from loom.edges.cli.main import main

Printed = pytest.CaptureFixture[str]


pytestmark = pytest.mark.usefixtures("own_home")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "docs"
    (made / "inner").mkdir(parents=True)
    (made / ".hidden").mkdir()
    (made / "guide.md").write_text("# Guide\n\nThe kettle is in the cupboard.\n", "utf-8")
    (made / "inner" / "tea.html").write_text("<h1>Tea</h1><p>Green tea from Uji.", "utf-8")
    (made / ".hidden" / "no.md").write_text("hidden", "utf-8")
    (made / "program.bin").write_bytes(bytes(100))
    return made


def loom(*argv: str) -> int:
    return main(argv, compose="loom.compose")


def added(capsys: Printed, *argv: str) -> dict[str, object]:
    capsys.readouterr()
    loom("knowledge", "add", *argv, "--json")
    return json.loads(capsys.readouterr().out)


def test_a_folder_is_added_once(folder: Path, capsys: Printed) -> None:
    assert added(capsys, str(folder)) == {"added": 2, "unchanged": 0, "pending": 0, "refused": []}
    (folder / "guide.md").write_text("# Guide\n\nThe kettle is broken.\n", "utf-8")
    assert added(capsys, str(folder)) == {"added": 1, "unchanged": 1, "pending": 0, "refused": []}
    loom("call", "knowledge.search", "--query", "kettle", "--top-k", "1", "--json")
    hit = json.loads(capsys.readouterr().out)["results"][0]
    assert (hit["uri"], hit["revision"]) == ((folder / "guide.md").as_uri(), 2)


def test_uris_can_begin_otherwise(folder: Path, capsys: Printed) -> None:
    added(capsys, str(folder), "--uri", "https://e.org/docs/", "--tag", "a", "--namespace", "n")
    added(capsys, str(folder / "guide.md"), "--uri", "one", "--title", "Only one", "--namespace", "n")
    loom("call", "knowledge.list", "--namespace", "n", "--json")
    items = {item["uri"]: (item["title"], item["tags"]) for item in json.loads(capsys.readouterr().out)["items"]}
    assert items == {
        "https://e.org/docs/guide.md": ("Guide", ["a"]),
        "https://e.org/docs/inner/tea.html": ("Tea", ["a"]),
        "one": ("Only one", []),
    }


def test_what_cannot_be_read_is_named_and_the_rest_is_added(folder: Path, capsys: Printed) -> None:
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7 nothing")
    (folder / "empty.md").touch()
    large = b"%PDF-1.7" + bytes(3_000_000)
    (folder / "large.pdf").write_bytes(large)
    assert loom("knowledge", "add", str(folder)) == 1
    said = capsys.readouterr()
    assert "2 added, 0 unchanged, 3 refused" in said.out
    for line in ("broken.pdf: broken.pdf is damaged", "empty.md: empty.md is empty", "large.pdf: large.pdf is damaged"):
        assert line in said.err


def test_a_large_file_is_sent_in_parts(folder: Path, capsys: Printed) -> None:
    (folder / "large.txt").write_text("The walrus sleeps. " * 150_000, "utf-8")
    answer = added(capsys, str(folder / "large.txt"))
    assert (answer["added"], answer["pending"]) == (1, 0)
    assert added(capsys, str(folder / "large.txt"))["unchanged"] == 1


@pytest.mark.parametrize(
    ("argv", "exit_code", "said"),
    [
        (["none.md"], 1, "none.md does not exist"),
        (["home-made"], 1, "home-made holds no document"),
        (["docs", "--title", "x"], 2, "--title names a single file"),
    ],
)
def test_a_misuse_is_one_line(folder: Path, capsys: Printed, argv: list[str], exit_code: int, said: str) -> None:
    (folder.parent / "home-made").mkdir()
    assert loom("knowledge", "add", *argv) == exit_code
    assert said in capsys.readouterr().err
