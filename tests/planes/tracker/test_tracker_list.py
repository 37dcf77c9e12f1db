"""tracker.list: pages of issues, the highest number first."""

from typing import Any

import pytest
from tracker_kit import filled, of_user

from fakes import Core
from loom.errors import Rejected


def listed(core: Core, **args: Any) -> tuple[list[int], str]:
    answer = core.call("tracker.list", **args)
    return [issue["number"] for issue in answer["issues"]], answer["next_cursor"]


def test_issues_come_in_pages_and_none_twice(core: Core) -> None:
    filled(core)
    core.call("tracker.add", number=3, title="Of Ada alone", user_id="ada")
    seen: list[int] = []
    cursor = ""
    for _ in range(4):
        numbers, cursor = listed(core, limit=2, cursor=cursor)
        seen += numbers
        if not cursor:
            break
    assert seen == [6, 5, 4, 3, 3, 2, 1]
    assert core.call("tracker.list", limit=1)["total"] == 7


def test_a_list_is_filtered_by_state_and_component(core: Core) -> None:
    filled(core)
    core.call("tracker.add", number=7, title="Done", state="closed", component="net")
    assert listed(core, state="closed") == ([7], "")
    assert listed(core, component="net") == ([7, 1], "")
    assert listed(core, component="net", state="open") == ([1], "")
    assert listed(core, namespace="other") == ([], "")


def test_a_list_shows_no_other_users_issues(core: Core) -> None:
    filled(core)
    core.call("tracker.add", number=8, title="Of Bob alone", user_id="bob")
    assert 8 not in listed(core, caller=of_user("ada"))[0]
    assert 8 in listed(core, caller=of_user("bob"))[0]


@pytest.mark.parametrize("cursor", ["x", "1", "1.", "-1.2", "1.99999999999999999999", "\u0661.1"])
def test_a_cursor_of_no_answer_is_refused(core: Core, cursor: str) -> None:
    with pytest.raises(Rejected) as raised:
        listed(core, cursor=cursor)
    assert raised.value.extras["field"] == "cursor"
