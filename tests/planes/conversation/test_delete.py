"""conversation.delete and the namespace's end: what is gone is nowhere."""

from typing import Any

import pytest
from conversation_kit import BLOCKS, found, indexed, say, talk, texts, turn_ids

from fakes import ORG, Core, CoreOf
from loom import system
from loom.access.caller import Caller, ReadScope, Role
from loom.errors import Denied, NotFound, Rejected
from loom.jobs import outbox
from loom.planes import conversation
from loom.planes.conversation import indexing
from loom.retrieval import tokens
from loom.storage.indexes import Shelf


def delete(core: Core, **args: Any) -> dict[str, Any]:
    return core.call("conversation.delete", **args)


def words_left(core: Core, word: str, namespace: str = "local") -> int:
    """Entries of both word indexes that hold a word."""
    with core.database.transaction(ORG, write=False) as tx:
        shelves = [Shelf(name, namespace) for name in ("conversation", "conversation_aside")]
        return sum(len(tx.text.best(shelf, tokens.query(word), 10_000)) for shelf in shelves)


def rows_left(core: Core) -> int:
    with core.database.transaction(ORG, write=False) as tx:
        return len(tx.rows("SELECT item_id FROM conversation_turn WHERE org = :org"))


def test_a_turn_is_deleted_by_its_id(core: Core) -> None:
    talk(core, "s", "one plumbago", "two", "three")
    assert delete(core, turn_id=turn_ids(core, "s")[0]) == {"session": "s", "deleted": 1, "turn_count": 2}
    assert texts(core, "s") == ["two", "three"]
    assert found(core, "plumbago", top_k=5) == found(core, "two three", top_k=5) or "one plumbago" not in found(
        core, "plumbago"
    )
    assert (words_left(core, "plumbago"), indexed(core)) == (0, 2)
    listed = core.call("conversation.list")["sessions"][0]
    assert (listed["turn_count"], listed["title"]) == (2, "two")
    assert [turn["seq"] for turn in core.call("conversation.get", session="s")["turns"]] == [1, 2]
    talk(core, "s", "one", "two", "three", "four")
    assert texts(core, "s") == ["two", "three", "one", "four"]


def test_turns_are_deleted_by_their_messages_ids_and_again_without_harm(core: Core) -> None:
    talk(core, "s", "one", "two", "three")
    assert delete(core, session="s", message_ids=["m0", "m2", "unknown"])["deleted"] == 2
    assert delete(core, session="s", message_ids=["m0", "m2"])["deleted"] == 0
    assert texts(core, "s") == ["two"]


def test_a_given_title_stays_and_the_last_turn_takes_the_conversation_with_it(core: Core) -> None:
    core.call("conversation.append", session="s", title="Named", messages=say("one", "two"))
    assert delete(core, session="s", message_ids=["m0"])["turn_count"] == 1
    assert core.call("conversation.list")["sessions"][0]["title"] == "Named"
    assert delete(core, session="s", message_ids=["m1"])["turn_count"] == 0
    assert core.call("conversation.list")["total"] == 0
    with pytest.raises(NotFound):
        delete(core, session="s", message_ids=["m1"])


def test_a_whole_conversation_is_gone_from_every_answer_at_once(core: Core) -> None:
    core.call("conversation.append", session="s", messages=[*say("plumbago"), {"role": "assistant", "content": BLOCKS}])
    talk(core, "kept", "plumbago stays")
    first = turn_ids(core, "s")[0]
    assert delete(core, session="s", whole_session=True) == {"session": "s", "deleted": 2, "turn_count": 0}
    assert core.call("conversation.get", session="s")["found"] is False
    assert found(core, "plumbago okapi") == ["plumbago stays"]
    assert (words_left(core, "plumbago"), words_left(core, "okapi"), indexed(core), rows_left(core)) == (1, 0, 1, 1)
    with pytest.raises(NotFound):
        core.call("conversation.get", turn_id=first)
    with pytest.raises(NotFound):
        delete(core, turn_id=first)


def test_a_big_conversation_is_gone_at_once_and_its_rows_soon(core: Core) -> None:
    for batch in range(3):
        lines = [{"role": "user", "content": f"plumbago {batch} {number}"} for number in range(500)]
        core.call("conversation.append", session="big", messages=lines)
    talk(core, "kept", "plumbago stays")
    assert delete(core, session="big", whole_session=True)["deleted"] == 1500
    assert found(core, "plumbago", top_k=10) == ["plumbago stays"]
    assert rows_left(core) == 1 + 1500 - indexing.PURGED_AT_ONCE
    talk(core, "big", "anew")
    core.drain()
    assert (rows_left(core), words_left(core, "plumbago"), indexed(core)) == (2, 1, 2)
    assert texts(core, "big") == ["anew"]


def test_vectors_do_not_come_back_for_what_was_deleted_meanwhile(core: Core) -> None:
    talk(core, "s", *(f"line {number}" for number in range(50)))
    delete(core, session="s", whole_session=True)
    core.drain()
    assert indexed(core) == 0


@pytest.mark.parametrize(
    "args",
    [
        {},
        {"session": "s"},
        {"session": "s", "message_ids": []},
        {"message_ids": ["m0"]},
        {"whole_session": True},
        {"session": "s", "message_ids": ["m0"], "whole_session": True},
        {"turn_id": "turn_00000000000000ff", "whole_session": True, "session": "s"},
        {"turn_id": "turn_x"},
    ],
)
def test_what_is_meant_must_be_said_exactly(core: Core, args: dict[str, Any]) -> None:
    talk(core, "s", "one")
    with pytest.raises(Rejected):
        delete(core, session_id="s", **args)
    assert texts(core, "s") == ["one"]


def test_nobody_deletes_what_their_token_does_not_reach(core: Core) -> None:
    core.call("conversation.append", session="s", user_id="ana", messages=say("one"))
    own = turn_ids(core, "s", user_id="ana")[0]
    bo = Caller("bo", Role.WRITER, {"org": ORG, "user_id": "bo"}, read_scope=ReadScope.OWN_USER)
    with pytest.raises(NotFound):
        delete(core, caller=bo, turn_id=own)
    with pytest.raises(NotFound):
        delete(core, caller=bo, session="s", whole_session=True)
    narrow = Caller("x", Role.WRITER, {"org": ORG, "user_id": "ana"}, read_scope=ReadScope.OWN_SESSION)
    with pytest.raises(Denied):
        delete(core, caller=narrow, session="s", session_id="t", whole_session=True)
    assert texts(core, "s", user_id="ana") == ["one"]


def test_a_deleted_namespace_leaves_nothing_of_its_conversations(core_of: CoreOf) -> None:
    core = core_of(
        [*system.operations([conversation.purge_namespace]), *conversation.OPS], conversation.JOBS, system.LATE
    )
    for namespace in ("doomed", "kept"):
        core.call("conversation.append", session="s", namespace=namespace, messages=[{"role": "a", "content": BLOCKS}])
        talk(core, "big", *(f"plumbago {number}" for number in range(40)), namespace=namespace)
    answer = core.call("namespace.delete", name="doomed", confirm="doomed")
    assert answer["items_deleted"] == 41
    core.drain()
    assert core.call("conversation.list", namespace="doomed")["total"] == 0
    assert found(core, "plumbago okapi", namespace="doomed") == []
    assert (words_left(core, "plumbago", "doomed"), indexed(core, "doomed")) == (0, 0)
    assert words_left(core, "plumbago", "kept") == 40
    with core.database.transaction(ORG, write=False) as tx:
        assert outbox.waiting(tx) == 0


def test_a_kept_answer_loses_the_title_of_what_is_deleted(core: Core) -> None:
    names = ('100%_!"gone', "100%_!stays")

    def say_once(name: str) -> str:
        messages = [{"role": "user", "content": f"Plumbago {name}"}]
        return core.call("conversation.append", key=name, session=name, messages=messages)["title"]

    assert [say_once(name) for name in names] == [f"Plumbago {name}" for name in names]
    core.call("conversation.delete", session=names[0], whole_session=True)
    assert [say_once(name) for name in names] == ["", f"Plumbago {names[1]}"]
