"""What the tests of shared turns have in common: members that stand in line, and what each is told."""

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from store_kit import IDS, INSERT, MIGRATIONS, ORG, WAIT_S, Refused, together, until

from loom.storage.interface import Transaction
from loom.storage.postgres.engine import PostgresDatabase
from loom.storage.postgres.settings import PostgresSettings

KEY = ("k",)
TRANSACTION = "SELECT CAST(pg_current_xact_id() AS TEXT) AS id"
PATIENT = PostgresSettings(together_s=3 * WAIT_S, turn_wait_s=3 * WAIT_S)
"""Members stay together, and none gives up, however long the machine stands still."""

Body = Callable[[Transaction], object]


@contextmanager
def opened(url: str, settings: PostgresSettings = PATIENT) -> Generator[PostgresDatabase]:
    """A store; its groups have time, unless `settings` say otherwise."""
    database = PostgresDatabase(url, MIGRATIONS, settings)
    try:
        yield database
    finally:
        database.close()


@dataclass
class Line:
    """Members that stand in line in the order of their numbers, and what became of each.

    Attributes:
        database: where they write.
        outcomes: an error's type, or None for a member that was told that its work is kept.
        transactions: the server's number of the transaction that each member's work was in.
    """

    database: PostgresDatabase
    outcomes: dict[int, type[BaseException] | None] = field(default_factory=dict[int, type[BaseException] | None])
    messages: dict[int, str] = field(default_factory=dict[int, str])
    transactions: dict[int, str] = field(default_factory=dict[int, str])

    def run(self, *bodies: Body) -> None:
        """Let all of them come while the first one is at work."""
        inside = threading.Event()

        def member(number: int, body: Body) -> None:
            if number:
                assert inside.wait(WAIT_S)
                until(lambda: self.database.turns.waiting_count(ORG, KEY) == number - 1)
            try:
                with self.database.transaction(ORG, write=True, turn=KEY) as tx:
                    tx.lock(*KEY)
                    row = tx.row(TRANSACTION)
                    assert row is not None
                    self.transactions[number] = str(row["id"])
                    if number == 0:
                        inside.set()
                        until(lambda: self.database.turns.waiting_count(ORG, KEY) == len(bodies) - 1)
                    body(tx)
            except BaseException as error:  # noqa: BLE001 - what a member is told is what is tested
                self.outcomes[number] = type(error)
                self.messages[number] = str(error)
            else:
                self.outcomes[number] = None

        assert together([partial(member, number, body) for number, body in enumerate(bodies)]) == []
        assert self.database.turns.waiting_count(ORG, KEY) == 0

    def told(self) -> list[type[BaseException] | None]:
        """The outcomes in order."""
        return [self.outcomes[number] for number in sorted(self.outcomes)]


def inserting(number: int, body: str = "x") -> Body:
    return lambda tx: tx.run(INSERT, id=number, body=body)


def sending(number: int, body: str = "x") -> Body:
    return lambda tx: tx.send(INSERT, id=number, body=body)


def refusing(number: int) -> Body:
    def body(tx: Transaction) -> None:
        tx.run(INSERT, id=number, body="x")
        raise Refused

    return body


def ids(database: PostgresDatabase) -> list[object]:
    with database.transaction(ORG, write=False) as tx:
        return [row["id"] for row in tx.rows(IDS)]


def in_another_thread(work: Callable[[], object]) -> None:
    """Run what needs a transaction of its own, and carry its error here."""
    errors = together([work])
    if errors:
        raise errors[0]
