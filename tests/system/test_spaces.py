"""Which space the store's vectors are of: on record, and found out where there is no record yet."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Event

import numpy as np
import pytest

from fakes import Clock
from loom.models.canaries import pack
from loom.models.facts import Facts
from loom.models.foreign import Family
from loom.models.hashing import HashingEmbedder
from loom.models.interface import EmbedderFailed, Space
from loom.storage.indexes import Shelf, Vector
from loom.storage.interface import Database, StoreError
from loom.system.guard import SpaceGuard
from loom.system.spaces import Spaces

SMALL, LARGE = HashingEmbedder(32), HashingEmbedder(128)
SHELF = Shelf("memory", "local")
PATIENCE_S = 5.0


def put(database: Database, space: Space, org: str = "dev") -> None:
    vector = np.zeros(space.dimension, dtype=np.float32)
    vector[0] = 1.0
    with database.transaction(org, write=True) as tx:
        tx.vectors.add(SHELF, 1, space.fingerprint, [vector])


def test_a_store_without_vectors_takes_any_space_and_notes_none(database: Database, spaces: Spaces) -> None:
    spaces.check(SMALL.space, "hashing")
    assert spaces.book().serving is None
    assert spaces.served() == ""
    with database.transaction("dev", write=True):
        pass
    spaces.check(LARGE.space, "hashing")


def test_a_space_on_record_is_what_the_store_is_of(spaces: Spaces, database: Database) -> None:
    assert spaces.adopt(SMALL.space) == SMALL.space.fingerprint
    assert spaces.adopt(LARGE.space) == SMALL.space.fingerprint
    put(database, SMALL.space)
    spaces.check(SMALL.space, "hashing")
    with pytest.raises(StoreError) as refused:
        spaces.check(LARGE.space, "other")
    said = str(refused.value)
    assert "are of hashing (32 dimensions" in said
    assert "LOOM_EMBEDDER=other) makes vectors of hashing (128 dimensions" in said
    assert "set it back" in said
    assert "`loom reindex --embedder other`" in said
    assert said.count(". ") == 0  # one sentence
    assert spaces.book().serving == SMALL.space


def test_a_record_without_any_vector_gives_way_when_nobody_makes_some(spaces: Spaces, clock: Clock) -> None:
    spaces.adopt(SMALL.space)
    clock.step(seconds=599)
    with pytest.raises(StoreError, match=r"are of hashing \(32 dimensions"):
        spaces.check(LARGE.space, "other")
    assert spaces.use(SMALL.space)
    clock.step(seconds=599)
    with pytest.raises(StoreError, match=r"are of hashing \(32 dimensions"):
        spaces.check(LARGE.space, "other")
    clock.step(seconds=1)
    spaces.check(LARGE.space, "other")
    assert not spaces.use(SMALL.space)
    assert spaces.book().serving == LARGE.space
    assert [one.state for one in spaces.book().kept if one.space == SMALL.space] == ["known"]


def test_a_store_from_before_the_record_takes_the_space_that_it_has_vectors_of(
    spaces: Spaces, database: Database
) -> None:
    put(database, SMALL.space, "other-org")
    with pytest.raises(StoreError, match=r"are of another model \(32 dimensions\)"):
        spaces.check(LARGE.space, "large")
    assert spaces.book().serving is None
    spaces.check(SMALL.space, "small")
    assert spaces.book().serving == SMALL.space


def test_of_two_spaces_from_before_the_record_the_configured_one_counts_and_the_log_says_so(
    spaces: Spaces, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    put(database, SMALL.space)
    put(database, LARGE.space)
    with pytest.raises(StoreError, match=r"\(32 dimensions and 128 dimensions\)"):
        spaces.check(HashingEmbedder(16).space, "sixteen")
    spaces.check(SMALL.space, "small")
    assert spaces.book().serving == SMALL.space
    assert "loom reindex --embedder small" in caplog.text


def test_of_a_store_from_before_the_record_no_half_filled_space_counts(spaces: Spaces, database: Database) -> None:
    put(database, SMALL.space)
    spaces.build(LARGE.space)
    put(database, LARGE.space)
    with pytest.raises(StoreError, match=r"\(32 dimensions\).*which was begun and goes on"):
        spaces.check(LARGE.space, "large")
    assert spaces.book().serving is None


def test_of_many_that_adopt_at_once_one_is_the_stores(spaces: Spaces) -> None:
    wanted = [HashingEmbedder(dimension).space for dimension in range(8, 24)]
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(spaces.adopt, wanted))
    serving = spaces.book().serving
    assert serving is not None
    assert found == {serving.fingerprint}


def test_a_reindex_is_begun_once_gone_on_with_and_given_up_for_another(spaces: Spaces) -> None:
    spaces.adopt(SMALL.space)
    assert spaces.build(LARGE.space)
    assert spaces.build(LARGE.space)  # as long as nobody says that what there was has gone
    spaces.cleared(LARGE.space, anew=False)
    assert not spaces.build(LARGE.space)
    assert (spaces.book().serving, spaces.book().building) == (SMALL.space, LARGE.space)
    other = HashingEmbedder(16).space
    assert spaces.build(other)
    assert not spaces.switch(LARGE.space)
    assert (spaces.book().serving, spaces.book().building) == (SMALL.space, other)
    spaces.cleared(other, anew=False)
    assert spaces.switch(other)
    assert (spaces.book().serving, spaces.book().building) == (other, None)
    assert not spaces.switch(other)
    assert not spaces.build(other)
    assert spaces.book().building is None


def test_a_run_that_makes_all_anew_goes_on_until_it_is_finished(spaces: Spaces) -> None:
    for serves in (False, True):
        spaces.adopt(SMALL.space)
        space = SMALL.space if serves else LARGE.space
        assert spaces.build(space, anew=True)
        assert spaces.build(space, anew=True)  # stopped before all had gone
        assert spaces.build(space)  # and any other run has to see to that
        spaces.cleared(space, anew=True)
        assert not spaces.build(space, anew=True)
        assert not spaces.build(space)
        assert not spaces.build(space, anew=True)
        spaces.finish(space)
        assert spaces.build(space, anew=True)
        spaces.cleared(space, anew=False)  # by a run that was to make nothing anew
        assert not spaces.build(space)
        assert spaces.build(space, anew=True)
        spaces.cleared(space, anew=True)
        assert spaces.build(HashingEmbedder(16).space)  # another is filled, so this one is given up
        assert spaces.build(space, anew=True)
        spaces.cleared(space, anew=True)
        spaces.finish(space)
    assert spaces.book().serving == SMALL.space


def test_a_run_that_makes_all_anew_begins_again_when_the_model_changes_once_more(spaces: Spaces) -> None:
    space = Family("openai", "m").space(8)
    one, other = np.eye(8, dtype=np.float32)[:2]
    spaces.keep(space, Facts(0.4, 0.1, {"a text": pack(one)}))
    spaces.adopt(space)
    assert spaces.build(space, anew=True)
    spaces.cleared(space, anew=True)
    spaces.keep(space, Facts(0.4, 0.1, {"a text": pack(one)}))
    assert not spaces.build(space, anew=True)
    spaces.keep(space, Facts(0.4, 0.1, {"a text": pack(other)}))
    assert spaces.build(space, anew=True)


def test_a_refusal_says_that_a_reindex_was_begun(spaces: Spaces, database: Database) -> None:
    spaces.adopt(SMALL.space)
    put(database, SMALL.space)
    spaces.build(LARGE.space)
    with pytest.raises(StoreError, match="which was begun and goes on where it stopped"):
        spaces.check(LARGE.space, "large")


def test_what_was_measured_is_kept_beside_the_space(spaces: Spaces) -> None:
    family = Family("openai", "m", query_prefix="query: ")
    assert spaces.find(family) is None
    eight, nine = family.space(8), family.space(9)
    spaces.keep(eight, Facts(0.4, 0.1, {"a text": "AAAA"}))
    assert spaces.find(family) == (eight, Facts(0.4, 0.1, {"a text": "AAAA"}))
    assert spaces.find(replace(family, dimension=9)) is None
    assert spaces.find(replace(family, query_prefix="")) is None
    spaces.keep(nine, Facts(0.5, 0.1, {}))
    assert spaces.find(family) is None  # either may be meant, so the model is to be asked
    assert spaces.find(replace(family, dimension=9)) == (nine, Facts(0.5, 0.1, {}))
    spaces.adopt(nine)
    assert spaces.find(family) == (nine, Facts(0.5, 0.1, {}))
    spaces.keep(nine, Facts(0.6, 0.1, {}))
    assert spaces.find(family) == (nine, Facts(0.6, 0.1, {}))
    assert spaces.book().serving == nine


class Moment:
    """A steady clock that a test moves."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_the_first_passage_makes_the_store_one_of_its_space(spaces: Spaces) -> None:
    guard = SpaceGuard(SMALL, spaces)
    guard.embed_query("a question", PATIENCE_S)
    guard.embed_passages([], PATIENCE_S)
    assert spaces.book().serving is None
    guard.embed_passages(["a text"], PATIENCE_S)
    assert spaces.book().serving == SMALL.space


def test_of_two_servers_on_a_new_store_the_later_one_gives_no_vectors(
    spaces: Spaces, caplog: pytest.LogCaptureFixture
) -> None:
    moment = Moment()
    first, second = SpaceGuard(SMALL, spaces, clock_s=moment), SpaceGuard(LARGE, spaces, clock_s=moment)
    assert first.fits()
    assert second.fits()
    first.embed_passages(["a text"], PATIENCE_S)
    with pytest.raises(EmbedderFailed, match="start it again"):
        second.embed_passages(["my secret text"], PATIENCE_S)
    with pytest.raises(EmbedderFailed, match="start it again") as failure:
        second.embed_query("my secret text", PATIENCE_S)
    assert not second.fits()
    assert caplog.text.count("start it again") == 1
    assert "secret" not in caplog.text + str(failure.value)


def test_a_switch_is_noticed_within_a_second_before_and_after_embedding(
    spaces: Spaces, caplog: pytest.LogCaptureFixture
) -> None:
    moment = Moment()
    guard = SpaceGuard(SMALL, spaces, clock_s=moment)
    guard.embed_passages(["a text"], PATIENCE_S)
    spaces.build(LARGE.space)
    spaces.switch(LARGE.space)
    guard.embed_query("asked within the second", PATIENCE_S)
    moment.now_s += 1.0
    with pytest.raises(EmbedderFailed, match="start it again"):
        guard.embed_query("asked after it", PATIENCE_S)
    assert not guard.fits()
    spaces.build(SMALL.space)
    spaces.switch(SMALL.space)
    moment.now_s += 1.0
    assert guard.fits()
    guard.embed_passages(["a text"], PATIENCE_S)
    assert caplog.text.count("start it again") == 1


class Switching(HashingEmbedder):
    """While it embeds, the store is switched to another space, and time passes."""

    def __init__(self, spaces: Spaces, moment: Moment) -> None:
        super().__init__(32)
        self._spaces, self._moment = spaces, moment

    def embed_passages(self, texts: Sequence[str], timeout_s: float) -> list[Vector]:
        self._spaces.build(LARGE.space)
        self._spaces.switch(LARGE.space)
        self._moment.now_s += 1.0
        return super().embed_passages(texts, timeout_s)


def test_vectors_that_were_under_way_at_the_switch_are_not_given_out(spaces: Spaces) -> None:
    spaces.adopt(SMALL.space)
    moment = Moment()
    guard = SpaceGuard(Switching(spaces, moment), spaces, clock_s=moment)
    with pytest.raises(EmbedderFailed, match="start it again"):
        guard.embed_passages(["a text"], PATIENCE_S)


class Held(Spaces):
    """A record that is written slowly: while `hold` is not set."""

    def __init__(self, database: Database, clock: Clock) -> None:
        super().__init__(database, clock)
        self.begun, self.hold = Event(), Event()

    def use(self, space: Space) -> bool:
        self._wait()
        return super().use(space)

    def adopt(self, space: Space) -> str:
        self._wait()
        return super().adopt(space)

    def _wait(self) -> None:
        self.begun.set()
        assert self.hold.wait(PATIENCE_S)


def test_who_embeds_while_another_one_notes_it_does_not_wait_for_the_record(database: Database, clock: Clock) -> None:
    held = Held(database, clock)
    Spaces(database, clock).adopt(SMALL.space)
    guard = SpaceGuard(SMALL, held)
    assert guard.fits()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(guard.embed_passages, ["a text"], PATIENCE_S)
        assert held.begun.wait(PATIENCE_S)
        try:
            assert len(pool.submit(guard.embed_passages, ["another"], PATIENCE_S).result(PATIENCE_S / 2)) == 1
            assert not first.done()
        finally:
            held.hold.set()
        assert len(first.result(PATIENCE_S)) == 1


def test_in_a_store_of_no_model_everybody_waits_for_the_first_note_but_not_beyond_the_time(
    database: Database, clock: Clock
) -> None:
    held = Held(database, clock)
    guard = SpaceGuard(SMALL, held)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(guard.embed_passages, ["a text"], PATIENCE_S)
        assert held.begun.wait(PATIENCE_S)
        with pytest.raises(EmbedderFailed, match="did not note in time"):
            guard.embed_passages(["another"], 0.05)
        held.hold.set()
        assert len(first.result(PATIENCE_S)) == 1
    assert len(guard.embed_passages(["another"], PATIENCE_S)) == 1
