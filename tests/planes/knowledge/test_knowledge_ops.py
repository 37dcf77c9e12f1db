"""What each operation promises: adding, revisions, reading, listing, searching, deleting."""

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from knowledge_kit import (
    GUIDE,
    add,
    add_file,
    found,
    in_base64,
    of_session,
    of_user,
    read_all,
    refused,
    row_counts,
    sweep,
    uris,
)

from fakes import ORG, Core
from loom.errors import Conflict, Denied, NotFound, Rejected, TooLong
from loom.jobs.late import LateQueue
from loom.jobs.worker import Worker
from loom.models.interface import EmbedderFailed
from loom.models.wrapping import WrappingEmbedder
from loom.planes import knowledge
from loom.planes.knowledge import purge_namespace
from loom.planes.knowledge.uploads import OPEN_MAX, PART_BYTES_MAX
from loom.storage.indexes import Vector

LONG = "\n\n".join(f"## Part {number}\n\nThe walrus of number {number} sleeps here." for number in range(200))


def test_a_document_is_found_by_passage_and_cited(core: Core) -> None:
    made = add(core, uri="guide", tags=["b", "a", "b"])
    assert (made["title"], made["revision"], made["state"], made["changed"]) == ("Guide", 1, "ready", True)
    assert (made["tags"], made["format"], made["line_count"], made["passage_count"]) == (["a", "b"], "markdown", 11, 3)
    hit = found(core, "where is the kettle?", top_k=1)[0]
    assert (hit["document_id"], hit["revision"], hit["uri"]) == (made["document_id"], 1, "guide")
    assert hit["headings"] == ["Guide", "Kitchen"]
    assert (hit["first_line"], hit["last_line"], hit["first_page"]) == (5, 7, None)
    cited = core.call("knowledge.get", uri="guide", first_line=hit["first_line"], line_count=3)
    assert cited["text"] == hit["text"] == "## Kitchen\n\nThe kettle is in the second cupboard."


def test_the_same_content_again_changes_nothing(core: Core) -> None:
    first = add(core, uri="guide")
    core.embedder.texts = 0
    again = add(core, uri="guide")
    assert (again["changed"], again["revision"]) == (False, 1)
    assert again["document_id"] == first["document_id"]
    assert core.embedder.texts == 0
    assert row_counts(core)["revision"] == 1


def test_without_a_uri_content_is_known_by_itself(core: Core) -> None:
    first, again, other = add(core), add(core), add(core, "Something else.")
    assert first["uri"].startswith("sha256:")
    assert again["document_id"] == first["document_id"] != other["document_id"]
    assert not again["changed"]


def test_a_new_revision_is_found_and_the_old_one_is_only_read(core: Core) -> None:
    add(core, "The walrus sleeps.", uri="notes")
    made = add(core, "The gnomon casts a shadow.", uri="notes")
    assert (made["revision"], made["changed"]) == (2, True)
    for query in ("walrus", "the animal that sleeps", "gnomon"):
        assert {hit["revision"] for hit in found(core, query)} == {2}
        assert "walrus" not in json.dumps(found(core, query))
    old = core.call("knowledge.get", uri="notes", revision=1)
    assert (old["text"], old["is_latest"]) == ("The walrus sleeps.", False)
    assert [one["revision"] for one in old["revisions"]] == [2, 1]
    back = add(core, "The walrus sleeps.", uri="notes")
    assert back["revision"] == 3
    assert "walrus" in json.dumps(found(core, "walrus"))


def test_a_new_title_is_a_revision_and_new_tags_are_not(core: Core) -> None:
    add(core, uri="guide", tags=["old"])
    tagged = add(core, uri="guide", tags=["new"])
    assert (tagged["changed"], tagged["tags"], tagged["revision"]) == (False, ["new"], 1)
    titled = add(core, uri="guide", title="Manual")
    assert (titled["changed"], titled["title"], titled["revision"], titled["tags"]) == (True, "Manual", 2, ["new"])
    assert uris(core, "manual") == {"guide"}
    assert add(core, uri="guide")["title"] == "Manual"


@pytest.mark.parametrize(
    ("text", "args", "title"),
    [
        ("# One *and* [two](x) `three`\n\ntext", {}, "One and two three"),
        ("text\n\n## Only a part", {"uri": "https://e.org/a/b.md"}, "b.md"),
        ("---\ntitle: x\n---\n# Real\n", {}, "Real"),
        ("plain", {"file_name": "notes.txt", "uri": "x/y"}, "notes.txt"),
        ("# Not a heading in a plain text", {"media_type": "text/plain", "uri": "x/y"}, "y"),
        ("# Own", {"title": "Given"}, "Given"),
        ("nothing", {}, ""),
    ],
)
def test_titles(core: Core, text: str, args: dict[str, str], title: str) -> None:
    assert add(core, text, **args)["title"] == title


@pytest.mark.parametrize("sent", [{}, {"text": "a", "content_base64": "YQ=="}, {"upload_id": "x", "text": "a"}])
def test_one_content_is_needed(core: Core, sent: dict[str, str]) -> None:
    assert "one of text" in refused(Rejected, core.call, "knowledge.add", **sent).message


def test_a_long_document_is_indexed_by_jobs_that_go_on_after_a_restart(core: Core) -> None:
    made = add(core, LONG, uri="long")
    assert (made["state"], made["passage_count"]) == ("pending", 0)
    listed = core.call("knowledge.list", states=["pending"])
    assert (listed["count"], listed["pending"], listed["ready"]) == (1, 1, 0)
    core.embedder.off.set()
    with pytest.raises(Exception, match="switched off"):
        core.drain()
    listed = core.call("knowledge.list")
    assert (listed["failed"], listed["items"][0]["state"]) == (1, "failed")
    assert "embedder" in listed["items"][0]["reason"]
    assert found(core, "walrus number 117", top_k=1)[0]["headings"] == ["Part 117"]
    core.embedder.off.clear()
    core.clock.step(minutes=5)
    core.drain()
    item = core.call("knowledge.list")["items"][0]
    assert (item["state"], item["reason"], item["passage_count"]) == ("ready", "", 200)
    hits = found(core, "walrus", top_k=100, per_document=100)
    assert all(hit["similarity"] is not None for hit in hits)


def test_an_embedder_that_fails_costs_only_the_meaning(core: Core) -> None:
    core.embedder.off.set()
    made = add(core, uri="guide")
    assert (made["state"], made["degraded"]) == ("pending", ["embedder"])
    answer = core.call("knowledge.search", query="kettle")
    assert (answer["degraded"], answer["unfinished"]) == (["embedder"], 1)
    assert answer["results"][0]["similarity"] is None
    core.embedder.off.clear()
    core.drain()
    assert core.call("knowledge.list")["items"][0]["state"] == "ready"


class Resting(WrappingEmbedder):
    """An embedder that is left alone for a while, from its second call on."""

    calls = 0

    def embed_passages(self, texts: Sequence[str], timeout_s: float) -> list[Vector]:
        self.calls += 1
        if self.calls > 1:
            raise EmbedderFailed("it rests", rest_s=5.0)
        return super().embed_passages(texts, timeout_s)


def test_documents_wait_for_an_embedder_that_is_left_alone_and_have_not_failed(core: Core) -> None:
    core.embedder.off.set()
    for uri in ("one", "two", "three"):
        add(core, uri=uri)
    core.embedder.off.clear()
    bench = replace(core.bench, embedder=Resting(core.embedder))
    Worker(bench, knowledge.JOBS, [], LateQueue(bench, {})).work(ORG)
    listed = core.call("knowledge.list")
    assert (listed["ready"], listed["pending"], listed["failed"]) == (1, 2, 0)
    assert {item["reason"] for item in listed["items"]} == {""}
    core.clock.step(seconds=5)
    core.drain()
    assert core.call("knowledge.list")["ready"] == 3


def test_a_long_document_that_changes_while_it_is_indexed(core: Core) -> None:
    add(core, LONG, uri="long")
    add(core, "The gnomon alone.", uri="long")
    core.drain()
    assert {hit["revision"] for hit in found(core, "walrus gnomon", per_document=100)} == {2}
    assert row_counts(core)["chunk"] == 1
    add(core, LONG, uri="long")
    core.drain()
    assert core.call("knowledge.list")["items"][0]["passage_count"] == 200
    core.call("knowledge.delete", uri="long")
    core.drain()
    assert set(row_counts(core).values()) == {0}


def test_deleting_leaves_nothing(core: Core) -> None:
    add(core, "The walrus sleeps.", uri="notes")
    add(core, "The walrus wakes.", uri="notes")
    add(core, uri="guide")
    gone = core.call("knowledge.delete", uri="notes")
    assert gone["revisions_deleted"] == 2
    assert uris(core, "walrus") <= {"guide"}
    refused(NotFound, core.call, "knowledge.get", uri="notes", revision=1)
    refused(NotFound, core.call, "knowledge.delete", document_id=gone["document_id"])
    assert row_counts(core) == {"document": 1, "revision": 1, "text": 1, "chunk": 3, "upload": 0}
    assert add(core, "The walrus is back.", uri="notes")["revision"] == 1


def test_a_namespace_goes_with_its_documents(core: Core) -> None:
    add(core, uri="guide", namespace="other")
    add(core, uri="guide")
    with core.database.transaction(ORG, write=True) as tx:
        assert purge_namespace(tx, "other") == 1
    assert found(core, "kettle", namespace="other") == []
    assert uris(core, "kettle") == {"guide"}


def test_lines_are_read_in_ranges_and_to_the_end(core: Core) -> None:
    text = "\n".join(f"line {number}" for number in range(1, 30_001))
    made = add(core, text, uri="lines", media_type="text/plain")
    assert made["line_count"] == 30_000
    part = core.call("knowledge.get", uri="lines", first_line=29_999, line_count=10)
    assert (part["text"], part["next_line"], part["last_line"]) == ("line 29999\nline 30000", 0, 30_000)
    middle = core.call("knowledge.get", uri="lines", first_line=12_345, line_count=2)
    assert (middle["text"], middle["next_line"]) == ("line 12345\nline 12346", 12_347)
    assert core.call("knowledge.get", uri="lines", first_line=40_000)["text"] == ""
    bounded = core.call("knowledge.get", uri="lines", characters_max=9)
    assert (bounded["text"], bounded["next_line"]) == ("line 1", 2)
    assert read_all(core, uri="lines") == text


def test_blank_lines_are_counted_as_they_stand(core: Core) -> None:
    text = "\n\na\n\n\n\nb\n"
    add(core, text, uri="blank")
    assert read_all(core, uri="blank") == text.removesuffix("\n")
    assert core.call("knowledge.get", uri="blank", first_line=7, line_count=1)["text"] == "b"
    assert found(core, "b")[0]["last_line"] == 7


def test_listing_goes_page_by_page_with_filters(core: Core) -> None:
    for number in range(7):
        add(core, f"Text {number}", uri=f"{'even' if number % 2 == 0 else 'odd'}/{number}", tags=[f"t{number % 3}"])
    seen: list[str] = []
    cursor = ""
    while True:
        page = core.call("knowledge.list", limit=3, cursor=cursor)
        seen += [item["uri"] for item in page["items"]]
        cursor = page["next_cursor"]
        if not cursor:
            break
    assert seen == ["even/6", "odd/5", "even/4", "odd/3", "even/2", "odd/1", "even/0"]
    assert [one["uri"] for one in core.call("knowledge.list", uri_prefix="odd/")["items"]] == [
        "odd/5",
        "odd/3",
        "odd/1",
    ]
    tagged = core.call("knowledge.list", tags=["t0"], limit=2)
    assert [one["uri"] for one in tagged["items"]] == ["even/6", "odd/3"]
    assert core.call("knowledge.list", tags=["t0"], cursor=tagged["next_cursor"])["count"] == 1
    assert core.call("knowledge.list", uri_prefix="%")["count"] == 0
    for cursor in ("x", "-1", "9999999999999999999", "²"):
        refused(Rejected, core.call, "knowledge.list", cursor=cursor)


def test_a_search_can_be_narrowed(core: Core) -> None:
    one = add(core, "The walrus sleeps.", uri="one", tags=["a"])
    add(core, "\n\n".join(f"# H{n}\n\nThe walrus number {n}." for n in range(9)), uri="two", tags=["a", "b"])
    assert uris(core, "walrus", tags=["a", "b"]) == {"two"}
    assert uris(core, "walrus", document_id=one["document_id"]) == {"one"}
    assert len(found(core, "walrus", uri="two")) == 9
    assert sum(hit["uri"] == "two" for hit in found(core, "walrus")) == 3
    assert {hit["text"] for hit in found(core, "walrus", bodies="none")} == {None}
    refused(NotFound, core.call, "knowledge.search", query="walrus", uri="none")


@pytest.mark.parametrize("query", ['"', "NOT", "a AND", "*", "kettle'; --", "(", "col:x", "厨房", "\\", "%_"])
def test_a_query_is_only_text(core: Core, query: str) -> None:
    add(core)
    core.call("knowledge.search", query=query)


def test_other_scripts_are_found(core: Core) -> None:
    add(core, "# 厨房\n\n水壶在第二个柜子里。", uri="zh")
    add(core, "# Küche\n\nDer Wasserkessel steht im zweiten Schrank.", uri="de")
    assert found(core, "水壶", top_k=1)[0]["uri"] == "zh"
    assert found(core, "kuche wasserkessel", top_k=1)[0]["uri"] == "de"


def test_uploads_come_in_any_order_and_belong_to_their_caller(core: Core) -> None:
    content = GUIDE.encode()
    first = core.call("knowledge.upload", part=1, content_base64=in_base64(content[40:]))
    upload = first["upload_id"]
    missing = refused(Rejected, core.call, "knowledge.add", upload_id=upload)
    assert "part 0 is missing" in missing.message
    core.call("knowledge.upload", upload_id=upload, part=0, content_base64=in_base64(b"wrong"))
    done = core.call("knowledge.upload", upload_id=upload, part=0, content_base64=in_base64(content[:40]))
    assert (done["part_count"], done["byte_count"]) == (2, len(content))
    for other in (of_user("u1"), of_session("u1", "s1")):
        refused(Rejected, core.call, "knowledge.add", upload_id=upload, caller=other)
        refused(Rejected, core.call, "knowledge.upload", upload_id=upload, content_base64="YQ==", caller=other)
        core.call("knowledge.upload", upload_id=upload, discard=True, caller=other)
    refused(Rejected, core.call, "knowledge.add", upload_id=upload, namespace="other")
    made = core.call("knowledge.add", upload_id=upload, uri="guide.md")
    assert read_all(core, uri="guide.md") == GUIDE.removesuffix("\n")
    assert made["content_sha256"] == add(core, uri="guide.md")["content_sha256"]
    assert row_counts(core)["upload"] == 0


def test_uploads_are_bounded_and_forgotten(core: Core) -> None:
    upload = ""
    for _ in range(OPEN_MAX):
        upload = core.call("knowledge.upload", content_base64="YQ==")["upload_id"]
    refused(Conflict, core.call, "knowledge.upload", content_base64="YQ==")
    core.call("knowledge.upload", upload_id=upload, discard=True)
    core.call("knowledge.upload", content_base64="YQ==")
    core.clock.step(minutes=61)
    sweep(core)
    assert row_counts(core)["upload"] == 0
    full = in_base64(bytes(PART_BYTES_MAX))
    upload = core.call("knowledge.upload", content_base64=full)["upload_id"]
    for part in range(1, 32):
        core.call("knowledge.upload", upload_id=upload, part=part, content_base64=full)
    refused(TooLong, core.call, "knowledge.upload", upload_id=upload, part=32, content_base64=full)


def test_another_model_has_everything_embedded_anew(core: Core) -> None:
    add(core, uri="guide")
    with core.database.transaction(ORG, write=True) as tx:
        tx.run("UPDATE knowledge_document SET space = 'other' WHERE org = :org")
        tx.run("UPDATE knowledge_chunk SET space = 'other' WHERE org = :org")
        assert tx.vectors.drop_others(set(), 1_000) == 3
    sweep(core)
    assert core.call("knowledge.list")["pending"] == 1
    core.embedder.texts = 0
    core.drain()
    assert core.embedder.texts == 3
    assert core.call("knowledge.list")["ready"] == 1


def test_many_add_the_same_uri_at_once(core: Core) -> None:
    def one(number: int) -> dict[str, Any]:
        return add(core, f"Text number {number % 4}", uri="same")

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(one, range(16)))
    assert len({answer["document_id"] for answer in answers}) == 1
    changed = [answer["revision"] for answer in answers if answer["changed"]]
    assert sorted(changed) == list(range(1, len(changed) + 1))
    counts = row_counts(core)
    assert (counts["document"], counts["chunk"], counts["revision"]) == (1, 1, len(changed))


def test_a_narrow_token_does_not_write_over_another_session(core: Core) -> None:
    add(core, "Of the first.", uri="notes", caller=of_session("u1", "s1"))
    refused(Denied, add, core, "Of the second.", uri="notes", caller=of_session("u1", "s2"))
    refused(NotFound, core.call, "knowledge.delete", uri="notes", caller=of_session("u1", "s2"))
    assert add(core, "Of u2.", uri="notes", caller=of_user("u2"))["revision"] == 1


def test_an_idempotency_key_gives_the_first_answer_again(core: Core) -> None:
    first = core.call("knowledge.add", text="One.", uri="k", key="key")
    add(core, "Two.", uri="k")
    assert core.call("knowledge.add", text="One.", uri="k", key="key") == first
    assert core.call("knowledge.get", uri="k")["text"] == "Two."


def test_a_kept_answer_loses_the_title_of_what_is_deleted(core: Core) -> None:

    def add_once(uri: str) -> str:
        return core.call("knowledge.add", key=uri, uri=uri, text=f"# Plumbago {uri}")["title"]

    assert [add_once("gone"), add_once("stays")] == ["Plumbago gone", "Plumbago stays"]
    core.call("knowledge.delete", uri="gone")
    assert [add_once("gone"), add_once("stays")] == ["", "Plumbago stays"]


def test_a_file_of_parts_is_the_file(core: Core) -> None:
    content = ("# Big\n\n" + "The walrus sleeps on. " * 120_000).encode()
    assert len(content) > PART_BYTES_MAX
    made = add_file(core, content, file_name="big.md", uri="big")
    assert (made["byte_count"], made["title"], made["state"]) == (len(content), "Big", "pending")
