"""Adding, importing and deleting issues."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tracker_kit import ISSUES, TRACE, WRITER, candidates, check, filled, found, of_session, of_user

from fakes import HTTP, Core
from loom.access import namespaces
from loom.access.caller import LOCAL
from loom.errors import Denied, LoomError, Rejected

GITHUB: dict[str, Any] = {
    "id": 99,
    "number": 7,
    "title": "Login fails after an update",
    "body": "It says 401.\n\nDuplicate of #3",
    "state": "closed",
    "labels": [{"id": 1, "name": "bug"}, {"name": "area: auth"}, "version: 2.1"],
    "created_at": "2026-01-31T09:30:00Z",
    "updated_at": "2026-02-01T09:30:00Z",
    "html_url": "https://github.com/Acme/App/issues/7",
    "url": "https://api.github.com/repos/Acme/App/issues/7",
    "user": {"login": "ada"},
}
GH: dict[str, Any] = {
    "number": 8,
    "title": "Crash on start",
    "body": "",
    "state": "OPEN",
    "labels": [{"id": "x", "name": "bug", "color": "red", "description": ""}],
    "createdAt": "2026-01-31T09:30:00Z",
    "updatedAt": "2026-01-31T09:30:00Z",
    "url": "https://github.com/acme/app/issues/8",
}
PULL: dict[str, Any] = {**GITHUB, "number": 9, "pull_request": {"url": "x"}}
GH_PULL: dict[str, Any] = {**GH, "number": 10, "url": "https://github.com/acme/app/pull/10"}


def imported(core: Core, *items: Any, **args: Any) -> dict[str, Any]:
    return core.call("tracker.import", items=list(items), **args)


def counts(answer: dict[str, Any]) -> tuple[int, int, int, int, int]:
    refused = len(answer["refused"])
    return answer["added"], answer["updated"], answer["unchanged"], answer["pull_requests"], refused


def test_an_issue_is_added_read_changed_and_left_alone(core: Core) -> None:
    added = core.call("tracker.add", **ISSUES[0], url="https://x.org/1", labels=["bug", "bug"], version="2.1.0")
    assert (added["number"], added["outcome"]) == (1, "added")
    assert added["frame_count"] == 4
    assert "degraded" not in added
    core.clock.step(hours=1)
    again = core.call("tracker.add", **ISSUES[0], url="https://x.org/1", labels=["bug"], version="2.1.0")
    assert (again["outcome"], again["issue_id"]) == ("unchanged", added["issue_id"])
    closed: dict[str, Any] = {**ISSUES[0], "state": "closed", "duplicate_of": 4}
    changed = core.call("tracker.add", **closed)
    assert (changed["outcome"], changed["issue_id"]) == ("updated", added["issue_id"])
    answer = core.call("tracker.get", number=1)
    assert answer["found"]
    assert answer["body"] == TRACE
    assert answer["frames"][0] == "client.close (client.java)"
    assert answer["exceptions"] == ["nullpointerexception"]
    issue = answer["issue"]
    assert (issue["state"], issue["duplicate_of"], issue["labels"], issue["url"]) == ("closed", 4, [], "")
    assert issue["created_at"] == "2026-03-01T12:00:00Z"
    assert issue["updated_at"] is None


def test_frames_that_are_given_stand_in_place_of_those_of_the_body(core: Core) -> None:
    answer = core.call("tracker.add", number=1, title="t", body=TRACE, frames=["Foo.bar (Foo.java:1)", "baz"])
    assert answer["frame_count"] == 2
    assert core.call("tracker.get", number=1)["frames"] == ["foo.bar (foo.java)", "baz"]
    with pytest.raises(Rejected) as raised:
        core.call("tracker.add", number=1, title="t", frames=["()"])
    assert raised.value.extras["field"] == "frames"


def test_an_issue_that_is_not_there_is_not_found(core: Core) -> None:
    assert core.call("tracker.get", number=1) == {
        "found": False,
        "issue": None,
        "body": "",
        "frames": [],
        "exceptions": [],
    }


def test_the_namespace_is_made_of_kind_tracker(core: Core) -> None:
    core.call("tracker.add", **ISSUES[0], namespace="bugs")
    with core.database.transaction("dev", write=False) as tx:
        space = namespaces.read(tx, "bugs")
    assert space is not None
    assert space.kind == "tracker"


def test_without_a_token_issues_are_kept_in_the_trackers_own_org(core: Core) -> None:
    core.dispatcher.call("tracker.add", LOCAL, HTTP, ISSUES[0])
    assert core.dispatcher.call("tracker.get", LOCAL, HTTP, {"number": 1})["found"]
    assert core.call("tracker.get", number=1, org="tracker")["found"]
    assert not core.call("tracker.get", number=1, org="dev")["found"]


def test_github_and_gh_are_read_and_pull_requests_left_out(core: Core) -> None:
    answer = imported(core, GITHUB, GH, PULL, GH_PULL)
    assert counts(answer) == (2, 0, 0, 2, 0)
    assert answer["repository"] == "acme/app"
    issue = core.call("tracker.get", number=7)["issue"]
    assert (issue["state"], issue["component"], issue["version"]) == ("closed", "auth", "2.1")
    assert issue["labels"] == ["bug", "area: auth", "version: 2.1"]
    assert (issue["duplicate_of"], issue["url"]) == (3, "https://github.com/Acme/App/issues/7")
    assert (issue["created_at"], issue["updated_at"]) == ("2026-01-31T09:30:00Z", "2026-02-01T09:30:00Z")
    assert core.call("tracker.get", number=8)["issue"]["state"] == "open"
    assert not core.call("tracker.get", number=9)["found"]


def test_an_import_twice_changes_nothing_and_embeds_nothing(core: Core) -> None:
    imported(core, GITHUB, GH)
    texts = core.embedder.texts
    assert counts(imported(core, GITHUB, GH)) == (0, 0, 2, 0, 0)
    assert core.embedder.texts == texts


def test_an_older_export_does_not_undo_a_newer_one(core: Core) -> None:
    imported(core, GITHUB)
    older = {**GITHUB, "title": "old", "updated_at": "2026-01-31T10:00:00Z"}
    assert counts(imported(core, older)) == (0, 0, 1, 0, 0)
    newer = {**GITHUB, "title": "Sign-in fails", "updated_at": "2026-02-02T10:00:00Z"}
    assert counts(imported(core, newer)) == (0, 1, 0, 0, 0)
    assert core.call("tracker.get", number=7)["issue"]["title"] == "Sign-in fails"


def test_what_does_not_fit_is_refused_by_itself(core: Core) -> None:
    items: list[Any] = [7, {}, {"number": 0, "title": "x"}, {**GH, "state": "odd"}, {**GH, "title": None}, GITHUB]
    answer = imported(core, *items)
    assert counts(answer) == (1, 0, 0, 0, 5)
    assert [one["item"] for one in answer["refused"]] == [0, 1, 2, 3, 4]
    assert all(one["code"] == "VALIDATION" for one in answer["refused"])
    assert "number" in answer["refused"][2]["reason"]
    assert "state" in answer["refused"][3]["reason"]


def test_what_github_allows_beyond_the_caps_is_cut(core: Core) -> None:
    big = {**GH, "title": "x" * 5000, "body": "y" * 300_000, "labels": [{"name": f"l{n}" * 200} for n in range(100)]}
    assert counts(imported(core, big)) == (1, 0, 0, 0, 0)
    issue = core.call("tracker.get", number=8)["issue"]
    assert (len(issue["title"]), len(issue["labels"])) == (1024, 64)


def test_an_import_binds_the_namespace_to_the_repository_once(core: Core) -> None:
    imported(core, GITHUB)
    other = {**GH, "url": "https://github.com/other/lib/issues/8"}
    assert imported(core, other)["repository"] == "acme/app"
    assert imported(core, GH, repository="git@github.com:Acme/Fork.git")["repository"] == "acme/fork"
    with core.database.transaction("dev", write=False) as tx:
        assert namespaces.of_repository(tx, "acme/fork", "tracker") == ["local"]


def test_addresses_of_two_repositories_bind_to_neither(core: Core) -> None:
    assert imported(core, GITHUB, {**GH, "url": "https://github.com/other/lib/issues/8"})["repository"] == ""


def test_a_large_import_embeds_later_and_is_found_by_words_at_once(core: Core) -> None:
    items = [{"number": n, "title": f"Defect {n}", "body": f"word{n}"} for n in range(1, 101)]
    answer = imported(core, *items)
    assert answer["embedding_later"]
    assert "degraded" not in answer
    assert found(core, "word77")[0] == 77
    assert core.drain() == 100
    hit = core.call("tracker.search", query="word77")["results"][0]
    assert hit["similarity"] is not None
    assert core.drain() == 0


def test_a_failing_embedder_is_no_failure(core: Core) -> None:
    core.embedder.off.set()
    assert core.call("tracker.add", **ISSUES[0])["degraded"] == ["embedder"]
    assert imported(core, GH)["degraded"] == ["embedder"]
    assert core.call("tracker.search", query="close")["degraded"] == ["embedder"]
    answer = check(core, "Client.close throws NullPointerException", TRACE)
    assert (answer["verdict"], answer["degraded"]) == ("duplicate", ["embedder"])
    core.embedder.off.clear()
    assert check(core, "Client.close fails")["degraded"] == ["embedder"]
    core.drain()
    assert check(core, "Client.close fails")["degraded"] == []


def test_a_changed_text_is_found_by_its_new_words_alone(core: Core) -> None:
    core.call("tracker.add", number=1, title="zebra crossing", body="zebra")
    core.call("tracker.add", number=1, title="quagga crossing", body="quagga")
    core.drain()
    assert found(core, "quagga") == [1]
    assert core.call("tracker.search", query="zebra")["results"][0]["issue"]["title"] == "quagga crossing"
    with core.database.transaction("dev", write=False) as tx:
        rows = tx.rows("SELECT name FROM tracker_trait WHERE org = :org")
    assert rows == []


def test_a_deleted_issue_is_gone_from_everywhere(core: Core) -> None:
    filled(core)
    assert core.call("tracker.delete", number=1) == {"number": 1, "deleted": True}
    assert core.call("tracker.delete", number=1) == {"number": 1, "deleted": False}
    core.drain()
    assert not core.call("tracker.get", number=1)["found"]
    assert 1 not in found(core, "Client.close throws NullPointerException", top_k=100)
    assert 1 not in candidates(check(core, "Client.close throws NullPointerException", TRACE, top_k=10))
    with core.database.transaction("dev", write=False) as tx:
        left = tx.row("SELECT count(*) AS names FROM tracker_trait WHERE org = :org AND kind = 'frame'")
    assert left == {"names": 0}


def test_many_writers_of_one_issue_lose_nothing(core: Core) -> None:
    start = threading.Barrier(8)

    def write(number: int) -> str:
        start.wait(60)
        return str(core.call("tracker.add", number=1, title=f"title {number}", body="b")["outcome"])

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(write, range(8)))
    assert sorted(outcomes) == ["added", *["updated"] * 7]
    with core.database.transaction("dev", write=False) as tx:
        assert tx.row("SELECT count(*) AS total FROM tracker_issue WHERE org = :org") == {"total": 1}


def test_users_have_issues_of_their_own_under_one_number(core: Core) -> None:
    core.call("tracker.add", number=1, title="everybody's", caller=WRITER)
    core.call("tracker.add", number=1, title="of ada", caller=of_user("ada"))
    assert core.call("tracker.get", number=1, caller=of_user("ada"))["issue"]["title"] == "of ada"
    assert core.call("tracker.get", number=1, caller=of_user("bob"))["issue"]["title"] == "everybody's"
    core.call("tracker.delete", number=1, caller=of_user("bob"))
    assert core.call("tracker.get", number=1, caller=of_user("ada"))["found"]


def test_a_session_does_not_write_over_another(core: Core) -> None:
    core.call("tracker.add", number=1, title="mine", caller=of_session("ada", "s1"))
    for op, args in (("tracker.add", {"title": "yours"}), ("tracker.delete", {})):
        with pytest.raises(Denied):
            core.call(op, number=1, caller=of_session("ada", "s2"), **args)
    answer = imported(core, {"number": 1, "title": "yours"}, caller=of_session("ada", "s2"))
    assert answer["refused"][0]["code"] == "DENIED"


@pytest.mark.parametrize(
    ("op", "field", "value"),
    [
        ("tracker.add", "number", 0),
        ("tracker.add", "number", 2**60),
        ("tracker.add", "number", "1"),
        ("tracker.add", "title", ""),
        ("tracker.add", "title", "x" * 1025),
        ("tracker.add", "body", "x" * 262_145),
        ("tracker.add", "state", "reopened"),
        ("tracker.add", "labels", ["x"] * 65),
        ("tracker.add", "created_at", "2026-01-01"),
        ("tracker.import", "items", []),
        ("tracker.import", "items", ["x"] * 501),
        ("tracker.import", "repository", "x" * 513),
        ("tracker.delete", "number", -1),
        ("tracker.search", "query", " \n"),
        ("tracker.search", "top_k", 101),
        ("tracker.search", "state", "shut"),
        ("tracker.duplicate_check", "title", "   "),
        ("tracker.duplicate_check", "top_k", 11),
        ("tracker.duplicate_check", "frames", ["x"] * 65),
        ("tracker.duplicate_check", "paths", [""]),
        ("tracker.duplicate_check", "as_of", "yesterday"),
    ],
)
def test_bad_input_names_its_field(core: Core, op: str, field: str, value: Any) -> None:
    base: dict[str, Any] = {
        "tracker.add": {"number": 1, "title": "t"},
        "tracker.import": {"items": [{"number": 1, "title": "t"}]},
        "tracker.delete": {"number": 1},
        "tracker.search": {"query": "x"},
        "tracker.duplicate_check": {"title": "t"},
    }[op]
    with pytest.raises(LoomError) as raised:
        core.call(op, **{**base, field: value})
    assert raised.value.status == 422
    assert str(raised.value.extras["field"]).split(".")[0] == field
