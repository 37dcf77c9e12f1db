from typing import Any

import pytest
from memory_kit import ADMIN, WRITER, found, keys, refused, sweep

from fakes import ORG, Core
from loom.errors import AmbiguousKey, Conflict, Locked, NotFound, PinnedConflict, Rejected, ShaMismatch
from loom.ops import fields


def delete(core: Core, made: dict[str, Any]) -> None:
    del made
    core.call("memory.delete", memory_key="gone")


def redact(core: Core, made: dict[str, Any]) -> None:
    del made
    core.call("memory.redact", memory_key="gone")


def delete_version(core: Core, made: dict[str, Any]) -> None:
    core.call("memory.delete_version", memory_key="gone", version_text=made["version_text"])


def expire(core: Core, made: dict[str, Any]) -> None:
    del made
    core.call("memory.touch", memory_key="gone", ttl_seconds=1)
    core.clock.step(seconds=1)


def expire_and_sweep(core: Core, made: dict[str, Any]) -> None:
    expire(core, made)
    sweep(core)


def overwrite(core: Core, made: dict[str, Any]) -> None:
    del made
    core.call("memory.set", memory_key="gone", value="nothing of the kind")


def overwrite_without_embedder(core: Core, made: dict[str, Any]) -> None:
    core.embedder.off.set()
    overwrite(core, made)
    core.embedder.off.clear()


WAYS = [delete, redact, delete_version, expire, expire_and_sweep, overwrite, overwrite_without_embedder]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_what_is_gone_is_found_by_nothing_and_top_k_is_filled(core: Core, way: Any) -> None:
    secret = "the walrus password is plumbago"
    made = core.call("memory.set", memory_key="gone", value=secret, tags=["sea"])
    for number in range(8):
        core.call("memory.set", memory_key=f"live{number}", value=f"walrus fact {number}", tags=["sea"])
    assert found(core, "walrus password plumbago")[0] == "gone"
    way(core, made)
    for turn in range(2):
        for recipe in ("", "fast", "quality", "verbatim", "code", "temporal", "graph"):
            for query in ("plumbago", secret):
                answer = core.call("memory.search", query=query, recipe=recipe, bodies="full", explain=True)
                assert "plumbago" not in str(answer), (recipe, query, turn)
        hits = core.call("memory.search", query="walrus", top_k=8)["results"]
        assert {f"live{number}" for number in range(8)} >= {hit["memory_key"] for hit in hits} - {"gone"}
        assert len(hits) == 8
        assert "plumbago" not in str(core.call("memory.list", bodies="full"))
        assert keys(core.call("memory.list", contains="plumbago")) == []
        assert "plumbago" not in str(core.call("memory.get", memory_key="gone"))
        core.drain()


@pytest.mark.parametrize("way", [redact, delete_version], ids=lambda way: way.__name__)
def test_what_is_erased_is_in_no_history(core: Core, way: Any) -> None:
    made = core.call("memory.set", memory_key="gone", value="plumbago", tags=["plumbago"], source_trace="plumbago")
    way(core, made)
    assert "plumbago" not in str(core.call("memory.history", memory_key="gone"))
    for table in ("ledger_version", "ledger_item", "idempotency"):
        with core.database.transaction(ORG, write=False) as tx:
            rows = tx.rows(f"SELECT * FROM {table} WHERE org = :org")  # noqa: S608  # three names above
        assert "plumbago" not in str(rows)


def test_a_deleted_memory_comes_back_whole(core: Core) -> None:
    core.call("memory.set", memory_key="k", value="walrus", tags=["t"], confidence=0.5, session_id="s", ttl_seconds=99)
    gone = core.call("memory.delete", memory_key="k", source_trace="cleaning up")
    assert (gone["status"], gone["recoverable_until"]) == ("tombstoned", "2026-03-15T12:00:00Z")
    refused(NotFound, core.call, "memory.delete", memory_key="k")
    back = core.call("memory.restore", memory_key="k")
    got = core.call("memory.get", memory_key="k")
    assert (got["value"], got["tags"], got["confidence"], got["session_id"]) == ("walrus", ["t"], 0.5, "s")
    assert got["expires_at"] is None
    assert back["version"] > gone["version"]
    assert core.call("memory.search", query="walrus")["results"][0]["similarity"] is not None
    refused(Conflict, core.call, "memory.restore", memory_key="k")
    refused(NotFound, core.call, "memory.restore", memory_key="never")
    traces = [one["source_trace"] for one in core.call("memory.history", memory_key="k")["versions"]]
    assert traces == ["", "cleaning up", ""]


def test_an_expired_memory_comes_back(core: Core) -> None:
    for swept in (False, True):
        core.call("memory.set", memory_key=f"k{swept}", value="v", ttl_seconds=1)
        core.clock.step(seconds=1)
        if swept:
            sweep(core)
            assert core.call("memory.get", memory_key=f"k{swept}")["status"] == "tombstoned"
            [ended, _] = core.call("memory.history", memory_key=f"k{swept}")["versions"]
            assert ended["source_trace"] == "expired"
        core.call("memory.restore", memory_key=f"k{swept}")
        assert core.call("memory.get", memory_key=f"k{swept}")["found"]


def test_after_fourteen_days_it_is_gone_for_good(core: Core) -> None:
    core.call("memory.set", memory_key="k", value="v")
    core.call("memory.delete", memory_key="k")
    core.clock.step(days=13, hours=23)
    sweep(core)
    assert core.call("memory.history", memory_key="k")["versions"]
    core.clock.step(hours=1)
    refused(NotFound, core.call, "memory.restore", memory_key="k")
    sweep(core)
    refused(NotFound, core.call, "memory.history", memory_key="k")
    assert core.call("memory.get", memory_key="k")["status"] == "missing"
    core.call("memory.set", memory_key="k", value="again")
    assert found(core, "again") == ["k"]


def test_delete_is_guarded(core: Core) -> None:
    core.call("memory.set", memory_key="k", value="v")
    refused(ShaMismatch, core.call, "memory.delete", memory_key="k", if_match_sha256="0" * 64)
    error = refused(Rejected, core.call, "memory.delete", memory_key="k", source_trace="memory.delete_version:1")
    assert error.extras["field"] == "source_trace"
    core.call("memory.pin", memory_key="k")
    for op in ("memory.delete", "memory.redact"):
        refused(PinnedConflict, core.call, op, memory_key="k")
    core.call("memory.pin", memory_key="k", pinned=False)
    for mode in ("no_delete", "read_only"):
        core.call("memory.lock", memory_key="k", mode=mode)
        version_text = core.call("memory.get", memory_key="k")["version_text"]
        refused(Locked, core.call, "memory.delete", memory_key="k")
        refused(Locked, core.call, "memory.redact", memory_key="k")
        refused(Locked, core.call, "memory.delete_version", memory_key="k", version_text=version_text)
    core.call("memory.set", memory_key="k", value="codex", agent="codex")
    refused(AmbiguousKey, core.call, "memory.delete", memory_key="k", agent="cursor")


def test_the_next_older_version_lives_again(core: Core) -> None:
    core.call("memory.set", memory_key="k", value="one", tags=["a"])
    two = core.call("memory.set", memory_key="k", value="two")
    three = core.call("memory.set", memory_key="k", value="three")
    gone = core.call("memory.delete_version", memory_key="k", version_text=two["version_text"])
    assert (gone["version"], gone["deleted_version_text"]) == (three["version"], two["version_text"])
    assert core.call("memory.get", memory_key="k")["value"] == "three"
    core.call("memory.delete_version", memory_key="k", version_text=three["version_text"])
    got = core.call("memory.get", memory_key="k")
    assert (got["value"], got["tags"], got["status"]) == ("one", ["a"], "live")
    core.drain()
    assert found(core, "one") == ["k"]
    assert "three" not in str(core.call("memory.history", memory_key="k"))
    refused(NotFound, core.call, "memory.delete_version", memory_key="k", version_text=three["version_text"])
    refused(NotFound, core.call, "memory.delete_version", memory_key="k", version_text="5")
    refused(Rejected, core.call, "memory.delete_version", memory_key="k", version_text="five")
    traces = [one["source_trace"] for one in core.call("memory.history", memory_key="k")["versions"]]
    assert traces == [f"memory.delete_version:{number}" for number in (three["version"], two["version"])] + [""]
    after = core.call("memory.set", memory_key="k", value="four")
    assert after["version"] > three["version"]
    assert core.call("memory.history", memory_key="k")["versions"][0]["status"] == "live"


def test_the_last_version_of_a_pinned_memory_stays(core: Core) -> None:
    one = core.call("memory.set", memory_key="k", value="one")
    two = core.call("memory.set", memory_key="k", value="two")
    core.call("memory.pin", memory_key="k")
    core.call("memory.delete_version", memory_key="k", version_text=two["version_text"])
    refused(PinnedConflict, core.call, "memory.delete_version", memory_key="k", version_text=one["version_text"])
    core.call("memory.pin", memory_key="k", pinned=False)
    core.call("memory.delete_version", memory_key="k", version_text=one["version_text"])
    assert core.call("memory.get", memory_key="k")["status"] == "tombstoned"
    refused(NotFound, core.call, "memory.restore", memory_key="k")


def test_a_redacted_key_can_be_written_anew(core: Core) -> None:
    core.call("memory.set", memory_key="k", value="plumbago")
    answer = core.call("memory.redact", memory_key="k")
    assert (answer["status"], answer["versions_redacted"]) == ("redacted", 1)
    assert core.call("memory.redact", memory_key="k")["versions_redacted"] == 0
    refused(NotFound, core.call, "memory.restore", memory_key="k")
    core.call("memory.set", memory_key="k", value="new")
    assert core.call("memory.get", memory_key="k")["value"] == "new"
    assert "plumbago" not in str(core.call("memory.history", memory_key="k"))
    core.call("memory.delete", memory_key="k")
    assert core.call("memory.redact", memory_key="k")["status"] == "redacted"


def test_the_sweep_is_bounded_and_goes_on(core: Core) -> None:
    items = [{"memory_key": f"k{number}", "value": number, "ttl_seconds": 1} for number in range(250)]
    core.call("memory.set_many", items=items)
    core.clock.step(seconds=1)
    assert core.call("memory.list")["total"] == 0
    sweep(core)
    assert core.call("memory.list", statuses=["tombstoned"])["total"] == 200
    sweep(core)
    assert core.call("memory.list", statuses=["tombstoned"])["total"] == 250
    core.clock.step(days=14)
    for _ in range(2):
        sweep(core)
    assert core.call("memory.list", statuses=["tombstoned", "expired", "live"])["total"] == 0
    assert fields.DAY_US == 86_400_000_000


def test_a_time_to_live_is_given_and_taken(core: Core) -> None:
    made = core.call("memory.set", memory_key="k", value="v")
    answer = core.call("memory.touch", memory_key="k", ttl_seconds=60)
    assert (answer["expires_at"], answer["version"]) == ("2026-03-01T12:01:00Z", made["version"])
    assert core.call("memory.touch", memory_key="k")["expires_at"] is None
    assert core.call("memory.touch", memory_key="k", ttl_seconds=0)["expires_at"] is None
    core.call("memory.touch", memory_key="k", ttl_seconds=60)
    assert core.call("memory.pin", memory_key="k")["expires_at"] is None
    refused(PinnedConflict, core.call, "memory.touch", memory_key="k", ttl_seconds=60)
    core.call("memory.touch", memory_key="k", ttl_seconds=0)
    core.call("memory.pin", memory_key="k", pinned=False)
    core.call("memory.lock", memory_key="k", mode="no_delete")
    refused(Locked, core.call, "memory.touch", memory_key="k", ttl_seconds=60)
    refused(NotFound, core.call, "memory.touch", memory_key="no", ttl_seconds=60)
    refused(Rejected, core.call, "memory.touch", memory_key="k", ttl_seconds=-1)


def test_only_an_admin_loosens_a_lock(core: Core) -> None:
    core.call("memory.set", memory_key="k", value="v")
    locked = core.call("memory.lock", memory_key="k", mode="no_delete", reason="agreed", caller=WRITER)
    assert (locked["lock_mode"], locked["lock_reason"]) == ("no_delete", "agreed")
    assert core.call("memory.update", memory_key="k", value="w")["changed"]
    core.call("memory.lock", memory_key="k", mode="read_only", caller=WRITER)
    for op, args in (("memory.update", {"value": 1}), ("memory.pin", {}), ("memory.touch", {"ttl_seconds": 5})):
        error = refused(Locked, core.call, op, memory_key="k", caller=ADMIN, **args)
        assert error.extras["lock"] == "read_only"
    for mode in ("no_delete", ""):
        refused(Locked, core.call, "memory.lock", memory_key="k", mode=mode, caller=WRITER)
    opened = core.call("memory.lock", memory_key="k", mode="", reason="x", caller=ADMIN)
    assert (opened["lock_mode"], opened["lock_reason"]) == ("", "")
    core.call("memory.delete", memory_key="k", caller=WRITER)
    error = refused(Rejected, core.call, "memory.lock", memory_key="k", mode="tight")
    assert error.extras["field"] == "mode"
    refused(NotFound, core.call, "memory.lock", memory_key="k")
