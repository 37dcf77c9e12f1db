"""What forms do, and what is not done for whoever cannot show one of ours."""

from typing import Any

import pytest
from dashboard_kit import Browser, call

from loom import compose

ONE = {"key": "team/tea", "by": "claude"}
ACT = "/memories/act"


@pytest.fixture
def tea(app: compose.App) -> compose.App:
    for value in ("green", "black"):
        call(app, "memory.set", memory_key="team/tea", value=value)
    return app


def state(app: compose.App, key: str = "team/tea") -> dict[str, Any]:
    return call(app, "memory.get", memory_key=key)


@pytest.mark.parametrize(
    ("form", "headers", "code"),
    [
        ({"csrf": ""}, {}, "DENIED"),
        ({"csrf": "0" * 64}, {}, "DENIED"),
        ({"csrf": "\u00e9"}, {}, "DENIED"),
        ({}, {"origin": "http://evil.example"}, "WRONG_ORIGIN"),
        ({}, {"origin": "http://127.0.0.1:1"}, "WRONG_ORIGIN"),
        ({}, {"origin": "null"}, "WRONG_ORIGIN"),
        ({}, {"sec-fetch-site": "cross-site"}, "WRONG_ORIGIN"),
        ({}, {"sec-fetch-site": "same-site"}, "WRONG_ORIGIN"),
    ],
)
def test_a_form_that_is_not_ours_does_nothing(
    tea: compose.App, browser: Browser, form: dict[str, str], headers: dict[str, str], code: str
) -> None:
    answer = browser.send(ACT, {"act": "delete", **form}, headers, **ONE)
    assert answer.status_code == 403
    assert code in answer.text
    assert state(tea)["found"]


def test_a_form_without_a_cookie_or_with_anothers_does_nothing(tea: compose.App, browser: Browser) -> None:
    other = Browser(tea)
    mark = other.csrf
    assert browser.http.post(ACT, params=ONE, data={"act": "delete", "csrf": mark}).status_code == 403
    bare = Browser(tea)
    assert bare.http.post(ACT, params=ONE, data={"act": "delete", "csrf": mark}).status_code == 403
    assert state(tea)["found"]


def test_a_form_of_our_own_page_is_let_through(tea: compose.App, browser: Browser) -> None:
    headers = {"origin": "http://127.0.0.1:7777", "sec-fetch-site": "same-origin"}
    answer = browser.send(ACT, {"act": "pin"}, headers, **ONE)
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/memories/one?key=team")
    assert "Pinned." in browser.page(answer.headers["location"])
    assert state(tea)["pinned"]


def test_a_memory_is_guarded_and_taken_away_and_brought_back(tea: compose.App, browser: Browser) -> None:
    def do(**form: str) -> int:
        return browser.send(ACT, form, **ONE).status_code

    assert do(act="pin") == 303
    assert do(act="delete") == 409
    assert do(act="unpin") == 303
    assert do(act="lock", mode="no_delete", reason="agreed") == 303
    assert state(tea)["lock_reason"] == "agreed"
    refused = browser.send(ACT, {"act": "delete"}, **ONE)
    assert (refused.status_code, "Locked" in refused.text) == (423, True)
    assert do(act="unlock") == 303
    assert do(act="expiry", days="7") == 303
    assert state(tea)["expires_at"]
    assert do(act="expiry", days="soon") == 422
    assert do(act="expiry", days="") == 303
    assert state(tea)["expires_at"] is None
    assert do(act="delete") == 303
    assert not state(tea)["found"]
    assert "Restore" in browser.page("/memories/one", **ONE)
    assert do(act="restore") == 303
    assert state(tea)["value"] == "black"
    versions = call(tea, "memory.history", memory_key="team/tea")["versions"]
    oldest = versions[-1]["version_text"]
    assert do(act="erase", version=oldest) == 303
    assert do(act="redact") == 303
    assert state(tea)["status"] == "redacted"
    assert "erased for good" in browser.page("/memories/one", **ONE)
    assert do(act="restore") == 404
    assert do(act="nonsense") == 422


def test_the_row_that_is_shown_is_the_row_that_is_changed(app: compose.App, browser: Browser) -> None:
    call(app, "memory.set", memory_key="same", value="a")
    call(app, "memory.set", memory_key="same", value="b", agent="codex", user_id="ada")
    assert browser.send(ACT, {"act": "delete"}, key="same", by="codex", about="ada").status_code == 303
    listed = call(app, "memory.list")["items"]
    assert [(item["agent"], item["user_id"]) for item in listed] == [("claude", "-")]


def test_a_memory_is_written_and_written_again(app: compose.App, browser: Browser) -> None:
    form = {"key": "new", "value": "one\r\ntwo", "type": "decision", "tags": "a, b"}
    assert browser.send("/memories/edit", form).status_code == 303
    kept = call(app, "memory.get", memory_key="new")
    assert (kept["value"], kept["memory_type"], kept["tags"], kept["agent"]) == (
        "one\ntwo",
        "decision",
        ["a", "b"],
        "-",
    )
    form |= {"sha256": kept["content_sha256"], "value": '{"x": 1}', "json": "1"}
    assert browser.send("/memories/edit", form).status_code == 303
    assert call(app, "memory.get", memory_key="new")["value"] == {"x": 1}
    late = browser.send("/memories/edit", form | {"value": "{broken"})
    assert (late.status_code, "this is not JSON" in late.text, "{broken" in late.text) == (422, True, True)
    late = browser.send("/memories/edit", form | {"value": '"mine"'})
    assert late.status_code == 409
    assert "What is stored now" in late.text
    assert "mine" in late.text


def test_what_a_form_does_not_show_stays_as_it_was(app: compose.App, browser: Browser) -> None:
    known: dict[str, Any] = {
        "confidence": 0.5,
        "ttl_seconds": 86_400,
        "valid_at": "2026-01-01T00:00:00Z",
        "source_trace": "a talk",
    }
    call(app, "memory.set", memory_key="sure", value="x", **known)
    before = call(app, "memory.get", memory_key="sure")
    form = {"key": "sure", "value": "y", "type": "semantic", "tags": "", "sha256": before["content_sha256"]}
    assert browser.send("/memories/edit", form, by="claude").status_code == 303
    after = call(app, "memory.get", memory_key="sure")
    assert after["value"] == "y"
    kept = ("confidence", "expires_at", "valid_at", "source_trace", "agent")
    assert {name: after[name] for name in kept} == {name: before[name] for name in kept}


def test_a_new_memory_takes_no_others_place(app: compose.App, browser: Browser) -> None:
    call(app, "memory.set", memory_key="taken", value="x")
    answer = browser.send("/memories/edit", {"key": "taken", "value": "mine"})
    assert (answer.status_code, "mine" in answer.text) == (409, True)
    assert call(app, "memory.get", memory_key="taken")["value"] == "x"


def test_versions_are_compared(tea: compose.App, browser: Browser) -> None:
    versions = [one["version_text"] for one in call(tea, "memory.history", memory_key="team/tea")["versions"]]
    text = browser.page("/memories/one", **ONE, old=versions[1], new=versions[0])
    assert "removed: " in text
    assert "added: " in text
    assert browser.get("/memories/one", **ONE, old="1", new=versions[0]).status_code == 404


def test_a_section_is_written_over_what_was_read_alone(app: compose.App, browser: Browser) -> None:
    call(app, "profile.set", label="goals", value="ship")
    sha256 = call(app, "memory.get", memory_key="goals")["content_sha256"]
    where = {"label": "goals", "by": "claude"}
    form = {"value": "ship it", "char_limit": "100", "sha256": sha256}
    assert browser.send("/profile/section", form, **where).status_code == 303
    late = browser.send("/profile/section", form | {"value": "mine\nalone"}, **where)
    assert late.status_code == 409
    assert "Stored now" in late.text
    assert "ship it" in late.text
    assert "mine\nalone" in late.text
    assert call(app, "memory.get", memory_key="goals")["value"] == "ship it"
    fresh = late.text.split('name="sha256" value="')[1].split('"')[0]
    assert browser.send("/profile/section", form | {"value": "mine", "sha256": fresh}, **where).status_code == 303
    assert call(app, "memory.get", memory_key="goals")["value"] == "mine"


def test_a_section_that_is_too_long_keeps_what_was_written(app: compose.App, browser: Browser) -> None:
    form = {"label": "goals", "value": "x" * 50, "char_limit": "10", "sha256": ""}
    answer = browser.send("/profile/section", form)
    assert (answer.status_code, "x" * 50 in answer.text) == (422, True)
    assert browser.send("/profile/section", form | {"char_limit": "many"}).status_code == 422
    assert browser.send("/profile/section", form | {"char_limit": "100"}).status_code == 303
    assert browser.send("/profile/delete", {}, label="goals", by="-").status_code == 303
    assert "Restore" in browser.page("/profile/section", label="goals", by="-")
    assert browser.send("/profile/restore", {}, label="goals", by="-").status_code == 303
    assert call(app, "profile.render")["labels"] == ["goals"]


def test_a_file_comes_in_parts(app: compose.App, browser: Browser) -> None:
    mark = {"x-loom-csrf": browser.csrf, "content-type": "application/octet-stream"}
    first = browser.http.post("/knowledge/part", content=b"# Guide\n\nTea ", params={"part": "0"}, headers=mark)
    upload = first.json()["upload_id"]
    more = {"part": "1", "upload_id": upload}
    assert browser.http.post("/knowledge/part", content=b"at four.", params=more, headers=mark).status_code == 200
    made = browser.send("/knowledge/finish", {"upload_id": upload, "file_name": "guide.md"}).json()
    assert (made["uri"], made["revision"]) == ("guide.md", 1)
    assert "Tea at four." in browser.page("/knowledge/document", id=made["document_id"])
    assert browser.http.post("/knowledge/part", content=b"x", params={"part": "0"}).status_code == 403
    refused = browser.send("/knowledge/finish", {"upload_id": "none", "file_name": "x"})
    assert (refused.status_code, refused.json()["detail"]["code"]) == (422, "VALIDATION")
    assert browser.send("/knowledge/delete", {}, id=made["document_id"]).status_code == 303
    assert call(app, "knowledge.list")["items"] == []


def test_a_text_is_pasted_and_a_conversation_deleted(app: compose.App, browser: Browser) -> None:
    answer = browser.send("/knowledge/add", {"title": "Note", "text": "Tea.", "uri": "note", "tags": "a"})
    assert answer.status_code == 303
    assert call(app, "knowledge.list")["items"][0]["title"] == "Note"
    assert browser.send("/knowledge/add", {"title": "Note", "text": ""}).status_code == 422
    call(app, "conversation.append", session="s", messages=[{"role": "user", "content": "hello"}])
    assert browser.send("/conversations/delete", {}, session="s").status_code == 303
    assert call(app, "conversation.list")["sessions"] == []


def test_namespaces_are_made_described_and_deleted(app: compose.App, browser: Browser) -> None:
    assert browser.send("/access/create", {"name": "x", "kind": "knowledge"}).status_code == 303
    assert browser.send("/access/create", {"name": "x", "kind": "knowledge"}).status_code == 409
    assert browser.send("/access/describe", {"name": "x", "description": "for tea"}).status_code == 303
    assert call(app, "namespace.list")["namespaces"][0]["description"] == "for tea"
    assert browser.send("/access/delete", {"name": "x", "confirm": "y"}).status_code == 422
    assert browser.send("/access/delete", {"name": "x", "confirm": "x"}).status_code == 303
    assert call(app, "namespace.list")["namespaces"] == []


def test_a_repository_that_cannot_be_read_in_is_refused_in_place(browser: Browser) -> None:
    refused = browser.send("/code/index", {"namespace": "c", "source": "ftp://nowhere"})
    assert refused.status_code == 422
    assert "Read a repository in" in refused.text
