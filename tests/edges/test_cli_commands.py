"""Commands in process, over a small server in memory."""

import json
import socket
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from cli_kit import SmallServer
from pydantic import SecretStr

from loom import compose, config
from loom.edges.cli import doctor, imports
from loom.edges.cli.launch import server_url
from loom.edges.cli.main import main
from loom.edges.cli.output import show_answer, show_table
from loom.edges.cli.problem import Problem
from loom.edges.cli.serve import bound, shown_url
from loom.edges.cli.shell import load_settings
from running import free_port
from writer_kit import KEY, writer_at

Printed = pytest.CaptureFixture[str]


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SmallServer]:
    for field in config.Settings.model_fields:
        for name in config.env_names(field):
            monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LOOM_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    small = SmallServer()
    monkeypatch.setitem(sys.modules, "small_server", small)
    yield small
    small.kit.pool.shutdown()


def loom(*argv: str) -> int:
    return main(argv, compose="small_server")


def test_call_writes_and_reads(server: SmallServer, capsys: Printed) -> None:
    assert loom("call", "note.set", "--key", "a", "--value", "tea", "--json") == 0
    made = json.loads(capsys.readouterr().out)
    assert (made["key"], made["who"]["org"]) == ("a", "dev")
    assert loom("call", "note.get", "--key", "a") == 0
    assert "tea" in capsys.readouterr().out
    assert server.closed == 2


def test_call_takes_whole_arguments_and_flags_win(server: SmallServer, capsys: Printed) -> None:
    assert loom("call", "--json", "--args", '{"key": "a", "value": "x"}', "note.set", "--value", "tea") == 0
    assert server.closed == 1
    capsys.readouterr()
    loom("call", "note.get", "--key", "a", "--json")
    assert json.loads(capsys.readouterr().out)["value"] == "tea"


def test_call_without_an_operation_lists_them(server: SmallServer, capsys: Printed) -> None:
    assert loom("call", "--json") == 0
    assert {row["operation"] for row in json.loads(capsys.readouterr().out)} == {op.name for op in server.all}


@pytest.mark.parametrize(
    ("argv", "exit_code", "said"),
    [
        (("call", "note.get", "--key", "none"), 1, "loom: key: no note has it; note.set makes one\n"),
        (("call", "note.gett"), 1, "loom: no operation has this name; did you mean note.get? "),
        (("call", "weather"), 1, "loom: no operation has this name; ops.capabilities lists them\n"),
        (("call", "note.set", "--key", "a"), 1, "loom: value: is required\n"),
        (("call", "--args", "[", "note.get"), 2, "loom: --args: is not JSON\n"),
        (("namespace", "delete", "team"), 2, "loom: this deletes namespace team"),
    ],
)
def test_a_failure_is_one_line(
    server: SmallServer, capsys: Printed, argv: tuple[str, ...], exit_code: int, said: str
) -> None:
    assert loom(*argv) == exit_code
    error = capsys.readouterr().err
    assert error.startswith(said)
    assert error.count("\n") == 1
    assert server.closed == len(server.settings)


@pytest.mark.parametrize("port", ["70000", "http", "-1", "", "9" * 5000])
def test_a_port_that_is_none_is_misuse(capsys: Printed, port: str) -> None:
    assert loom("serve", f"--port={port}") == 2
    assert "wants a port, 0 to 65535" in capsys.readouterr().err


@pytest.mark.usefixtures("server")
def test_a_home_that_cannot_be_is_named(capsys: Printed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "small_server", compose)
    home = Path("a file")
    home.write_text("")
    monkeypatch.setenv("LOOM_HOME", str(home))
    assert loom("token", "list") == 1
    assert f"The home folder is {home.absolute()} (LOOM_HOME)." in capsys.readouterr().err


@pytest.mark.usefixtures("server")
def test_a_bridge_without_a_home_is_one_line(capsys: Printed, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Path("a file")
    home.write_text("")
    monkeypatch.setenv("LOOM_HOME", str(home / "below"))
    monkeypatch.setenv("LOOM_PORT", str(free_port()))
    assert loom("mcp") == 1
    assert capsys.readouterr().err.startswith(f"loom: the home folder {(home / 'below').absolute()} (LOOM_HOME) cannot")


def test_an_answer_shows_what_it_holds(capsys: Printed) -> None:
    show_answer({"name": "a", "note": "", "next": None, "tags": [], "on": False, "count": 0})
    assert capsys.readouterr().out.split() == ["name", "a", "on", "false", "count", "0"]
    show_answer({"items": []})
    assert capsys.readouterr().out == "nothing\n"
    show_table([{"at": "2026-01-02T03:04:05.678901Z", "tags": ["a", "b"]}], ("at", "tags"))
    assert "2026-01-02 03:04:05Z  a, b" in capsys.readouterr().out


def test_a_bad_setting_is_misuse(server: SmallServer, capsys: Printed) -> None:
    Path("loom.toml").write_text("prot = 1\n")
    assert loom("call", "note.get", "--key", "a") == 2
    assert "unknown setting 'prot'" in capsys.readouterr().err
    assert server.settings == []


def test_stored_control_characters_do_not_reach_the_terminal(server: SmallServer, capsys: Printed) -> None:
    loom("call", "note.set", "--key", "a", "--value", "red \x1b[31m")
    capsys.readouterr()
    loom("call", "note.get", "--key", "a")
    assert "\x1b" not in capsys.readouterr().out
    assert server.closed == 2


def test_an_export_is_imported_again(server: SmallServer, tmp_path: Path, capsys: Printed) -> None:
    server.store.lines = [{"key": f"k{number}", "value": "grün"} for number in range(5)]
    target = tmp_path / "all.jsonl"
    assert loom("export", str(target), "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"exported": 5}
    assert [json.loads(line) for line in target.read_text("utf-8").splitlines()] == server.store.lines
    server.store.lines = server.store.lines[:2]
    assert loom("import", str(target), "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"imported": 3, "unchanged": 2, "refused": []}


def test_refused_lines_are_named_by_number(server: SmallServer, tmp_path: Path, capsys: Printed) -> None:
    source = tmp_path / "some.jsonl"
    source.write_text('{"key": "a"}\n\nnot json\n{"other": 1}\n[1]\n{"key": "b"}\n')
    assert loom("import", str(source), "--json") == 1
    assert json.loads(capsys.readouterr().out) == {
        "imported": 2,
        "unchanged": 0,
        "refused": [
            {"line": 3, "reason": "is not a JSON object"},
            {"line": 4, "reason": "key: missing"},
            {"line": 5, "reason": "is not a JSON object"},
        ],
    }
    assert [line["key"] for line in server.store.lines] == ["a", "b"]


def test_a_batch_has_few_lines_and_few_characters() -> None:
    lengths = [1] * 501 + [imports.BATCH_LENGTH_MAX + 5] + [imports.BATCH_LENGTH_MAX // 2] * 3
    lines = [imports.Line(number, {}, length) for number, length in enumerate(lengths, start=1)]
    found = [[line.number for line in batch] for batch in imports.batches(lines)]
    assert [len(batch) for batch in found] == [500, 1, 1, 2, 1]
    assert [number for batch in found for number in batch] == [line.number for line in lines]


def test_a_failed_export_leaves_the_old_file(server: SmallServer, tmp_path: Path, capsys: Printed) -> None:
    server.store.lines = [{"key": "a"}]
    target = tmp_path / "all.jsonl"
    target.write_text("old")
    server.kit.database.failing = True
    assert loom("export", str(target)) == 1
    assert "the disk is full" in capsys.readouterr().err
    assert (target.read_text(), list(tmp_path.glob("*.unfinished"))) == ("old", [])


def test_an_export_of_no_namespace_leaves_the_old_file(server: SmallServer, tmp_path: Path, capsys: Printed) -> None:
    server.store.lines = []
    target = tmp_path / "all.jsonl"
    target.write_text("old")
    assert loom("export", str(target), "--namespace", "shpo") == 1
    assert "there is no namespace of this name" in capsys.readouterr().err
    assert target.read_text() == "old"


def test_an_open_address_needs_a_token(server: SmallServer, capsys: Printed) -> None:
    assert loom("serve", "--host", "0.0.0.0", "--port", "0") == 1  # noqa: S104  # refused, which is the point
    assert "loom token mint" in capsys.readouterr().err
    assert server.closed == 1


def test_a_taken_port_is_one_line(server: SmallServer, capsys: Printed) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert loom("serve", "--port", str(port)) == 1
    assert capsys.readouterr().err.startswith(f"loom: port {port} on 127.0.0.1 is taken")
    assert server.settings == []


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(Problem, match=r"cannot listen on 192\.0\.2\.1"):
        bound("192.0.2.1", 0)
    with pytest.raises(Problem, match="not an address"):
        bound("no such host", 0)


def test_addresses() -> None:
    assert [config.is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "10.0.0.1")] == [  # noqa: S104
        True,
        True,
        True,
        False,
        False,
    ]
    with bound("127.0.0.1", 0) as listener:
        assert shown_url(listener) == f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_where_the_server_of_the_settings_is(server: SmallServer) -> None:
    assert server_url(load_settings()) == "http://127.0.0.1:7777"
    assert server_url(load_settings(host="0.0.0.0", port=9)) == "http://127.0.0.1:9"  # noqa: S104  # not bound
    assert server_url(load_settings(host="::1", port=9)) == "http://[::1]:9"
    assert server_url(load_settings(url="http://there/")) == "http://there"
    assert server.closed == 0


def test_the_doctor_says_what_is_wrong(server: SmallServer, capsys: Printed, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    monkeypatch.setenv("LOOM_PORT", str(port))
    loom("doctor", "--json")
    checks = {each["check"]: each for each in json.loads(capsys.readouterr().out)["checks"]}
    looked = {"python", "disk", "port", "store", "model", "embedding", "language model", "tokens", "git", "versions"}
    assert set(checks) == looked
    assert all(checks[name]["ok"] for name in ("python", "port", "store", "model", "tokens"))
    assert checks["language model"] == {
        "check": "language model",
        "ok": True,
        "found": "none is configured; no text leaves this server",
    }
    with socket.create_server(("127.0.0.1", port)):
        assert loom("doctor", "--json") == 1
    checks = {each["check"]: each for each in json.loads(capsys.readouterr().out)["checks"]}
    assert not checks["port"]["ok"]
    assert server.closed == 2


@pytest.mark.parametrize(
    ("script", "ok", "says"),
    [
        ("echo git version 2.39.5", True, "2.39"),
        ("echo git version 2.36.1", False, "2.36; for tokens no https address"),
        ("echo some other program", False, "does not say its version; for tokens no https address"),
        ("exit 1", False, "does not say its version; for tokens no https address"),
        (None, True, "not installed"),
    ],
)
def test_the_doctor_knows_a_git_that_is_too_old_for_tokens(
    tmp_path: Path, script: str | None, ok: bool, says: str
) -> None:
    if script is not None:
        (tmp_path / "git").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "git").chmod(0o755)
    finding = doctor.code({"PATH": str(tmp_path)}, guarded=True)
    assert (finding.check, finding.ok) == ("git", ok)
    assert finding.found.startswith(says)
    assert ("2.37 or later" in finding.found) == (not ok)
    assert doctor.code({"PATH": str(tmp_path)}, guarded=False) == replace(finding, ok=True)


@pytest.mark.parametrize(
    ("url", "warns"),
    [("https://llm.example/v1", False), ("http://127.0.0.1:9/v1", False), ("http://llm.example/v1", True)],
)
def test_the_doctor_says_where_text_would_go(url: str, warns: bool) -> None:
    finding = doctor.writer(writer_at(url))
    assert finding.ok
    assert finding.found.startswith(f"memories and messages go to scripted at {url}")
    assert ("unencrypted" in finding.found) == warns
    assert KEY not in finding.found


@pytest.mark.parametrize(
    ("url", "warns"),
    [("https://e.example/v1", False), ("http://127.0.0.1:9/v1", False), ("http://e.example/v1", True)],
)
def test_the_doctor_says_where_texts_become_vectors(url: str, warns: bool) -> None:
    settings = config.Settings(
        embedder="openai", embedder_url=url, embedder_model="scripted", embedder_api_key=SecretStr(KEY)
    )
    finding = doctor.sent(settings)
    assert finding.ok
    assert finding.found.startswith(f"every text and question goes to scripted at {url}")
    assert ("unencrypted" in finding.found) == warns
    assert KEY not in finding.found
    assert "no text leaves it" in doctor.sent(settings.model_copy(update={"embedder": "builtin"})).found


@pytest.mark.parametrize(
    ("argv", "shown"),
    [
        (("claude",), "claude mcp add --transport http --scope user loom http://127.0.0.1:7777/mcp\n"),
        (("codex", "--url", "http://there"), "codex mcp add loom --url http://there/mcp\n"),
        (
            ("codex", "--token"),
            "codex mcp add loom --url http://127.0.0.1:7777/mcp --bearer-token-env-var LOOM_TOKEN\n",
        ),
    ],
)
def test_connect_prints_a_command(server: SmallServer, capsys: Printed, argv: tuple[str, ...], shown: str) -> None:
    assert loom("connect", *argv) == 0
    assert capsys.readouterr().out == shown
    assert server.settings == []


def test_connect_prints_a_file_without_the_token(
    server: SmallServer, capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOOM_TOKEN", "hush")
    assert loom("connect", "vscode", "--token") == 0
    said = capsys.readouterr()
    assert (said.err, "hush" in said.out) == ("in .vscode/mcp.json:\n", False)
    entry = json.loads(said.out)["servers"]["loom"]
    assert (entry["type"], entry["url"]) == ("http", "http://127.0.0.1:7777/mcp")
    assert loom("connect", "cursor", "--stdio", "--url", "http://there") == 0
    entry = json.loads(capsys.readouterr().out)["mcpServers"]["loom"]
    assert entry["args"] == ["mcp", "--url", "http://there"]
    assert server.settings == []


@pytest.mark.parametrize("active", [True, False])
@pytest.mark.usefixtures("server")
def test_a_bridge_in_an_environment_is_named_in_full(
    tmp_path: Path, capsys: Printed, monkeypatch: pytest.MonkeyPatch, active: bool
) -> None:
    inside = tmp_path / "an environment"
    inside.mkdir()
    program = inside / "loom"
    program.write_text("")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(inside / "python"))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setenv("PATH", str(inside) if active else "")
    assert loom("connect", "claude", "--stdio") == 0
    assert capsys.readouterr().out == f"claude mcp add --scope user loom -- '{program}' mcp\n"


@pytest.mark.usefixtures("server")
def test_a_bridge_on_the_path_is_named_alone(tmp_path: Path, capsys: Printed, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "loom"
    program.write_text("")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert loom("connect", "codex", "--stdio") == 0
    assert capsys.readouterr().out == "codex mcp add loom -- loom mcp\n"


def test_a_url_without_a_scheme_is_misuse(server: SmallServer, capsys: Printed) -> None:
    assert loom("call", "note.get", "--key", "a", "--url", "there:7777") == 2
    assert "must begin with http://" in capsys.readouterr().err
    assert server.settings == []


def test_version(server: SmallServer, capsys: Printed) -> None:
    assert loom("version", "--json") == 0
    assert {"loom", "python", "apsw"} <= set(json.loads(capsys.readouterr().out))
    assert server.settings == []
