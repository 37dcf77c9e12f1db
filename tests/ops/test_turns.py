"""Operations that take turns on one transaction in PostgreSQL: each is answered as if it had been alone."""

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from typing import Any

import psycopg
import pytest

from fakes import AGENT, NAMESPACE, ORG, Clock, Core, core_of
from loom.access import namespaces
from loom.errors import LoomError, TextNotFound, Unavailable
from loom.ledger import store
from loom.ledger.rules import Place
from loom.planes import profile
from loom.storage.interface import Raced, StoreError, Transaction
from loom.storage.migrate import from_package
from loom.storage.postgres.engine import PostgresDatabase
from loom.storage.postgres.settings import PostgresSettings
from postgres_server import TestServer, cut_connections

pytestmark = pytest.mark.slow

WAIT_S = 60.0
POLL_S = 0.001
POLLS_MAX = 60_000
LABEL = "log"
PLACE = Place(NAMESPACE, AGENT, "-")
TURN = store.turn(PLACE, LABEL)
PATIENT = PostgresSettings(together_s=3 * WAIT_S, turn_wait_s=3 * WAIT_S, lock_timeout_s=1)
ONE_DESCRIPTION = (
    "ALTER TABLE loom.namespace ADD CONSTRAINT one_description UNIQUE (org, description) DEFERRABLE INITIALLY DEFERRED"
)


@pytest.fixture
def url(postgres: TestServer) -> Iterator[str]:
    with postgres.bare() as made:
        yield made


@pytest.fixture
def store_of(url: str, clock: Clock) -> Iterator[PostgresDatabase]:
    made = PostgresDatabase(url, from_package("loom"), replace(PATIENT, clock_ns=clock.nanoseconds))
    yield made
    made.close()


@pytest.fixture
def core(store_of: PostgresDatabase, clock: Clock, pool: ThreadPoolExecutor) -> Core:
    return core_of(profile.OPS, {}, {}, store_of, clock, pool)


Call = Callable[[], dict[str, Any]]


def in_line(
    database: PostgresDatabase, calls: list[Call], last: Callable[[Transaction], object] | None = None
) -> list[dict[str, Any] | LoomError]:
    """What the calls came to, which wait in this order for a first member of their line; `last` follows them."""
    never = threading.Event()

    def until_waiting(count: int) -> None:
        for _ in range(POLLS_MAX):
            if database.turns.waiting_count(ORG, TURN) == count:
                return
            never.wait(POLL_S)
        raise AssertionError("they do not wait for each other")

    def ending() -> dict[str, Any]:
        with database.transaction(ORG, write=True, turn=TURN) as tx:
            if last is not None:
                last(tx)
        return {}

    with ThreadPoolExecutor(len(calls) + 1) as threads:
        futures: list[Future[dict[str, Any]]] = []
        # The first is told what all are told, and that is looked at in the others.
        with suppress(StoreError, Raced), database.transaction(ORG, write=True, turn=TURN):
            for number, call in enumerate([*calls, ending]):
                until_waiting(number)
                futures.append(threads.submit(call))
            until_waiting(len(calls) + 1)
        return [_outcome(future) for future in futures[:-1]]


def _outcome(future: Future[dict[str, Any]]) -> dict[str, Any] | LoomError:
    try:
        return future.result(WAIT_S)
    except LoomError as error:
        return error


def appending(core: Core, line: str, key: str | None = None) -> Call:
    return partial(core.call, "profile.append", label=LABEL, addition=line, key=key)


def lines(core: Core) -> list[str]:
    with core.database.transaction(ORG, write=False) as tx:
        row = store.exact(tx, PLACE, LABEL)
    assert row is not None
    return str(json.loads(row.head.value_text or "null")).split("\n")


def versions(outcomes: list[dict[str, Any] | LoomError]) -> list[int]:
    return [one["version"] for one in outcomes if isinstance(one, dict)]


def test_versions_rise_in_the_order_of_the_text(core: Core, store_of: PostgresDatabase) -> None:
    outcomes = in_line(store_of, [appending(core, f"line {number}") for number in range(10)])
    given = versions(outcomes)
    assert len(given) == 10
    assert given == sorted(set(given))
    assert lines(core) == [f"line {number}" for number in range(10)]
    with store_of.transaction(ORG, write=False) as tx:
        space = namespaces.read(tx, NAMESPACE)
    assert space is not None
    assert space.last_version == given[-1]


def test_a_refusal_is_the_callers_own(core: Core, store_of: PostgresDatabase) -> None:
    refused = partial(core.call, "profile.replace", label=LABEL, old="nowhere", new="x")
    outcomes = in_line(store_of, [appending(core, "a"), refused, appending(core, "b"), refused])
    assert isinstance(outcomes[1], TextNotFound)
    assert isinstance(outcomes[3], TextNotFound)
    assert len(versions(outcomes)) == 2
    assert lines(core) == ["a", "b"]


def test_one_key_in_one_line_writes_once(core: Core, store_of: PostgresDatabase) -> None:
    outcomes = in_line(
        store_of, [appending(core, "once", "k"), appending(core, "between"), appending(core, "once", "k")]
    )
    assert outcomes[0] == outcomes[2]
    assert lines(core) == ["once", "between"]


WAITS = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"


def test_one_key_in_the_lines_of_two_servers_is_no_deadlock(
    postgres: TestServer, url: str, clock: Clock, pool: ThreadPoolExecutor
) -> None:
    """The other one has the key and waits for the section, which those of this line hold."""
    postgres.keep_deadlocks(url)
    settings = replace(PATIENT, lock_timeout_s=10, clock_ns=clock.nanoseconds)
    one, other = (PostgresDatabase(url, from_package("loom"), settings) for _ in range(2))
    core, other_core = (core_of(profile.OPS, {}, {}, database, clock, pool) for database in (one, other))
    never = threading.Event()

    def until_other_waits(threads: ThreadPoolExecutor, began: list[Future[dict[str, Any]]]) -> dict[str, Any]:
        with one.transaction(ORG, write=True, turn=TURN), psycopg.connect(url, autocommit=True) as looking:
            began.append(threads.submit(appending(other_core, "once", "k")))
            for _ in range(POLLS_MAX):
                row = looking.execute(WAITS).fetchone()
                if row is not None and row[0]:
                    return {}
                never.wait(POLL_S)
        raise AssertionError("the other server does not wait for the section")

    began: list[Future[dict[str, Any]]] = []
    with closing(one), closing(other), ThreadPoolExecutor(1) as threads:
        calls = [appending(core, "first"), partial(until_other_waits, threads, began), appending(core, "once", "k")]
        _, _, mine = in_line(one, calls)
        assert mine == began[0].result(WAIT_S)
        assert lines(core) == ["first", "once"]


def test_a_commit_without_an_answer_is_told_to_all(core: Core, store_of: PostgresDatabase, url: str) -> None:
    def cut(_: Transaction) -> None:
        cut_connections(url)

    outcomes = in_line(store_of, [appending(core, "a", "k"), appending(core, "b")], cut)
    assert [type(one) for one in outcomes] == [Unavailable] * 2
    # The same key again is a first attempt: its answer went with the write.
    assert appending(core, "a", "k")()["value_length"] == len(json.dumps("a"))
    assert lines(core) == ["a"]


def test_a_lost_race_is_run_again_by_all(core: Core, store_of: PostgresDatabase, url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(ONE_DESCRIPTION)
    outcomes = in_line(
        store_of,
        [appending(core, "a"), appending(core, "b", "k")],
        lambda tx: namespaces.touch(tx, "other", tx.stamp()),
    )
    assert len(versions(outcomes)) == 2
    assert sorted(lines(core)) == ["a", "b"]


@pytest.mark.parametrize(
    ("op", "args"),
    [
        ("profile.append", {"addition": "x"}),
        ("profile.set", {"value": "x"}),
        ("profile.replace", {"old": "x", "new": "y"}),
    ],
)
def test_a_turn_names_what_is_locked(core: Core, store_of: PostgresDatabase, op: str, args: dict[str, str]) -> None:
    with ThreadPoolExecutor(1) as threads, store_of.transaction(ORG, write=True) as tx:
        tx.lock(*TURN)
        tx.stamp()
        with pytest.raises(Unavailable, match="busy"):
            threads.submit(partial(core.call, op, label=LABEL, **args)).result(WAIT_S)
