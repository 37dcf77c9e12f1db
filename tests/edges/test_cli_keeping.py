"""`loom backup`, `restore`, `export` and `import` over the local store, and what commands finish before they end."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from loom.edges.cli.main import main

Printed = pytest.CaptureFixture[str]
Asked = Callable[..., dict[str, object]]
LONG = "\n".join(f"Line {number} about kettles and spouts, and about nothing else." for number in range(5_000))


pytestmark = pytest.mark.usefixtures("own_home")


def loom(*argv: str) -> int:
    return main(argv, compose="loom.compose")


@pytest.fixture
def asked(capsys: Printed) -> Asked:
    def ask(*argv: str, exit_code: int = 0) -> dict[str, object]:
        capsys.readouterr()
        assert loom(*argv, "--json") == exit_code
        return json.loads(capsys.readouterr().out)

    return ask


def test_a_backup_is_restored_elsewhere(asked: Asked, tmp_path: Path, capsys: Printed) -> None:
    asked("call", "memory.set", "--memory-key", "k", "--value", "tea")
    token = asked("call", "token.mint", "--name", "t", "--role", "admin")["token"]
    assert asked("backup", "copy")["files"] == 2
    assert loom("backup", "copy") == 1
    assert "not empty" in capsys.readouterr().err
    assert loom("restore", "copy") == 1
    assert "holds a store already" in capsys.readouterr().err
    other = str(tmp_path / "other")
    assert asked("restore", "copy", "--home", other)["files"] == 2
    assert loom("restore", "none", "--home", str(tmp_path / "third")) == 1
    assert "no backup of Loom" in capsys.readouterr().err
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOOM_HOME", other)
        assert asked("call", "memory.get", "--memory-key", "k")["value"] == "tea"
        tokens = asked("call", "token.list")["tokens"]
        assert isinstance(tokens, list)
        assert len(tokens) == 1  # pyright: ignore[reportUnknownArgumentType]  # JSON
    assert str(token) not in (tmp_path / "copy" / "manifest.json").read_text()


def test_a_store_in_postgresql_is_backed_up_by_its_own_tools(capsys: Printed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOM_DATABASE_URL", "postgresql://nobody@localhost:1/none")
    for words in (("backup", "copy"), ("restore", "copy")):
        assert loom(*words) == 1
        error = capsys.readouterr().err
        assert "pg_dump" in error
        assert "docs/guides/postgres.md" in error
    assert not Path("copy").exists()


def test_a_long_document_is_whole_when_the_command_ends(asked: Asked, tmp_path: Path, capsys: Printed) -> None:
    (tmp_path / "long.txt").write_text(LONG)
    assert asked("knowledge", "add", "long.txt")["pending"] == 0
    [shown] = asked("call", "knowledge.list")["items"]  # type: ignore[misc]  # JSON
    assert shown["state"] == "ready"
    (tmp_path / "more.txt").write_text(LONG + "\nmore")
    capsys.readouterr()
    assert loom("knowledge", "add", "more.txt", "--later") == 0
    printed = capsys.readouterr()
    assert "1 jobs of indexing are left; a running server or `loom worker` does them" in printed.err
    assert "1 to be indexed while the server runs" in printed.out


def test_what_planes_keep_in_their_own_orgs_goes_where_it_is_asked_for(asked: Asked, tmp_path: Path) -> None:
    asked("call", "memory.set", "--memory-key", "k", "--value", "tea")
    asked("call", "tracker.add", "--namespace", "bugs", "--number", "1", "--title", "Kettle fails", "--field-url", "u")
    count = asked("export", "all.jsonl")["exported"]
    lines = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text("utf-8").splitlines()]
    assert len(lines) == count
    assert [line["kind"] for line in lines] == ["namespace", "memory", "org", "namespace", "issue"]
    assert lines[2] == {"kind": "org", "plane": "tracker"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOOM_HOME", str(tmp_path / "other"))
        patch.setenv("LOOM_TRACKER_ORG", "issues")
        assert asked("import", "all.jsonl")["imported"] == 4
        assert asked("import", "all.jsonl") == {"imported": 0, "unchanged": 4, "refused": []}
        shown = asked("call", "tracker.get", "--org", "issues", "--namespace", "bugs", "--number", "1")
        assert "Kettle fails" in json.dumps(shown)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOOM_HOME", str(tmp_path / "third"))
        assert asked("import", "all.jsonl", "--org", "team")["imported"] == 4
        shown = asked("call", "tracker.get", "--org", "team", "--namespace", "bugs", "--number", "1")
        assert "Kettle fails" in json.dumps(shown)
        assert asked("call", "memory.get", "--org", "team", "--memory-key", "k")["value"] == "tea"
        assert asked("namespace", "list")["namespaces"] == []


def test_a_namespace_is_bound_from_the_command_line(asked: Asked) -> None:
    asked("call", "tracker.add", "--namespace", "bugs", "--number", "1", "--title", "Kettle fails")
    words = ("--org", "code", "--repository", "acme/app", "--tracker", "bugs")
    made = asked("namespace", "create", "app", "--kind", "code", *words)
    assert (made["repository"], made["tracker"]) == ("acme/app", "bugs")
    changed = asked("namespace", "update", "app", "--org", "code", "--repository", "")
    assert (changed["repository"], changed["tracker"]) == ("", "")
