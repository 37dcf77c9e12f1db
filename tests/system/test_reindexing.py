"""Every vector made anew in another space: complete, resumable, beside servers that go on, and never mixed."""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import cast

import pytest
from reindexing_kit import NEW, TOO_MANY, Counting, Stopped, agrees, quiet, reindexing, stop_at

from fakes import ORG, Clock, Core, FailingEmbedder, bench_of
from filled import CODE_ORG, ORGS, TRACKER_ORG, fill, searched, whole_core
from loom import compose
from loom.models.hashing import HashingEmbedder
from loom.models.interface import EmbedderFailed
from loom.planes.tracker.search import shelf as tracker_shelf
from loom.storage.indexes import Vector
from loom.storage.interface import Database
from loom.system.reindexing import Reindex, ReindexFailed
from loom.system.spaces import Spaces

EVERY = {org: org for org in ORGS}


@pytest.fixture
def core(database: Database, clock: Clock, pool: Executor, tmp_path: Path, fill_again: Callable[..., None]) -> Core:
    """A store in which every plane holds something."""
    made = whole_core(tmp_path / "home", database, clock, pool)
    fill_again(made, fill)
    return made


def held(database: Database) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for org in database.orgs():
        with database.transaction(org, write=False) as tx:
            found[org] = dict(tx.vectors.spaces())
    return found


def with_vectors(database: Database, space: str) -> dict[tuple[str, str], set[int]]:
    """The items of each org and plane that have vectors in the space."""
    found: dict[tuple[str, str], set[int]] = {}
    for org in database.orgs():
        with database.transaction(org, write=False) as tx:
            for plane in compose.VECTORED:
                places = plane.after(tx, 0, TOO_MANY)
                found[org, plane.name] = {
                    item_id for item_id, shelf in places if not tx.vectors.missing(shelf, space, [item_id])
                }
    return found


def test_every_plane_of_every_org_has_the_vectors_in_the_new_space_that_it_had(core: Core, spaces: Spaces) -> None:
    old = core.embedder.space.fingerprint
    before = with_vectors(core.database, old)
    assert all(
        before[org, plane]
        for org, plane in (
            (ORG, "memory"),
            (ORG, "conversation"),
            (ORG, "knowledge"),
            (TRACKER_ORG, "tracker"),
            (CODE_ORG, "code"),
        )
    )
    done = reindexing(core, spaces).run()
    assert with_vectors(core.database, NEW.space.fingerprint) == before
    assert done.items == sum(len(ids) for ids in before.values())
    assert (done.refused, spaces.book().serving, spaces.book().building) == (0, NEW.space, None)
    assert done.dropped >= done.items
    assert {name for org in held(core.database).values() for name in org} == {NEW.space.fingerprint}
    for org in ORGS:  # the planes' own notes agree, so nothing is done again
        counting = Counting()
        for part in compose.PLANES:
            for sweep in part.SWEEPS:
                sweep(replace(core.bench, embedder=counting), org)
        core.drain(org)
        assert counting.texts == []
    with core.database.transaction(ORG, write=False) as tx:
        states = tx.rows("SELECT DISTINCT state, space FROM knowledge_document WHERE org = :org")
        assert [(row["state"], row["space"]) for row in states] == [("ready", NEW.space.fingerprint)]
    with core.database.transaction(CODE_ORG, write=False) as tx:
        marks = tx.rows("SELECT DISTINCT vector_space FROM code_symbol WHERE org = :org")
        assert [row["vector_space"] for row in marks] == [NEW.space.fingerprint]


def test_a_new_server_that_begins_before_the_planes_have_noted_it_makes_nothing_again(
    core: Core, spaces: Spaces
) -> None:
    reindexing(core, spaces).run()
    with core.database.transaction(ORG, write=True) as tx:
        tx.run("UPDATE knowledge_document SET space = 'before' WHERE org = :org")
        tx.run("UPDATE knowledge_chunk SET space = 'before' WHERE org = :org")
    with core.database.transaction(CODE_ORG, write=True) as tx:
        tx.run("UPDATE code_symbol SET vector_space = 'before' WHERE org = :org")
    counting = Counting()
    following = replace(core, embedder=cast("FailingEmbedder", counting))
    for org in ORGS:
        for part in compose.PLANES:
            for sweep in part.SWEEPS:
                sweep(following.bench, org)
        following.drain(org)
    assert counting.texts == []
    with core.database.transaction(ORG, write=False) as tx:
        states = tx.rows("SELECT DISTINCT state, space FROM knowledge_document WHERE org = :org")
        assert [(row["state"], row["space"]) for row in states] == [("ready", NEW.space.fingerprint)]
        chunks = tx.rows("SELECT DISTINCT space FROM knowledge_chunk WHERE org = :org")
        assert [row["space"] for row in chunks] == [NEW.space.fingerprint]
    with core.database.transaction(CODE_ORG, write=False) as tx:
        marks = tx.rows("SELECT DISTINCT vector_space FROM code_symbol WHERE org = :org")
        assert [row["vector_space"] for row in marks] == [NEW.space.fingerprint]


def test_until_the_switch_searches_find_what_they_found(core: Core, spaces: Spaces) -> None:
    spaces.adopt(core.embedder.space)
    before = searched(core, EVERY)
    seen: list[str] = []

    def at(count: int) -> None:
        if count and len(seen) < 3:
            seen.append(searched(core, EVERY))
            assert spaces.book().serving == core.embedder.space

    reindexing(core, spaces, Counting(at=at)).run()
    assert seen == [before] * 3


def test_what_is_done_is_not_done_again_after_it_was_killed(small: Core, spaces: Spaces) -> None:
    first = Counting(at=stop_at(100))
    with pytest.raises(Stopped):
        reindexing(small, spaces, first).run()
    assert spaces.book().building == NEW.space
    assert set(held(small.database)[ORG]) == {small.embedder.space.fingerprint, NEW.space.fingerprint}
    second = Counting()
    reindexing(small, spaces, second).run()
    assert len(first.texts) >= 100
    assert len(second.texts) == 200 - len(first.texts)
    assert len(set(first.texts) | set(second.texts)) == 200
    assert spaces.book().serving == NEW.space


def test_killed_after_the_switch_it_drops_the_old_vectors_when_it_is_run_again(small: Core, spaces: Spaces) -> None:
    run = reindexing(small, spaces)

    def wait(_: float) -> None:
        raise Stopped

    with pytest.raises(Stopped):
        replace(run, wait=wait).run()
    assert spaces.book().serving == NEW.space
    assert len(held(small.database)[ORG]) == 2
    again = Counting()
    done = reindexing(small, spaces, again).run()
    assert (again.texts, done.items, done.dropped) == ([], 0, 200)
    assert held(small.database)[ORG] == {NEW.space.fingerprint: 32}


def test_what_servers_of_the_old_space_write_meanwhile_is_in_the_new_one(small: Core, spaces: Spaces) -> None:
    """Changed, new and deleted items; also those that were embedded already."""
    spaces.adopt(small.embedder.space)
    written: set[int] = set()

    def at(count: int) -> None:
        if count not in written and len(written) < 3:
            written.add(count)
            small.call("memory.set", memory_key="k0", value=f"changed {count}")
            small.call("memory.set", memory_key=f"new{count}", value=f"came {count}")
            small.call("memory.delete", memory_key=f"k{10 + len(written)}")

    reindexing(small, spaces, Counting(at=at)).run()
    assert len(written) == 3
    agrees(small, NEW)


def test_a_write_that_came_with_old_vectors_after_the_switch_is_caught(small: Core, spaces: Spaces) -> None:
    spaces.adopt(small.embedder.space)
    run = reindexing(small, spaces)

    def wait(_: float) -> None:
        assert spaces.book().serving == NEW.space
        small.call("memory.set", memory_key="k0", value="a straggler")

    replace(run, wait=wait).run()
    agrees(small, NEW)


def test_many_writers_meanwhile_leave_no_vector_of_another_text(small: Core, spaces: Spaces) -> None:
    spaces.adopt(small.embedder.space)
    over: list[bool] = []

    def write(worker: int) -> None:
        number = 0
        while not over:
            small.call("memory.set", memory_key=f"k{worker}", value=f"said {worker} {number}")
            number += 1

    writers = [Thread(target=write, args=(worker,)) for worker in range(4)]
    for writer in writers:
        writer.start()

    def wait(_: float) -> None:
        over.append(True)
        for writer in writers:
            writer.join()

    try:
        replace(reindexing(small, spaces), wait=wait).run()
    finally:
        over.append(True)
    agrees(small, NEW)


def test_going_back_starts_anew_since_texts_have_changed(small: Core, spaces: Spaces) -> None:
    """Vectors left by a crash are of texts that servers of the other space have changed since."""
    old = HashingEmbedder()
    spaces.adopt(old.space)

    def wait(_: float) -> None:
        raise Stopped

    with pytest.raises(Stopped):
        replace(reindexing(small, spaces), wait=wait).run()
    with small.database.transaction(ORG, write=True) as tx:  # a server of an earlier release leaves old vectors there
        places = compose.VECTORED[0].after(tx, 0, 1)
        wrong = old.embed_passages(["something else"], 1.0)
        tx.vectors.add(places[0][1], places[0][0], old.space.fingerprint, wrong)
    reindexing(small, spaces, old).run()
    assert spaces.book().serving == old.space
    agrees(small, old)


def test_another_reindex_stops_the_first(small: Core, spaces: Spaces) -> None:
    other = HashingEmbedder(16)

    def at(count: int) -> None:
        if count:
            spaces.build(other.space)

    with pytest.raises(ReindexFailed, match="another reindex began"):
        reindexing(small, spaces, Counting(at=at)).run()
    assert spaces.book().building == other.space
    reindexing(small, spaces, other).run()
    assert held(small.database)[ORG] == {other.space.fingerprint: 16}


class Broken(Counting):
    """Fails for texts with a word, or for all."""

    def __init__(self, word: str) -> None:
        super().__init__()
        self._word = word

    def embed_passages(self, texts: Sequence[str], timeout_s: float) -> list[Vector]:
        if any(self._word in text for text in texts):
            raise EmbedderFailed("the endpoint answers HTTP 400")
        return super().embed_passages(texts, timeout_s)


def test_a_text_that_the_model_refuses_does_not_hold_up_the_others(small: Core, spaces: Spaces) -> None:
    done = reindexing(small, spaces, Broken("word77 ")).run()
    assert (done.items, done.refused) == (199, 1)
    assert spaces.book().serving == NEW.space


def test_a_model_that_does_not_answer_stops_it_and_says_so(small: Core, spaces: Spaces) -> None:
    with pytest.raises(ReindexFailed, match="HTTP 400"):
        reindexing(small, spaces, Broken("")).run()
    assert spaces.book().building == NEW.space
    reindexing(small, spaces).run()
    assert spaces.book().serving == NEW.space


def test_with_the_stores_own_embedder_it_makes_what_is_missing(small: Core, spaces: Spaces) -> None:
    own = Counting(64)
    spaces.adopt(own.space)
    with small.database.transaction(ORG, write=True) as tx:
        (one, two) = compose.VECTORED[0].after(tx, 0, 2)
        tx.vectors.remove(one[1], one[0])
        tx.vectors.remove(two[1], two[0])
    done = reindexing(small, spaces, own).run()
    assert (done.items, len(own.texts), done.dropped) == (2, 2, 0)
    agrees(small, own)


def test_an_empty_store_is_of_the_new_space_at_once(database: Database, clock: Clock, spaces: Spaces) -> None:
    bench = bench_of(database, NEW, clock)
    done = Reindex(bench, spaces, compose.VECTORED, quiet, settle_s=0).run()
    assert (done.items, done.dropped, spaces.book().serving) == (0, 0, NEW.space)


def test_an_issue_that_changes_loses_its_vectors_in_every_space(core: Core) -> None:
    with core.database.transaction(TRACKER_ORG, write=True) as tx:
        (issue, *_) = tx.rows("SELECT item_id FROM tracker_issue WHERE org = :org AND number = 1")
        item_id = int(str(issue["item_id"]))
        vector = NEW.embed_query("Kettle", 1.0)
        tx.vectors.add(tracker_shelf("bugs"), item_id, NEW.space.fingerprint, [vector])
    core.call("tracker.add", org=TRACKER_ORG, namespace="bugs", number=1, title="Another title", body="b")
    with core.database.transaction(TRACKER_ORG, write=False) as tx:
        assert tx.vectors.missing(tracker_shelf("bugs"), NEW.space.fingerprint, [item_id]) == [item_id]


def test_no_plane_with_vectors_is_forgotten(core: Core) -> None:
    """Every vector in the store is of an item that a reindex goes through."""
    space = core.embedder.space.fingerprint
    known = with_vectors(core.database, space)
    for org in ORGS:
        with core.database.transaction(org, write=False) as tx:
            if "Postgres" in type(core.database).__name__:
                sql = "SELECT DISTINCT item_id FROM vector_row WHERE org = :org"
            else:
                sql = "SELECT DISTINCT item_id FROM vector_row WHERE data IS NOT NULL AND :org = :org"
            there = {int(str(row["item_id"])) for row in tx.rows(sql)}
        assert there == {item_id for (its, _), ids in known.items() if its == org for item_id in ids}
