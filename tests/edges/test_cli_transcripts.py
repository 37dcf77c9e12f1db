"""`loom import claude-code|chatgpt|codex`: invented transcripts with every kind of line and block, broken ones too."""

import json
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from transcript_kit import CHATGPT, CLAUDE, CODEX, S1, event

from loom import compose, config
from loom.access.caller import LOCAL, Transport
from loom.edges.cli.main import main
from loom.edges.cli.transcripts import chatgpt, claude_code, codex, sending
from loom.edges.cli.transcripts.pieces import Broken, Piece, Place, Said
from loom.edges.cli.transcripts.sending import Outcome, Sender
from loom.errors import Rejected

Printed = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store of this test's own."""
    for name in config.Settings.model_fields:
        monkeypatch.delenv(f"LOOM_{name.upper()}", raising=False)
    monkeypatch.setenv("LOOM_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("LOOM_EMBEDDER", "hashing")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


def loom(*args: str) -> int:
    return main(list(args), "loom.compose")


def call(op: str, **args: object) -> dict[str, Any]:
    """An operation on the store that the command line wrote to."""
    app = compose.build(config.load())
    try:
        return app.dispatcher.call(op, LOCAL, Transport(), args)
    finally:
        app.close()


def write_lines(path: Path, lines: Sequence[object]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        for line in lines:
            text = line if isinstance(line, str) else json.dumps(line)
            file.write(text.encode("latin-1" if text.startswith("\xff") else "utf-8") + b"\n")
    return path


def said(pieces: Iterator[Piece]) -> list[Said]:
    return [piece for piece in pieces if isinstance(piece, Said)]


def broken(pieces: Iterator[Piece]) -> list[tuple[int, str]]:
    return [(piece.place.number, piece.reason) for piece in pieces if isinstance(piece, Broken)]


def nothing(_: int) -> None:
    pass


def test_every_kind_of_line_of_claude_code_is_read(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "p" / f"{S1}.jsonl", CLAUDE)
    found = said(claude_code.read(path, nothing))
    assert [(one.message["id"], one.message["role"]) for one in found] == [
        ("u1", "user"),
        ("u2", "assistant"),
        ("u3", "assistant"),
        ("u4", "assistant"),
        ("u5", "tool"),
        ("u6", "user"),
        ("u7", "system"),
        ("u8", "system"),
        ("u9", "system"),
        ("u11", "assistant"),
        ("u12", "user"),
        ("u14", "user"),
    ]
    assert {one.session for one in found} == {S1, f"{S1}/a1"}
    assert [one.title for one in found if one.title] == ["Counting okapis"]
    assert found[9].message["content"][0]["text"] == "Half \ufffd done, nul ."
    assert found[-1].message["time"] == "2026-01-05T09:00:00+00:00"
    assert broken(claude_code.read(path, nothing)) == [
        (8, "is not JSON"),
        (9, "is not UTF-8 text"),
        (10, "is not a JSON object"),
        (19, "has no message"),
    ]


def test_a_folder_of_projects_is_imported_and_a_second_run_adds_only_what_is_new(
    tmp_path: Path, capsys: Printed
) -> None:
    folder = tmp_path / "projects"
    path = write_lines(folder / "one" / f"{S1}.jsonl", CLAUDE)
    write_lines(folder / "two" / "other.jsonl", [event("v1", "user", "Something else", sessionId="s2")])
    assert loom("import", "claude-code", str(folder), "--json") == 1
    first = json.loads(capsys.readouterr().out)
    assert (first["files"], first["sessions"], first["imported"], first["unchanged"]) == (2, 3, 13, 0)
    assert [(one["file"], one["line"]) for one in first["refused"]] == [(path.name, n) for n in (8, 9, 10, 19)]
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(event("u20", "user", "One more thing")) + "\n")
    assert loom("import", "claude-code", str(path), "--json") == 1
    again = json.loads(capsys.readouterr().out)
    assert (again["imported"], again["unchanged"], again["conflicts"]) == (1, 12, 0)
    sessions = {one["session"]: one for one in call("conversation.list")["sessions"]}
    assert sessions[S1]["title"] == "Counting okapis"
    assert sessions[S1]["agent"] == "claude-code"
    hits = call("conversation.search", query="how many okapis")["results"]
    assert (hits[0]["message_id"], hits[0]["session"]) == ("u1", S1)
    tool = call("conversation.search", query="ledger.txt")["results"]
    assert "u4" in [hit["message_id"] for hit in tool]


def test_a_transcript_that_goes_on_another_one_brings_only_what_is_new(tmp_path: Path, capsys: Printed) -> None:
    old = [event("u1", "user", "one"), event("u2", "user", "two")]
    write_lines(tmp_path / "t" / "a.jsonl", old)
    copied = [{**line, "sessionId": "s2"} for line in old]
    write_lines(tmp_path / "t" / "b.jsonl", [*copied, event("u3", "user", "three", sessionId="s2")])
    assert loom("import", "claude-code", str(tmp_path / "t"), "--json") == 0
    assert json.loads(capsys.readouterr().out)["imported"] == 3


def test_the_branch_that_a_person_sees_of_a_chatgpt_conversation_is_read(tmp_path: Path) -> None:
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps(CHATGPT), "utf-8")
    pieces = list(chatgpt.read(path, nothing))
    found = {one.message["id"]: one for one in said(iter(pieces))}
    assert list(found) == ["n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8", "n9", "n10", "n11", "n12", "m1"]
    assert found["n1"].message["role"] == "system"
    assert found["n3"].message["content"] == [{"type": "thinking", "thinking": "s\npine"}]
    assert found["n4"].message["content"][0] == {"type": "tool_use", "name": "python", "input": {"code": "print(1)"}}
    assert found["n5"].message["content"][0]["type"] == "tool_result"
    assert found["n6"].message["content"] == [{"type": "tool_use", "name": "web", "input": "search query"}]
    assert found["n10"].message["content"] == "Lapsang souchong.\nIt is smoked over pine."
    assert [block["type"] for block in found["n11"].message["content"]] == ["image", "text", "text"]
    assert found["n12"].message["content"] == [{"type": "unheard_of", "gizmo": "g"}]
    assert found["n12"].message["time"] == "2023-11-14T22:13:20+00:00"
    assert found["n2"].title == "Teas of the world"
    assert broken(iter(pieces)) == [(3, "has no id or no messages")]


def test_a_zipped_export_is_imported_and_one_that_is_cut_off_brings_what_it_has(
    tmp_path: Path, capsys: Printed
) -> None:
    export = tmp_path / "export.zip"
    with zipfile.ZipFile(export, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("chat.html", "<html>")
        archive.writestr("conversations.json", json.dumps(CHATGPT[:2]))
    assert loom("import", "chatgpt", str(export), "--json", "--namespace", "teas") == 0
    assert json.loads(capsys.readouterr().out)["imported"] == 13
    assert call("conversation.list", namespace="teas")["total"] == 2
    cut = tmp_path / "conversations.json"
    cut.write_text(json.dumps(CHATGPT[:2])[:-40], "utf-8")
    assert loom("import", "chatgpt", str(cut), "--json", "--namespace", "teas") == 1
    again = json.loads(capsys.readouterr().out)
    assert (again["imported"], again["unchanged"]) == (0, 12)
    assert again["refused"] == [
        {"file": "conversations.json", "line": 2, "reason": "is not JSON, or cut off; what follows it was not read"}
    ]


@pytest.mark.parametrize("content", ["", "7", "{}", "[1, 2]", "null", "[", "not json"])
def test_what_is_no_export_says_so(tmp_path: Path, content: str, capsys: Printed) -> None:
    path = tmp_path / "conversations.json"
    path.write_text(content, "utf-8")
    code = loom("import", "chatgpt", str(path), "--json")
    answer = json.loads(capsys.readouterr().out)
    assert answer["imported"] == 0
    assert code == (1 if answer["refused"] else 0)
    assert bool(answer["refused"]) == (content != "[")


def test_a_zip_that_is_none_or_holds_no_export_is_a_clear_error(tmp_path: Path, capsys: Printed) -> None:
    export = tmp_path / "export.zip"
    with zipfile.ZipFile(export, "w") as archive:
        archive.writestr("other.json", "[]")
    assert loom("import", "chatgpt", str(export)) == 1
    assert "no conversations*.json" in capsys.readouterr().err


def test_every_kind_of_item_of_codex_is_read(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "rollout-2026-02-01T08-00-00-x.jsonl", CODEX)
    found = said(codex.read(path, nothing))
    assert {one.session for one in found} == {"codex-1"}
    assert [(one.message["role"], one.message["id"]) for one in found] == [
        ("developer", "line-4"),
        ("system", "line-5"),
        ("user", "line-6"),
        ("assistant", "line-8"),
        ("assistant", "line-10"),
        ("tool", "line-11"),
        ("assistant", "line-12"),
        ("tool", "line-13"),
        ("assistant", "line-14"),
        ("assistant", "line-15"),
        ("assistant", "line-19"),
        ("system", "line-20"),
    ]
    assert found[4].message["content"][0]["input"] == {"command": ["ls"]}
    assert broken(codex.read(path, nothing)) == [(18, "is not JSON")]


def test_a_codex_file_of_an_older_version_is_read(tmp_path: Path, capsys: Printed) -> None:
    lines: list[object] = [
        {"id": S1, "timestamp": "2025-06-01T08:00:00.000Z", "instructions": None},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello there"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello."}]},
    ]
    write_lines(tmp_path / "sessions" / "2025" / f"rollout-2025-{S1}.jsonl", lines)
    assert loom("import", "codex", str(tmp_path / "sessions")) == 0
    assert "2 messages imported, 0 unchanged, 0 refused, in 1 conversations" in capsys.readouterr().err
    turns = call("conversation.get", session=S1)["turns"]
    assert [turn["text"] for turn in turns] == ["Hello there", "Hello."]
    assert turns[0]["said_at"] == "2025-06-01T08:00:00Z"


def test_a_command_that_is_given_wrongly_says_how(tmp_path: Path, capsys: Printed) -> None:
    assert loom("import", "claude-code") == 2
    assert "loom import claude-code PATH" in capsys.readouterr().err
    assert loom("import", "memories.jsonl", str(tmp_path)) == 2
    assert "claude-code, chatgpt, codex" in capsys.readouterr().err
    assert loom("import", "codex", str(tmp_path / "nowhere")) == 1
    assert "no such file" in capsys.readouterr().err
    assert loom("import", "codex", str(tmp_path)) == 1
    assert "no rollout-*.jsonl" in capsys.readouterr().err


def test_a_message_that_is_too_long_is_shortened_and_told(tmp_path: Path, capsys: Printed) -> None:
    long = [
        event("u1", "user", "x" * 1_200_000),
        event("u2", "user", [{"type": "tool_result", "content": [{"type": "text", "text": "y" * 120_000}] * 9}]),
        event("u3", "user", [{"type": "tool_use", "input": [[7] * 10] * 50_000}]),
    ]
    assert loom("import", "claude-code", str(write_lines(tmp_path / "long.jsonl", long)), "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["imported"], answer["shortened"]) == (3, 3)


def test_a_refused_message_does_not_take_others_with_it() -> None:
    taken: list[str] = []

    def refusing(op: str, args: dict[str, Any]) -> dict[str, Any]:
        assert op == "conversation.append"
        ids = [message["id"] for message in args["messages"]]
        if "bad" in ids:
            raise Rejected("messages: not this one")
        taken.extend(ids)
        return {"appended": len(ids), "unchanged": 0}

    outcome = Outcome()
    ids = ["a", "b", "bad", "c", "d"]
    pieces = [Said(Place("f", n), "s", "", {"id": one, "content": "x"}) for n, one in enumerate(ids)]
    Sender(lambda op, args: refusing(op, dict(args)), {}, outcome).take(pieces)
    assert taken == ["a", "b", "c", "d"]
    assert [(one.place.number, one.reason) for one in outcome.refused] == [(2, "messages: not this one")]


def test_batches_stay_below_their_bounds() -> None:
    lengths: list[int] = []

    def kept(_: str, args: dict[str, Any]) -> dict[str, Any]:
        lengths.append(len(args["messages"]))
        assert sum(len(message["content"]) for message in args["messages"]) <= sending.BATCH_LENGTH_MAX
        return {"appended": len(args["messages"]), "unchanged": 0}

    outcome = Outcome()
    pieces = [Said(Place("f", n), "s", "", {"id": str(n), "content": "x" * (n % 7) * 10_000}) for n in range(300)]
    pieces += [Said(Place("f", n), "t", "", {"id": str(n), "content": "x"}) for n in range(1200)]
    Sender(lambda op, args: kept(op, dict(args)), {}, outcome).take(pieces)
    assert sum(lengths) == outcome.imported == 1500
    assert max(lengths) <= sending.MESSAGES_MAX
