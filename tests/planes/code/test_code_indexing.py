"""code.index as a job: incremental, resumable, bounded, and said as it goes."""

import threading
from dataclasses import replace
from pathlib import Path

import pytest
from code_kit import CODE_ORG, SHOP, Shelf, ShelfOf, repository, written

from fakes import CoreOf
from loom.access import namespaces
from loom.access.caller import Caller, Role
from loom.errors import Conflict, Denied, NotFound, Rejected
from loom.jobs import outbox
from loom.planes import code
from loom.planes.code import embeds, git, indexing, store, symbols
from loom.planes.code.documents import Library
from loom.planes.code.indexing import Indexer
from loom.planes.code.sources import Entry, Yard
from loom.storage.interface import Transaction

WRITER = Caller("token", Role.WRITER, {"org": CODE_ORG})


def file_ids(shelf: Shelf) -> dict[str, int]:
    with shelf.core.database.transaction(CODE_ORG, write=False) as tx:
        rows = tx.rows("SELECT path, file_id FROM code_file WHERE org = :org AND namespace = :n", n=shelf.namespace)
        return {str(row["path"]): int(str(row["file_id"])) for row in rows}


def count(shelf: Shelf, table: str) -> int:
    with shelf.core.database.transaction(CODE_ORG, write=False) as tx:
        row = tx.row(f"SELECT count(*) AS n FROM {table} WHERE org = :org")  # noqa: S608  # names of this file
        return int(str(row["n"])) if row else 0


TABLES = ("code_repository", "code_file", "code_symbol", "code_use", "code_pending")


def test_an_index_and_its_status(shelf: Shelf, shop: Path) -> None:
    assert shelf.call("code.index_status")["state"] == "none"
    asked = shelf.call("code.index", source=str(shop))
    assert (asked["state"], asked["repository"], asked["source"]) == ("waiting", "shop", str(shop))
    status = shelf.finish()
    assert (status["state"], status["files_done"], status["files_total"], status["problem"]) == ("ready", 4, 4, "")
    assert status["embedded"] == status["symbols"] == 11
    assert {one["language"]: one["files"] for one in status["languages"]} == {"": 2, "python": 2}
    assert status["finished_at"] >= status["requested_at"]


def test_only_what_changed_is_read_again(indexed: Shelf, shop: Path) -> None:
    before = file_ids(indexed)
    written(shop, {"shop/checkout.py": "def settle(): pass\n", "shop/new.py": "def fresh(): pass\n"})
    (shop / "tools" / "run.sh").unlink()
    status = indexed.index("")
    after = file_ids(indexed)
    assert status["state"] == "ready"
    assert {path for path in before if before[path] == after.get(path)} == {"shop/prices.py", "README.md"}
    assert after.keys() - before.keys() == {"shop/new.py"}
    assert "tools/run.sh" not in after
    assert "receipt" not in indexed.names("receipt")
    assert indexed.names("sweeping the warehouse floor with a broom", kinds=["file"]) == []
    assert indexed.names("settle")[0] == "settle"


def test_nothing_changed_touches_nothing(indexed: Shelf, shop: Path) -> None:
    before = file_ids(indexed)
    assert indexed.index(shop)["state"] == "ready"
    assert file_ids(indexed) == before


def test_a_file_that_becomes_unfit_leaves_the_index(indexed: Shelf, shop: Path) -> None:
    written(shop, {"shop/checkout.py": b"\x00\x01binary", "tools/run.sh": "x" * 30_000})
    status = indexed.index("")
    assert status["skipped"] == {"binary": 1, "generated": 1}
    assert set(file_ids(indexed)) == {"README.md", "shop/prices.py"}
    assert "pay" not in indexed.names("pay")


def test_secrets_never_reach_the_store(shelf: Shelf, tmp_path: Path) -> None:
    root = written(tmp_path / "r", {**SHOP, ".env": "PASSWORD=hunter2\n", "id_rsa": "hunter2\n"})
    assert shelf.index(root)["skipped"] == {"secret": 2}
    with pytest.raises(NotFound):
        shelf.call("code.read", path=".env")
    assert count(shelf, "code_file") == 4


def test_odd_files(shelf: Shelf, tmp_path: Path) -> None:
    odd: dict[str, str | bytes] = {
        "empty.py": "",
        "bom.py": b"\xef\xbb\xbfdef with_bom(): pass\n",
        "crlf.py": "def with_crlf():\r\n    pass\r\n",
        "latin.py": "# coding: latin-1\ndef l\u00e4tin(): return '\u00fc'\n".encode("latin-1"),
        "wide.py": "def wide(): pass\n".encode("utf-16"),
        "broken.py": "def whole(): pass\n\ndef half(:\n",
        "line.js": "var a=1;" * 650_000,
        "deep.py": "x = " + "(" * 15_000 + "\n",
        "tabs\u00a0and \u6f22\u5b57.py": "def named(): pass\n",
        "image.png": b"\x89PNG\r\n\x1a\n\x00\x00",
        "ends": "no newline at the end",
        "old_mac.py": "def mac(): pass\r# end\r",
    }
    status = shelf.index(written(tmp_path / "r", odd))
    assert status["state"] == "ready"
    assert status["skipped"] == {"binary": 1, "too_large": 1}
    for name in ("with_bom", "with_crlf", "l\u00e4tin", "wide", "whole", "named", "mac"):
        assert shelf.call("code.symbol", name=name)["found"], name
    assert shelf.call("code.read", path="crlf.py")["text"] == "def with_crlf():\n    pass"
    assert shelf.call("code.read", path="broken.py")["broken"]
    assert shelf.call("code.read", path="empty.py")["total_lines"] == 0


def test_it_goes_on_where_it_was(core_of: CoreOf, yard: Yard, tmp_path: Path) -> None:
    root = written(tmp_path / "r", {f"f{number:03}.py": f"def g{number}(): pass\n" for number in range(150)})
    slow = Indexer(yard, git.Fetches(yard), slice_s=0.0)
    jobs = {**code.jobs(yard), indexing.INDEX: slow.step}
    shelf = Shelf(core_of(code.OPS, jobs))
    shelf.call("code.index", source=str(root))
    slow.step(shelf.core.bench, CODE_ORG, [repository_id(shelf)])
    status = shelf.call("code.index_status")
    assert (status["state"], status["files_done"], status["files_total"]) == ("indexing", indexing.BATCH_FILES, 150)
    assert shelf.call("code.search", query="g1")["degraded"][0] == "index"
    before = file_ids(shelf)
    again = Shelf(core_of(code.OPS, code.jobs(yard)))  # another process, after a restart
    assert again.finish()["files_done"] == 150
    assert before.items() <= file_ids(again).items()


def repository_id(shelf: Shelf) -> str:
    with shelf.core.database.transaction(CODE_ORG, write=False) as tx:
        row = tx.row("SELECT repository_id FROM code_repository WHERE org = :org AND namespace = :n", n=shelf.namespace)
        assert row is not None
        return str(row["repository_id"])


def test_a_file_that_brings_down_its_reader_is_left_out(core_of: CoreOf, yard: Yard, tmp_path: Path) -> None:
    root = written(
        tmp_path / "r", {"a.py": "def fine(): pass\n", "b.py": "def poison(): pass\n", "c.py": "def good(): pass\n"}
    )
    shelf = Shelf(core_of(code.OPS, code.jobs(yard)))
    shelf.call("code.index", source=str(root))
    indexer = Indexer(yard, git.Fetches(yard), Library(_dies_on_poison))
    written(root, {"docs/b.md": "poison\n", "docs/a.md": "fine\n"})
    for _ in range(40):
        try:
            indexer.step(shelf.core.bench, CODE_ORG, [repository_id(shelf)])
        except MemoryError:
            continue
    status = shelf.call("code.index_status")
    assert status["state"] == "ready"
    assert status["skipped"] == {"unreadable": 1}
    assert set(file_ids(shelf)) == {"a.py", "b.py", "c.py", "docs/a.md"}


def _dies_on_poison(tx: Transaction, namespace: str, path: str, text: str) -> None:
    del tx, namespace, path
    if "poison" in text:
        raise MemoryError


def test_asking_again_while_it_runs_begins_anew(core_of: CoreOf, yard: Yard, tmp_path: Path) -> None:
    root = written(tmp_path / "r", {f"f{number:03}.py": f"def g{number}(): pass\n" for number in range(100)})
    slow = Indexer(yard, git.Fetches(yard), slice_s=0.0)
    shelf = Shelf(core_of(code.OPS, {**code.jobs(yard), indexing.INDEX: slow.step}))
    shelf.call("code.index", source=str(root))
    slow.step(shelf.core.bench, CODE_ORG, [repository_id(shelf)])
    written(root, {"f000.py": "def changed(): pass\n"})
    (root / "f099.py").unlink()
    assert shelf.index(root)["files_done"] == 99
    assert shelf.names("changed")[0] == "changed"
    assert count(shelf, "code_pending") == 0


def test_a_request_that_overtakes_a_slice_stops_it(shelf: Shelf, yard: Yard, shop: Path) -> None:
    shelf.call("code.index", source=str(shop))
    with shelf.core.database.transaction(CODE_ORG, write=True) as tx:
        stale = store.of_namespace(tx, "shop")
    assert stale is not None
    shelf.call("code.index", source=str(shop))
    with shelf.core.database.transaction(CODE_ORG, write=True) as tx:
        assert store.current(tx, stale) is None
    Indexer(yard, git.Fetches(yard))._end(shelf.core.bench, CODE_ORG, stale, "failed", "late")
    assert shelf.call("code.index_status")["state"] == "waiting"


def test_many_ask_at_once(shelf: Shelf, shop: Path) -> None:
    failures: list[BaseException] = []

    def ask() -> None:
        try:
            shelf.call("code.index", source=str(shop))
        except Conflict as error:
            failures.append(error)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert shelf.finish()["state"] == "ready"
    assert count(shelf, "code_repository") == 1


def test_two_workers_at_once_write_every_file_once(core_of: CoreOf, yard: Yard, tmp_path: Path) -> None:
    root = written(tmp_path / "r", {f"f{number:03}.py": f"def g{number}(): pass\n" for number in range(200)})
    shelf = Shelf(core_of(code.OPS, code.jobs(yard)))
    shelf.call("code.index", source=str(root), vectors=False)
    subject = repository_id(shelf)
    workers = [Indexer(yard, git.Fetches(yard)) for _ in range(2)]
    threads = [threading.Thread(target=one.step, args=(shelf.core.bench, CODE_ORG, [subject])) for one in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert shelf.finish()["state"] == "ready"
    assert count(shelf, "code_file") == count(shelf, "code_symbol") == 200
    with shelf.core.database.transaction(CODE_ORG, write=False) as tx:
        row = tx.row("SELECT count(DISTINCT name) AS n FROM code_symbol WHERE org = :org")
    assert row is not None
    assert row["n"] == 200


def test_a_namespace_holds_one_repository(indexed: Shelf, tmp_path: Path) -> None:
    other = written(tmp_path / "other", {"a.py": ""})
    with pytest.raises(Conflict, match="another repository"):
        indexed.call("code.index", source=str(other))
    indexed.call("code.delete")
    assert indexed.index(other)["repository"] == "other"


def test_a_clone_and_its_address_are_one_repository(shelf: Shelf, tmp_path: Path) -> None:
    root = repository(tmp_path / "clone", {"a.py": "def one(): pass\n"})
    config = root / ".git" / "config"
    config.write_text(config.read_text() + '[remote "origin"]\n\tfetch = x\n\turl = git@git.example.com:Acme/App.git\n')
    assert shelf.index(root)["repository"] == "acme/app"
    asked = shelf.call("code.index", source="https://git.example.com/acme/app")
    assert asked["state"] == "waiting"
    with shelf.core.database.transaction(CODE_ORG, write=False) as tx:
        scope = namespaces.code_scope(tx, "shop")
    assert scope is not None
    assert scope.repository == "acme/app"


def test_memories_and_code_do_not_share_a_namespace(shelf: Shelf, shop: Path) -> None:
    with shelf.core.database.transaction(CODE_ORG, write=True) as tx:
        namespaces.touch(tx, "shop", tx.stamp(), "memory")
    with pytest.raises(Conflict, match="of kind memory"):
        shelf.call("code.index", source=str(shop))


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("relative/path", "absolute"),
        ("~/x", "absolute"),
        ("/no/such/folder/anywhere", "no such folder"),
        ("/", "whole disk"),
        ("/" + "x" * 1_000, "no such folder"),
        ("http://git.example.com/a/b", "not fetched"),
        ("https://a:b@git.example.com/a/b", "password"),
        ("https://git.example.com/a b", "not a git address"),
        ("", "no repository yet"),
        ("line\nbreak", "control"),
    ],
)
def test_sources_that_are_refused(shelf: Shelf, source: str, words: str) -> None:
    with pytest.raises(Rejected, match=words) as refused:
        shelf.call("code.index", source=source)
    assert refused.value.extras["field"] == "source"


def test_a_file_is_no_folder(shelf: Shelf, shop: Path) -> None:
    with pytest.raises(Rejected, match="no such folder"):
        shelf.call("code.index", source=str(shop / "README.md"))
    with pytest.raises(Rejected, match="leave it out"):
        shelf.call("code.index", source=str(shop), revision="main")


@pytest.mark.parametrize("revision", ["-x", "a..b", "--upload-pack=touch", "a b"])
def test_revisions_that_are_refused(shelf: Shelf, revision: str) -> None:
    with pytest.raises(Rejected) as refused:
        shelf.call("code.index", source="https://git.example.com/a/b", revision=revision)
    assert refused.value.extras["field"] == "revision"


def test_folders_are_for_admins(indexed: Shelf, shop: Path, tmp_path: Path) -> None:
    for source in (str(shop), f"file://{tmp_path}/x", "", "/etc", "/no/such/folder"):
        with pytest.raises(Denied):
            indexed.call("code.index", caller=WRITER, source=source)
    assert indexed.call("code.index_status", caller=WRITER)["source"] == ""
    asked = Shelf(indexed.core, "other").call("code.index", caller=WRITER, source="https://git.example.com/a/b")
    assert asked["state"] == "waiting"
    viewer = replace(WRITER, role=Role.VIEWER)
    with pytest.raises(Denied):
        indexed.call("code.index", caller=viewer, source="https://git.example.com/a/b")


def test_deleting_leaves_nothing(indexed: Shelf) -> None:
    assert indexed.call("code.delete")["symbols_deleted"] == 11
    assert {table: count(indexed, table) for table in TABLES} == dict.fromkeys(TABLES, 0)
    with pytest.raises(NotFound):
        indexed.call("code.search", query="basket")
    with indexed.core.database.transaction(CODE_ORG, write=False) as tx:
        space = indexed.core.embedder.space.fingerprint
        vector = indexed.core.embedder.embed_query("basket", 1.0)
        assert list(tx.vectors.best(symbols.shelf("shop"), space, vector, 10)) == []
    assert indexed.call("code.delete")["symbols_deleted"] == 0
    assert indexed.finish()["state"] == "none"


def test_a_purged_namespace_stops_its_job(shelf: Shelf, shop: Path) -> None:
    shelf.call("code.index", source=str(shop))
    with shelf.core.database.transaction(CODE_ORG, write=True) as tx:
        code.purge_namespace(tx, "shop")
    assert shelf.finish()["state"] == "none"
    assert {table: count(shelf, table) for table in TABLES} == dict.fromkeys(TABLES, 0)


def test_a_folder_that_went_away_keeps_its_index(indexed: Shelf, shop: Path) -> None:
    shop.rename(shop.with_name("moved"))
    with pytest.raises(Rejected):
        indexed.call("code.index", source=str(shop))
    status = indexed.index("")
    assert status["state"] == "failed"
    assert "not there" in status["problem"]
    assert indexed.names("Basket")[0] == "Basket"


def test_without_the_embedder_words_are_found_and_it_is_said(indexed: Shelf, shop: Path) -> None:
    indexed.core.embedder.off.set()
    written(shop, {"shop/kettle.py": "def boil_water(): pass\n"})
    indexed.call("code.index", source="")
    for _ in range(5):
        with indexed.core.database.transaction(CODE_ORG, write=True) as tx:
            taken = outbox.take(tx, indexed.core.clock(), 10)
        for job in taken:
            if job.kind == indexing.INDEX:
                indexed.core.jobs[job.kind](indexed.core.bench, CODE_ORG, [job.subject])
    answer = indexed.call("code.search", query="boil water")
    assert answer["degraded"] == ["embedder"]
    assert answer["results"][0]["name"] == "boil_water"
    indexed.core.embedder.off.clear()
    assert indexed.call("code.search", query="boil water")["degraded"] == ["vectors"]
    embeds.embed_rest(indexed.core.bench, CODE_ORG)
    assert indexed.finish()["embedded"] == indexed.finish()["symbols"]
    assert indexed.call("code.search", query="boil water")["degraded"] == []


def test_without_vectors_nothing_is_embedded(shelf: Shelf, shop: Path) -> None:
    status = shelf.index(shop, vectors=False)
    assert (status["embedded"], status["vectors"]) == (0, False)
    assert shelf.core.embedder.texts == 0
    assert shelf.call("code.search", query="sum of all items")["degraded"] == []
    assert shelf.index("")["vectors"] is False
    assert shelf.index("", vectors=True)["embedded"] == 11
    assert shelf.index("")["vectors"] is True


def test_documents_are_handed_on_and_taken_back(shelf_of: ShelfOf, shop: Path) -> None:
    kept: dict[tuple[str, str], str] = {}

    def keep(tx: Transaction, namespace: str, path: str, text: str) -> None:
        assert tx.org == CODE_ORG
        kept[namespace, path] = text

    def forget(tx: Transaction, namespace: str, path: str) -> None:
        assert tx.org == CODE_ORG
        kept.pop((namespace, path), None)

    shelf = shelf_of(library=Library(keep, forget))
    shelf.index(shop)
    assert kept == {("shop", "README.md"): SHOP["README.md"]}
    (shop / "README.md").unlink()
    written(shop, {"docs/guide.rst": "A guide\n"})
    shelf.index("")
    assert kept == {("shop", "docs/guide.rst"): "A guide\n"}
    shelf.call("code.delete")
    assert kept == {}


def test_the_job_of_a_repository_that_is_gone_ends(shelf: Shelf) -> None:
    for kind in (indexing.INDEX, embeds.EMBED):
        shelf.core.jobs[kind](shelf.core.bench, CODE_ORG, ["123456789"])


def test_a_batch_is_bounded_in_bytes() -> None:
    entries = [Entry(f"f{number}", 700_000, "x") for number in range(5)]
    assert len(indexing._batch(entries)) == 2
    assert len(indexing._batch([Entry("big", 9_000_000, "x"), *entries])) == 1
