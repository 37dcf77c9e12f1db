"""conversation.get and conversation.list: windows, pages, sizes, order."""

from typing import Any

import pytest
from conversation_kit import say, talk, texts, turn_ids

from fakes import Core
from loom.errors import NotFound, Rejected
from loom.planes.conversation import ops_read


def get(core: Core, **args: Any) -> dict[str, Any]:
    return core.call("conversation.get", **args)


def test_a_conversation_is_read_in_pages(core: Core) -> None:
    lines = [f"line {number}" for number in range(25)]
    talk(core, "s", *lines)
    read: list[str] = []
    start: int | None = 0
    while start is not None:
        page = get(core, session="s", start=start, limit=10)
        read += [turn["text"] for turn in page["turns"]]
        start = page["next_start"]
    assert read == lines
    assert get(core, session="s", start=25)["turns"] == []


def test_the_turns_around_one_are_shown(core: Core) -> None:
    talk(core, "s", *(f"line {number}" for number in range(20)))
    ids = turn_ids(core, "s")
    around = get(core, turn_id=ids[10], limit=4)
    assert [turn["seq"] for turn in around["turns"]] == [8, 9, 10, 11]
    assert around["next_start"] == 12
    assert around["session"]["session"] == "s"
    assert [turn["seq"] for turn in get(core, turn_id=ids[0], limit=3)["turns"]] == [0, 1, 2]
    last = get(core, turn_id=ids[19], limit=4)
    assert ([turn["seq"] for turn in last["turns"]], last["next_start"]) == ([17, 18, 19], None)


def test_a_turn_that_is_not_there_is_not_found(core: Core) -> None:
    talk(core, "s", "one")
    own = turn_ids(core, "s")[0]
    for bad in ("turn_00000000000000ff", own):
        with pytest.raises(NotFound):
            get(core, turn_id=bad, session="other")
    with pytest.raises(NotFound):
        get(core, turn_id=own, namespace="elsewhere")
    for odd in ("x", "turn_1", "turn_zzzzzzzzzzzzzzzz", "turn_ffffffffffffffff"):
        with pytest.raises(Rejected, match="turn_id"):
            get(core, turn_id=odd)


def test_a_conversation_that_is_not_there_is_told_so(core: Core) -> None:
    answer = get(core, session="nope")
    assert answer == {"found": False, "session": None, "turns": [], "next_start": None}
    with pytest.raises(Rejected, match="session"):
        get(core)


def test_bodies_say_how_much_is_shown(core: Core) -> None:
    blocks = [{"type": "text", "text": "said"}, {"type": "tool_use", "name": "Read", "input": {"file": "x" * 1000}}]
    core.call("conversation.append", session="s", messages=[{"role": "assistant", "content": blocks}])
    text, full, none = (get(core, session="s", bodies=one)["turns"][0] for one in ("text", "full", "none"))
    assert (text["text"], text["content"], len(text["aside"])) == ("said", None, ops_read.ASIDE_SHOWN)
    assert (full["text"], full["content"]) == ("said", blocks)
    assert (none["text"], none["aside"], none["content"]) == ("", "", None)


def test_an_answer_stays_bounded_and_says_where_to_read_on(core: Core) -> None:
    for number in range(6):
        message = {"role": "user", "content": f"{number} " + "word " * 20_000}
        core.call("conversation.append", session="s", messages=[message])
    page = get(core, session="s")
    assert 1 < len(page["turns"]) < 6
    assert page["next_start"] == len(page["turns"])
    assert all(turn["truncated"] and len(turn["text"]) == ops_read.TEXT_CHARACTERS_MAX for turn in page["turns"])
    assert len(get(core, session="s", bodies="full", limit=1)["turns"][0]["content"]) > 100_000


def test_sessions_are_listed_the_last_spoken_in_first(core: Core) -> None:
    for number in range(7):
        message = {"role": "user", "content": f"talk {number}", "time": f"2025-01-0{number + 1}T00:00:00Z"}
        core.call("conversation.append", session=f"s{number}", messages=[message])
    listed: list[str] = []
    cursor = ""
    while True:
        page = core.call("conversation.list", limit=3, cursor=cursor)
        assert page["total"] == 7
        listed += [one["session"] for one in page["sessions"]]
        cursor = page["next_cursor"]
        if not cursor:
            break
    assert listed == [f"s{number}" for number in range(6, -1, -1)]
    some = core.call("conversation.list", since="2025-01-03T00:00:00Z", until="2025-01-05T00:00:00Z")
    assert ([one["session"] for one in some["sessions"]], some["total"]) == (["s3", "s2"], 2)
    assert some["sessions"][0] == {
        "session": "s3",
        "title": "talk 3",
        "namespace": "local",
        "agent": "claude",
        "user_id": "-",
        "turn_count": 1,
        "first_at": "2025-01-04T00:00:00Z",
        "last_at": "2025-01-04T00:00:00Z",
    }


@pytest.mark.parametrize("cursor", ["x", "1", "1:2:3", "1:99999999999999999999", "1:9999999999999999999", ":"])
def test_a_cursor_of_ones_own_is_refused(core: Core, cursor: str) -> None:
    with pytest.raises(Rejected, match="cursor"):
        core.call("conversation.list", cursor=cursor)


def test_two_users_can_have_a_conversation_of_one_name(core: Core) -> None:
    for user in ("ana", "bo"):
        core.call("conversation.append", session="s", user_id=user, messages=say(f"I am {user}"))
    assert texts(core, "s", user_id="ana") == ["I am ana"]
    assert texts(core, "s", user_id="bo") == ["I am bo"]
    assert core.call("conversation.list")["total"] == 2
