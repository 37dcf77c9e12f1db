"""`--anew`: what the model behind a name made before goes first, once, however often the run is killed."""

import pytest
from reindexing_kit import Counting, Stopped, agrees, quiet, reindexing, stop_at

from fakes import ORG, Core
from loom import compose
from loom.models.hashing import HashingEmbedder
from loom.system.reindexing import Reindex
from loom.system.spaces import Spaces


def test_anew_forgets_what_the_model_behind_the_name_made_before(small: Core, spaces: Spaces) -> None:
    own = Counting(64)
    spaces.adopt(own.space)
    done = reindexing(small, spaces, own, anew=True).run()
    assert (done.items, len(own.texts)) == (200, 200)
    agrees(small, own)


def test_anew_that_was_killed_goes_on_and_anew_that_was_done_begins_again(small: Core, spaces: Spaces) -> None:
    for dimension in (64, 32):  # the store's own space, and another beside it
        spaces.adopt(HashingEmbedder(64).space)
        first = Counting(dimension, at=stop_at(100))
        with pytest.raises(Stopped):
            reindexing(small, spaces, first, anew=True).run()
        second = Counting(dimension)
        done = reindexing(small, spaces, second, anew=True).run()
        assert 100 <= len(first.texts) < 200
        assert len(second.texts) == done.items == 200 - len(first.texts)
        assert len(set(first.texts) | set(second.texts)) == 200
        agrees(small, second)
        assert len(spaces.book().kept) == 64 // dimension  # the run's own note has gone
        third = Counting(dimension)
        reindexing(small, spaces, third, anew=True).run()
        assert len(third.texts) == 200


class Losing(Reindex):
    """Is killed half way through taking out the old vectors."""

    def _drop(self, keep: set[str], what: str) -> int:
        super()._drop(keep | {"some that stay"}, what)
        raise Stopped


def test_killed_while_old_vectors_go_it_does_not_keep_the_others(small: Core, spaces: Spaces) -> None:
    own = Counting(64)
    spaces.adopt(own.space)
    with small.database.transaction(ORG, write=True) as tx:  # one that the model behind the name made before
        (place,) = compose.VECTORED[0].after(tx, 0, 1)
        tx.vectors.remove(place[1], place[0])
        tx.vectors.add(place[1], place[0], own.space.fingerprint, own.embed_passages(["something else"], 1.0))
    own.texts.clear()
    run = reindexing(small, spaces, own, anew=True)
    killed = Losing(run.bench, spaces, run.planes, quiet, anew=True, settle_s=0, wait=run.wait)
    with pytest.raises(Stopped):
        killed.run()
    reindexing(small, spaces, own).run()  # whoever goes on has to see to it
    assert len(own.texts) == 200
    agrees(small, own)
