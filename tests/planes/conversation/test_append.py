"""conversation.append through the one call path: order, ids, blocks, vectors, titles, bounds."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from conversation_kit import BLOCKS, RESULTS, found, indexed, say, talk, texts, turn_ids

from fakes import ORG, Core
from loom.access.caller import Caller, ReadScope, Role
from loom.errors import Denied, Rejected, TooLong
from loom.planes.conversation import indexing, rules


def test_messages_are_kept_in_the_order_they_were_said(core: Core) -> None:
    answer = talk(core, "s", "one", "two", "three")
    assert (answer["appended"], answer["unchanged"], answer["conflicts"], answer["turn_count"]) == (3, 0, [], 3)
    assert "degraded" not in answer
    more = core.call("conversation.append", session="s", messages=[{"role": "assistant", "content": "four"}])
    assert more["turn_count"] == 4
    assert texts(core, "s") == ["one", "two", "three", "four"]
    turns = core.call("conversation.get", session="s")["turns"]
    assert [turn["seq"] for turn in turns] == [0, 1, 2, 3]
    assert turns[3]["message_id"] == turns[3]["turn_id"]
    assert [turn["role"] for turn in turns] == ["user", "user", "user", "assistant"]


def test_a_message_with_a_known_id_adds_nothing(core: Core) -> None:
    talk(core, "s", "one", "two")
    again = talk(core, "s", "one", "two", "three")
    assert (again["appended"], again["unchanged"]) == (1, 2)
    other = core.call("conversation.append", session="s", messages=[{"id": "m0", "role": "user", "content": "else"}])
    assert (other["appended"], other["conflicts"]) == (0, ["m0"])
    assert texts(core, "s") == ["one", "two", "three"]
    assert talk(core, "t", "one")["appended"] == 1


def test_of_two_messages_with_one_id_in_a_call_the_first_counts(core: Core) -> None:
    twice = [{"id": "x", "role": "user", "content": text} for text in ("a", "a", "b")]
    answer = core.call("conversation.append", session="s", messages=twice)
    assert (answer["appended"], answer["unchanged"], answer["conflicts"]) == (1, 1, ["x"])


def test_the_session_is_the_calls_own_unless_it_is_named(core: Core) -> None:
    core.call("conversation.append", session_id="mine", messages=say("hello"))
    assert texts(core, "mine") == ["hello"]
    assert texts(core, "", session_id="mine") == ["hello"]
    with pytest.raises(Rejected, match="session"):
        core.call("conversation.append", messages=say("hello"))


def test_every_kind_of_block_is_kept_and_what_was_said_is_told_from_the_rest(core: Core) -> None:
    core.call(
        "conversation.append",
        session="zoo",
        messages=[
            {"role": "user", "content": "How many okapis are there?"},
            {"role": "assistant", "content": BLOCKS},
            {"role": "user", "content": RESULTS},
            {"role": "system", "content": "You are a keeper of wombats."},
        ],
    )
    turns = core.call("conversation.get", session="zoo", bodies="full")["turns"]
    assert [turn["text"] for turn in turns] == ["How many okapis are there?", "I look into the zoo's ledger.", "", ""]
    assert [block["type"] for block in turns[1]["content"]] == [block["type"] for block in BLOCKS]
    for word in ("quagga", "Grep", "okapi", "pangolin", "Feeding plan", "axolotl"):
        assert word in turns[1]["aside"], word
    for noise in ("toolu_1", "c2ln", "iVBOR"):
        assert noise not in turns[1]["aside"]
    assert "They eat ants." in turns[2]["aside"]
    assert "wombats" in turns[3]["aside"]
    assert turns[1]["content"][5]["source"] == {
        "type": "base64",
        "media_type": "image/png",
        "data_left_out_length": 5000,
    }
    assert turns[2]["content"] == RESULTS


def test_a_small_append_has_its_vectors_at_once_and_a_big_one_from_a_job(core: Core) -> None:
    talk(core, "small", "one", "two")
    assert indexed(core) == 2
    count = indexing.PASSAGES_INLINE_MAX + 8
    before = core.embedder.texts
    talk(core, "big", *(f"line {number}" for number in range(count)))
    assert core.embedder.texts == before
    assert len(found(core, "line 7", session="big")) > 0
    core.drain()
    assert indexed(core) == 2 + count
    assert core.embedder.texts >= before + count


def test_an_embedder_that_fails_loses_no_message(core: Core) -> None:
    core.embedder.off.set()
    answer = talk(core, "s", "the walrus sings")
    assert answer["degraded"] == ["embedder"]
    found_now = core.call("conversation.search", query="walrus")
    assert (len(found_now["results"]), found_now["degraded"]) == (1, ["embedder"])
    core.embedder.off.clear()
    assert core.call("conversation.search", query="walrus")["degraded"] == ["meaning"]
    core.drain()
    assert core.call("conversation.search", query="walrus")["degraded"] == []
    assert indexed(core) == 1


def test_the_job_goes_on_where_it_was_stopped(core: Core) -> None:
    talk(core, "s", *(f"line {number}" for number in range(200)))
    with core.database.transaction(ORG, write=False) as tx:
        keys = [
            str(row["session_key"]) for row in tx.rows("SELECT session_key FROM conversation_session WHERE org = :org")
        ]
    assert not indexing._embed_session(core.bench, ORG, int(keys[0]), until_s=0.0)
    done = indexed(core)
    assert 0 < done < 200
    before = core.embedder.texts
    indexing.embed_sessions(core.bench, ORG, keys)
    assert core.embedder.texts == before + 200 - done
    assert indexed(core) == 200


def test_a_title_is_given_or_taken_from_the_users_first_words(core: Core) -> None:
    assert talk(core, "s", "  \nWhere do the eels go?\nI wonder.")["title"] == "Where do the eels go?"
    assert talk(core, "long", "word " * 60)["title"].endswith("\u2026")
    first = "  \nWhere do the eels go?\nI wonder."
    named = core.call("conversation.append", session="s", title="Eels", messages=say(first))
    assert (named["appended"], named["title"]) == (0, "Eels")
    assert talk(core, "s", first, "And back?")["title"] == "Eels"
    titles = {one["session"]: one["title"] for one in core.call("conversation.list")["sessions"]}
    assert titles["s"] == "Eels"


def test_times_are_the_messages_own_and_the_sessions_first_and_last(core: Core) -> None:
    messages = [
        {"role": "user", "content": "late", "time": "2024-05-02T10:00:00Z"},
        {"role": "user", "content": "early", "time": "2024-05-01T12:00:00+02:00"},
    ]
    answer = core.call("conversation.append", session="s", messages=messages)
    assert (answer["first_at"], answer["last_at"]) == ("2024-05-01T10:00:00Z", "2024-05-02T10:00:00Z")
    assert texts(core, "s") == ["late", "early"]
    with pytest.raises(Rejected, match="time"):
        core.call(
            "conversation.append", session="s", messages=[{"role": "u", "content": "x", "time": "2024-05-01T10:00"}]
        )


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [{}],
        [{"role": "user"}],
        [{"role": "", "content": "x"}],
        [{"role": "user", "content": 7}],
        [{"role": "user", "content": None}],
        [{"role": "user", "content": ["x"]}],
        [{"role": "user", "content": {"type": "text"}}],
        [{"role": "user", "content": "x", "id": "i" * 257}],
        [{"role": "user", "content": "x", "name": "n" * 257}],
        [{"role": "user", "content": [{"type": "text"}] * (rules.BLOCKS_MAX + 1)}],
        [{"role": "user", "content": "x"}] * 501,
    ],
)
def test_what_is_no_message_is_refused_with_its_place(core: Core, messages: list[object]) -> None:
    with pytest.raises(Rejected, match="messages"):
        core.call("conversation.append", session="s", messages=messages)
    assert core.call("conversation.list")["total"] == 0


def test_a_message_over_the_cap_is_refused_and_nothing_is_kept(core: Core) -> None:
    with pytest.raises(TooLong, match=r"messages\.1\.content") as caught:
        talk(core, "s", "short", "x" * (rules.CONTENT_LENGTH_MAX + 1))
    assert caught.value.extras["value_length"] == rules.CONTENT_LENGTH_MAX + 3
    assert core.call("conversation.get", session="s")["found"] is False


@pytest.mark.parametrize(
    "content",
    [
        "",
        " ",
        [],
        [{}],
        [{"type": "text"}],
        [{"type": "text", "text": 7}],
        [{"type": "tool_result", "content": None}],
        [{"type": None, "x": [[[[[[[[[[1]]]]]]]]]]}],
    ],
)
def test_a_message_that_says_nothing_is_kept(core: Core, content: object) -> None:
    core.call("conversation.append", session="s", messages=[{"role": "user", "content": content}])
    turns = core.call("conversation.get", session="s", bodies="full")["turns"]
    assert turns[0]["content"] == content


def test_a_token_of_one_session_writes_no_other(core: Core) -> None:
    pins = {"org": ORG, "user_id": "u", "session_id": "mine"}
    caller = Caller("t", Role.WRITER, pins, read_scope=ReadScope.OWN_SESSION)
    core.call("conversation.append", caller=caller, messages=say("hello"))
    with pytest.raises(Denied):
        core.call("conversation.append", caller=caller, session="other", messages=say("hello"))
    with pytest.raises(Denied):
        core.call("conversation.append", caller=Caller("v", Role.VIEWER, {"org": ORG}), messages=say("hello"))


def test_many_who_append_at_once_lose_nothing_and_keep_their_order(core: Core) -> None:
    def append(writer: int) -> None:
        for number in range(5):
            message = {"id": f"{writer}-{number}", "role": "user", "content": f"w{writer} n{number}"}
            core.call("conversation.append", session="s", messages=[message, message])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(append, range(8)))
    turns = core.call("conversation.get", session="s", limit=200)["turns"]
    assert len(turns) == 40
    assert [turn["seq"] for turn in turns] == list(range(40))
    for writer in range(8):
        own = [turn["text"] for turn in turns if turn["text"].startswith(f"w{writer} ")]
        assert own == [f"w{writer} n{number}" for number in range(5)]
    assert len(set(turn_ids(core, "s"))) == 40


@pytest.mark.parametrize(
    "text", ["日本語の会話です", "Über Öl & <b>", "👩‍👩‍👧 emoji", "عربى", '"NOT" AND -x OR (', "a\u0000b"]
)
def test_any_text_comes_back_as_it_was(core: Core, text: str) -> None:
    if "\u0000" in text:
        with pytest.raises(Rejected):
            talk(core, text.replace("\u0000", ""), text)
        return
    talk(core, "sé / 1", text)
    assert texts(core, "sé / 1") == [text]
    assert text in found(core, text)
