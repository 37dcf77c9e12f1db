"""Many writers that take turns, of one process and of two, with connections cut among them."""

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

import pytest
from store_kit import ORG, together, until
from turns_kit import KEY, opened

from loom.storage.interface import Raced, StoreError
from loom.storage.postgres.connection import LOST_AT_COMMIT
from loom.storage.postgres.engine import PostgresDatabase
from loom.storage.postgres.settings import PostgresSettings
from postgres_server import cut_connections

pytestmark = pytest.mark.slow


class Appended:
    """A text that every line is appended to, by its turn; as a profile's section is."""

    MADE = "INSERT INTO item (org, id, body) VALUES (:org, 1, '')"
    READ = "SELECT body FROM item WHERE org = :org AND id = 1"
    WRITE = "UPDATE item SET body = :body WHERE org = :org AND id = 1"

    def __init__(self, database: PostgresDatabase) -> None:
        self.database = database
        with suppress(Raced), database.transaction(ORG, write=True) as tx:
            tx.run(self.MADE)

    def append(self, database: PostgresDatabase, line: str, meanwhile: Callable[[], None] = lambda: None) -> int:
        """The line's place in the text. What is done meanwhile is done in the turn."""
        with database.transaction(ORG, write=True, turn=KEY) as tx:
            tx.lock(*KEY)
            row = tx.row(self.READ)
            assert row is not None
            before = str(row["body"]).split()
            meanwhile()
            tx.send(self.WRITE, body=" ".join([*before, line]))
        return len(before)

    def lines(self) -> list[str]:
        row = self.database.look(ORG, self.READ)
        assert row is not None
        return str(row["body"]).split()


def test_many_appends_are_complete_and_in_the_order_that_each_was_told(postgres_url: str) -> None:
    with opened(postgres_url, PostgresSettings(together_s=0.05, connections_max=4)) as database:
        text = Appended(database)
        places: dict[str, int] = {}

        def work(client: int) -> None:
            for turn in range(50):
                line = f"c{client}n{turn}"
                places[line] = text.append(database, line)

        assert together([lambda client=client: work(client) for client in range(16)]) == []
        assert len(places) == 800
        assert text.lines() == sorted(places, key=places.__getitem__)


def test_two_processes_take_turns(postgres_url: str) -> None:
    """While both are at work neither has its whole say before the other."""
    with (
        opened(postgres_url, PostgresSettings(together_s=0.05)) as one,
        opened(postgres_url, PostgresSettings(together_s=0.05)) as other,
    ):
        text = Appended(one)

        def work(name: str, database: PostgresDatabase) -> None:
            for turn in range(40):
                text.append(database, f"{name}.{turn}")

        works: Sequence[Callable[[], None]] = [
            lambda name=f"{owner}{client}", database=database: work(name, database)
            for owner, database in (("a", one), ("b", other))
            for client in range(6)
        ]
        assert together(works) == []
        owners = [line[0] for line in text.lines()]
        assert len(owners) == 480
        begun = max(owners.index("a"), owners.index("b"))  # the machine lets one of them begin
        both_at_work = owners[begun : min(_last(owners, "a"), _last(owners, "b"))]
        changes = sum(now != then for then, now in pairwise(both_at_work))
        assert changes >= len(both_at_work) / 40, "".join(owners)


@dataclass
class Writers:
    """Writers that append until they are done, and note what each line was told."""

    text: Appended
    kept: list[str] = field(default_factory=list[str])
    refused: list[str] = field(default_factory=list[str])
    ended: threading.Event = field(default_factory=threading.Event)

    def run(self, clients: int, each: int) -> None:
        """All of them at once."""
        try:
            assert together([partial(self.client, client, each) for client in range(clients)]) == []
        finally:
            self.ended.set()

    def client(self, client: int, each: int) -> None:
        for turn in range(each):
            line = f"c{client}n{turn}"
            try:
                self.text.append(self.text.database, line)
            except Raced:
                self.refused.append(line)
            except StoreError as error:
                if str(error) != LOST_AT_COMMIT:
                    self.refused.append(line)
            else:
                self.kept.append(line)

    def got_to(self, count: int) -> bool:
        return len(self.kept) >= count or self.ended.is_set()


def test_nothing_acknowledged_is_lost_when_connections_are_cut(postgres_url: str) -> None:
    with opened(postgres_url, PostgresSettings(together_s=0.05)) as database:
        writers = Writers(Appended(database))

        def cut() -> None:
            for number in range(1, 26):
                until(partial(writers.got_to, 8 * number))
                if number % 5:
                    cut_connections(postgres_url)
                    continue
                # These cannot fall between two transactions.
                with pytest.raises(StoreError):
                    writers.text.append(database, f"cut{number}", partial(cut_connections, postgres_url))

        assert together([lambda: writers.run(8, 60), cut]) == []
        lines = writers.text.lines()
        assert len(lines) == len(set(lines)), "nothing is there twice"
        assert set(writers.kept) <= set(lines), "what was acknowledged is there"
        assert not set(writers.refused) & set(lines), "what was refused is not"
        assert writers.kept
        assert not any(line.startswith("cut") for line in lines), "nor is what was cut off in the middle"


def _last(owners: Sequence[str], owner: str) -> int:
    return len(owners) - 1 - owners[::-1].index(owner)
