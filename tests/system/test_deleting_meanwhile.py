"""A namespace is deleted after those who write in it, so that nothing of it is written anew."""

from collections.abc import Callable
from threading import Event, Thread

import pytest

from fakes import ORG, Core, CoreOf
from loom import compose
from loom.access import namespaces
from loom.ledger import store as ledger
from loom.ledger.rules import Place
from loom.planes.conversation import store as conversation
from loom.planes.knowledge import store as knowledge
from loom.planes.tracker import store as tracker
from loom.storage.interface import Database, Transaction

SPACE = "doomed"
FINISH_TIMEOUT_S = 60.0
EARLY_TIMEOUT_S = 0.3
"""How long a deletion has to come too early."""

LOCKS: dict[str, Callable[[Transaction], None]] = {
    "memories and sections": lambda tx: ledger.lock(tx, Place(SPACE, "-", "ada"), "k"),
    "documents": lambda tx: knowledge.lock(tx, SPACE, "ada", "k"),
    "conversations": lambda tx: conversation.lock(tx, SPACE, "ada", "k"),
    "issues": lambda tx: tracker.lock(tx, SPACE, 1),
    "anything else": lambda tx: namespaces.enter(tx, SPACE),
}


@pytest.fixture
def core(core_of: CoreOf) -> Core:
    return core_of(list(compose.registry()), {}, {})


@pytest.mark.parametrize("lock", LOCKS.values(), ids=list(LOCKS))
def test_a_namespace_is_deleted_after_those_who_write_in_it(core: Core, lock: Callable[[Transaction], None]) -> None:
    core.call("namespace.create", name=SPACE)
    gone = Event()

    def delete() -> None:
        core.call("namespace.delete", name=SPACE, confirm=SPACE)
        gone.set()

    deleting = Thread(target=delete)
    with core.database.transaction(ORG, write=True) as tx:
        lock(tx)
        assert namespaces.read(tx, SPACE) is not None
        deleting.start()
        assert not gone.wait(EARLY_TIMEOUT_S)
        assert namespaces.read(tx, SPACE) is not None
    assert gone.wait(FINISH_TIMEOUT_S)
    deleting.join(FINISH_TIMEOUT_S)


@pytest.mark.slow
def test_writers_of_one_namespace_do_not_wait_for_each_other(postgres_database: Database) -> None:
    inside = Event()

    def write() -> None:
        with postgres_database.transaction(ORG, write=True) as other:
            namespaces.enter(other, SPACE)
            namespaces.read(other, SPACE)
            inside.set()

    with postgres_database.transaction(ORG, write=True) as tx:
        namespaces.enter(tx, SPACE)
        assert namespaces.read(tx, SPACE) is None
        writing = Thread(target=write)
        writing.start()
        assert inside.wait(FINISH_TIMEOUT_S)
    writing.join(FINISH_TIMEOUT_S)
