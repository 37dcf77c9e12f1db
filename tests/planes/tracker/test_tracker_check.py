"""Searching issues, and the verdict on a new report."""

from typing import Any

import pytest
from tracker_kit import TRACE, candidates, check, filled, found

from fakes import Core
from loom.errors import Rejected

OTHER_LINES = TRACE.replace(":123", ":140").replace(":77", ":81").replace(":829", ":1583")


@pytest.fixture
def full(core: Core) -> Core:
    return filled(core)


def test_issues_are_found_by_words_trace_number_and_script(full: Core) -> None:
    assert found(full, "grey contrast")[0] == 2
    assert found(full, "Pool.evict(Pool.java:3)")[0] == 1
    assert found(full, "what is #4 about")[0] == 4
    assert found(full, "csv_writer.py")[0] == 5
    assert found(full, "\u767b\u5f55\u5d29\u6e83")[0] == 6


@pytest.mark.parametrize("query", ['"', "NOT", "a-b", "(", "*", "' OR 1=1 --", "\u0301", "AND OR NEAR(", "%_"])
def test_a_query_is_data(full: Core, query: str) -> None:
    full.call("tracker.search", query=query)
    check(full, query)


def test_a_search_is_narrowed_by_state_component_and_time(full: Core) -> None:
    full.call(
        "tracker.add", number=1, title="Client.close throws NullPointerException", component="net", state="closed"
    )
    assert 1 not in found(full, "Client.close", state="open", top_k=100)
    assert found(full, "Client.close", state="closed") == [1]
    assert found(full, "contrast", component="ui") == [2]
    assert found(full, "contrast", as_of="2020-01-01T00:00:00Z") == []


def test_the_same_defect_in_other_words_is_a_duplicate(full: Core) -> None:
    answer = check(full, "NPE when the pool shuts down", OTHER_LINES)
    assert answer["verdict"] == "duplicate"
    best = answer["candidates"][0]
    assert (best["issue"]["number"], best["verdict"]) == (1, "duplicate")
    assert best["evidence"]["frames"] == 1.0
    assert best["shared"]["frames"][0] == "client.close (client.java)"
    assert best["shared"]["exceptions"] == ["nullpointerexception"]
    assert answer["confidence"] == best["score"]
    assert answer["compared"] == 6


def test_the_same_text_is_a_duplicate(full: Core) -> None:
    answer = check(full, "Dark mode has low contrast", "The grey on black cannot be read.")
    assert (answer["verdict"], candidates(answer)[0]) == ("duplicate", 2)


def test_another_defect_is_new(full: Core) -> None:
    answer = check(full, "Printing on A3 paper cuts the margins", "Landscape only, with the large font.")
    assert answer["verdict"] == "new"
    assert answer["candidates"][0]["score"] < 0.1 if answer["candidates"] else True


def test_a_stack_that_differs_is_no_duplicate_for_its_exception(full: Core) -> None:
    stack = "\tat org.acme.ui.Theme.load(Theme.java:3)\n\tat org.acme.ui.Main.run(Main.java:9)"
    body = f"java.lang.NullPointerException\n{stack}"
    answer = check(full, "Theme cannot be loaded", body)
    assert answer["verdict"] != "duplicate"


def test_a_sibling_of_an_issue_is_no_duplicate(full: Core) -> None:
    assert check(full, "Upgrade the parser to 3.5.0", "The new release is smaller.")["verdict"] != "duplicate"


def test_nothing_to_compare_with_is_new(core: Core) -> None:
    answer = check(core, "Client.close throws NullPointerException", TRACE)
    assert (answer["verdict"], answer["confidence"], answer["candidates"], answer["compared"]) == ("new", 0.0, [], 0)


def test_a_reports_own_issue_is_left_out(full: Core) -> None:
    answer = check(full, "Client.close throws NullPointerException", TRACE, number=1, top_k=10)
    assert 1 not in candidates(answer)
    assert answer["verdict"] != "duplicate"
    assert answer["compared"] == 5


def test_later_issues_are_left_out(core: Core) -> None:
    core.call("tracker.add", number=1, title="Crash on start", created_at="2026-01-01T00:00:00Z")
    core.call("tracker.add", number=2, title="Crash on start", created_at="2026-02-01T00:00:00Z")
    assert candidates(check(core, "Crash on start", as_of="2026-01-15T00:00:00Z")) == [1]
    assert candidates(check(core, "Crash on start", as_of="2026-02-01T00:00:00Z")) == [1, 2]
    assert check(core, "Crash on start", as_of="2025-01-01T00:00:00Z")["verdict"] == "new"


def score_of(core: Core, number: int, **args: Any) -> float:
    answer = check(core, "The connection is closed", top_k=10, **args)
    return next(one["score"] for one in answer["candidates"] if one["issue"]["number"] == number)


@pytest.mark.parametrize(
    ("kind", "same", "other"),
    [
        ("component", "net", "ui"),
        ("version", "v2.1.0", "9"),
        ("paths", ["x/src/net/Client.java"], ["doc/readme.md"]),
        ("symbols", ["Client.reopen"], ["Theme.load"]),
        ("mentions", ["#1"], ["#2"]),
        ("frames", ["Client.close (Client.java)"], ["Theme.load (Theme.java)"]),
    ],
)
def test_each_kind_of_name_speaks_for_a_candidate(core: Core, kind: str, same: Any, other: Any) -> None:
    core.call(
        "tracker.add",
        number=1,
        title="A connection stays open",
        body="`Client.reopen` in src/net/Client.java",
        component="Net",
        version="2.1.0",
        frames=["Client.close (Client.java)"],
    )
    core.call(
        "tracker.add", number=2, title="Unlike", body="Theme.load in doc/readme.md", frames=["Theme.load (Theme.java)"]
    )
    plain, like, unlike = score_of(core, 1), score_of(core, 1, **{kind: same}), score_of(core, 1, **{kind: other})
    assert like > plain >= unlike
    best = check(core, "The connection is closed", **{kind: same})["candidates"][0]
    assert best["issue"]["number"] == 1
    assert best["evidence"][kind] == 1.0


def test_names_are_read_from_the_body_unless_they_are_given(core: Core) -> None:
    read = check(core, "NPE in Client.close()", f"{TRACE}\nsee src/net/Client.java and #12")["read"]
    assert read["frames"][0] == "client.close (client.java)"
    assert (read["paths"], read["mentions"]) == (["net/client.java"], ["12"])
    assert read["symbols"] == ["close"]
    given = check(core, "t", TRACE, frames=["a.b"], paths=["x.py"], symbols=["foo"], mentions=["9"])["read"]
    assert (given["frames"], given["paths"], given["symbols"], given["mentions"]) == (["a.b"], ["x.py"], ["foo"], ["9"])
    assert check(core, "t", TRACE, frames=[])["read"]["frames"] == []


def test_a_frame_that_names_nothing_is_refused(core: Core) -> None:
    with pytest.raises(Rejected) as raised:
        check(core, "t", frames=["()"])
    assert raised.value.extras["field"] == "frames"


def test_a_shared_stack_is_found_among_many_reports_that_share_the_words(core: Core) -> None:
    items = [{"number": n, "title": f"Close fails again {n}", "body": "close fails " * 20} for n in range(10, 200)]
    core.call("tracker.import", items=items)
    core.call("tracker.add", number=1, title="Odd", body=TRACE)
    answer = check(core, "Close fails", f"close fails again\n{OTHER_LINES}")
    assert candidates(answer)[0] == 1
    assert answer["verdict"] == "duplicate"


def test_what_may_not_be_shown_does_not_crowd_out_the_rest(core: Core) -> None:
    late = "2026-02-01T00:00:00Z"
    items = [{"number": n, "title": "Crash on start", "created_at": late} for n in range(10, 200)]
    core.call("tracker.import", items=items)
    core.call("tracker.add", number=1, title="Crash on start up", created_at="2026-01-01T00:00:00Z")
    core.drain()
    assert candidates(check(core, "Crash on start", as_of="2026-01-15T00:00:00Z")) == [1]
    assert found(core, "Crash on start", as_of="2026-01-15T00:00:00Z") == [1]


def test_at_most_ten_candidates(core: Core) -> None:
    core.call("tracker.import", items=[{"number": n, "title": "Crash on start"} for n in range(1, 40)])
    assert len(check(core, "Crash on start", top_k=10)["candidates"]) == 10
    assert len(check(core, "Crash on start")["candidates"]) == 5


def test_another_namespace_and_another_org_know_nothing(full: Core) -> None:
    for where in ({"namespace": "other"}, {"org": "other"}):
        assert check(full, "Client.close throws NullPointerException", TRACE, **where)["compared"] == 0
        assert found(full, "Client.close", **where) == []
