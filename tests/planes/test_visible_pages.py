"""The pages of what may be shown: every plane reads each visible id once, in the order of an index, on both engines."""

from collections.abc import Callable, Collection, Iterator
from typing import Any

import pytest

from fakes import Core, CoreOf
from loom import compose
from loom.access.caller import ReadScope
from loom.ledger.rules import Reader
from loom.planes.conversation.search import Filter as TurnFilter
from loom.planes.conversation.search import visible as visible_turns
from loom.planes.knowledge.search import Quest as PassageQuest
from loom.planes.knowledge.search import visible as visible_passages
from loom.planes.memory import select
from loom.planes.memory.select import Filter as MemoryFilter
from loom.planes.tracker import store as issues
from loom.planes.tracker.store import Filter as IssueFilter
from loom.storage.interface import Transaction

SPACE = "local"
OWN = Reader(ReadScope.OWN_USER, "me", "-")
MANY = 7


@pytest.fixture
def core(core_of: CoreOf) -> Core:
    made = core_of(list(compose.registry()), {}, {})
    for number in range(MANY):
        for user in ("me", "other"):
            who: dict[str, Any] = {"user_id": user, "namespace": SPACE}
            made.call("memory.set", memory_key=f"k{number}", value="walrus", tags=[f"t{number % 2}"], **who)
            made.call("tracker.add", number=number + 1, title="walrus", org="dev", **who)
        made.call("knowledge.add", uri=f"d{number}", text=f"walrus {number}", namespace=SPACE)
        turns = [{"role": "user", "content": f"walrus {place}"} for place in range(number)]
        if turns:
            made.call("conversation.append", session=f"s{number}", messages=turns, namespace=SPACE)
    return made


def memories(tx: Transaction, page: int) -> Iterator[Collection[int]]:
    return select.visible(tx, MemoryFilter((SPACE,), OWN, 0, tags=("t0",)), page)


def turns(tx: Transaction, page: int) -> Iterator[Collection[int]]:
    return visible_turns(tx, TurnFilter((SPACE,), OWN), page)


def passages(tx: Transaction, page: int) -> Iterator[Collection[int]]:
    return visible_passages(tx, PassageQuest((SPACE,), OWN, "x", None, "", 0.0, 0.0, 5, 5), page)


def reports(tx: Transaction, page: int) -> Iterator[Collection[int]]:
    return issues.visible(tx, IssueFilter(SPACE, OWN), page)


Read = Callable[[Transaction, int], Iterator[Collection[int]]]

COUNTS: dict[Read, int] = {memories: (MANY + 1) // 2, turns: MANY * (MANY - 1) // 2, passages: MANY, reports: MANY}


@pytest.mark.parametrize("read", COUNTS, ids=lambda read: read.__name__)
def test_every_visible_id_comes_once_whatever_the_page(core: Core, read: Read) -> None:
    with core.database.transaction("dev", write=False) as tx:
        for page in (1, 2, 3, 100):
            pages = [list(ids) for ids in read(tx, page)]
            ids = [one for found in pages for one in found]
            assert (len(ids), len(set(ids))) == (COUNTS[read], COUNTS[read])
            assert max(map(len, pages)) <= page
