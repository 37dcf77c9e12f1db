"""`loom token` in process, over a whole server's store."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from loom import compose, config
from loom.access.caller import Transport
from loom.access.tokens import Authenticator
from loom.edges.cli.main import main
from writer_kit import Reply, scripted

Printed = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for field in config.Settings.model_fields:
        for name in config.env_names(field):
            monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LOOM_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


def loom(*argv: str) -> int:
    return main(argv, compose="loom.compose")


def minted_with(home: Path, token: str, name: str) -> str:
    """The id of a token that another one minted."""
    app = compose.build(config.Settings(home=home), embeds=False)
    try:
        authenticator = Authenticator(app.database, lambda: 1, loopback=True, note_use=lambda _id, _at: None)
        caller = authenticator.authenticate(f"Bearer {token}")
        sent = {"name": name, "role": "admin"}
        return str(app.dispatcher.call("token.mint", caller, Transport(), sent)["token_id"])
    finally:
        app.close()


def listed(capsys: Printed) -> Mapping[str, dict[str, Any]]:
    assert loom("token", "list", "--json") == 0
    return {one["name"]: one for one in json.loads(capsys.readouterr().out)["tokens"]}


def first(capsys: Printed) -> str:
    assert loom("token", "mint", "first", "--role", "admin") == 0
    return capsys.readouterr().out.strip()


def test_the_list_shows_who_minted_what(home: Path, capsys: Printed) -> None:
    token = first(capsys)
    minted_with(home, token, "second")
    tokens = listed(capsys)
    assert tokens["first"]["minted_by"] == "local"
    assert tokens["second"]["minted_by"] == tokens["first"]["token_id"]
    assert loom("token", "list") == 0
    heading, *rows = capsys.readouterr().out.splitlines()
    assert "minted by" in heading
    assert any(row.startswith(tokens["second"]["token_id"]) and token.split("_")[1] in row for row in rows)


def test_revoking_says_what_ended_with_it(home: Path, capsys: Printed) -> None:
    token = first(capsys)
    minted_with(home, token, "second")
    token_id = listed(capsys)["first"]["token_id"]
    assert loom("token", "revoke", token_id, "--keep-minted") == 0
    assert capsys.readouterr().out == "revoked\nstill good: 1 that it minted, itself or through others\n"
    tokens = listed(capsys)
    assert (tokens["first"]["revoked_at"] is None, tokens["second"]["revoked_at"] is None) == (False, True)
    assert loom("token", "revoke", token_id) == 0
    assert capsys.readouterr().out == "revoked\nrevoked with it: 1 that it minted, itself or through others\n"
    assert listed(capsys)["second"]["revoked_at"] is not None
    assert loom("token", "revoke", token_id, "--json") == 0
    assert json.loads(capsys.readouterr().out)["minted_revoked"] == 0


def test_a_server_of_an_older_release_says_nothing_of_what_it_minted(
    capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {"token_id": "0" * 12, "revoked_at": "2026-01-31T00:00:00Z"}
    with scripted(Reply(body=json.dumps(told).encode())) as server:
        monkeypatch.setenv("LOOM_URL", server.url.removesuffix("/v1"))
        assert loom("token", "revoke", "0" * 12) == 0
    assert [got.path for got in server.received] == ["/v1/token.revoke"]
    assert capsys.readouterr().out == "revoked\n"


def test_no_such_token_is_an_error(capsys: Printed) -> None:
    first(capsys)
    assert loom("token", "revoke", "0" * 12, "--keep-minted") == 1
    assert "no such token" in capsys.readouterr().err
    assert listed(capsys)["first"]["revoked_at"] is None
