"""A store in which every plane holds something, for tests that move it; and how its rows are compared."""

import copy
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

from fakes import ORG, Clock, Core, core_of
from loom import compose, config
from loom.models.hashing import HashingEmbedder
from loom.storage.interface import Database, Row

CODE_ORG, TRACKER_ORG = "code", "tracker"
ORGS = (ORG, CODE_ORG, TRACKER_ORG)
UNICODE = "Grüße, 日本語, 👩‍👩‍👧, e\u0301 ≠ \u00e9, \u202eright to left, null \\u0000 in words, tab\tand\nline"
LONG_LINES = 16_000
"""Lines of a document whose text has several parts, and its passages to a job."""

TURNS = 130
FILES = 60

SHOP: Mapping[str, str] = {
    "shop/prices.py": '"""What things cost."""\n\n\ndef with_tax(amount: float) -> float:\n'
    '    """Add the tax to a net amount."""\n    return amount * 1.2\n\n\n'
    "class Basket:\n    def total(self) -> float:\n        return with_tax(1)\n",
    "shop/größe.py": "from shop.prices import with_tax\n\n\ndef größe() -> float:\n    return with_tax(2.0)\n",
    "README.md": "# The shop\n\nSells kettles and other things that boil water.\n",
    "broken.py": "def broken(:\n",
    **{f"many/part_{number}.py": f"def step_{number}():\n    return {number}\n" for number in range(FILES)},
}

TABLES: Mapping[str, str] = {
    "namespace": "SELECT * FROM namespace WHERE org = :org ORDER BY name",
    "namespace_binding": "SELECT * FROM namespace_binding WHERE org = :org ORDER BY name",
    "ledger_item": "SELECT * FROM ledger_item WHERE org = :org ORDER BY item_id",
    "ledger_version": "SELECT * FROM ledger_version WHERE org = :org ORDER BY item_id, version",
    "profile_schema": "SELECT * FROM profile_schema WHERE org = :org ORDER BY namespace, version",
    "conversation_session": "SELECT * FROM conversation_session WHERE org = :org ORDER BY session_key",
    "conversation_turn": "SELECT * FROM conversation_turn WHERE org = :org ORDER BY item_id",
    "tracker_issue": "SELECT * FROM tracker_issue WHERE org = :org ORDER BY item_id",
    "tracker_trait": "SELECT * FROM tracker_trait WHERE org = :org ORDER BY kind, name, item_id",
    "code_repository": "SELECT * FROM code_repository WHERE org = :org ORDER BY namespace",
    "code_file": "SELECT * FROM code_file WHERE org = :org ORDER BY file_id",
    "code_symbol": "SELECT * FROM code_symbol WHERE org = :org ORDER BY item_id",
    "code_use": "SELECT * FROM code_use WHERE org = :org ORDER BY file_id, name, role, receiver",
    "knowledge_document": "SELECT * FROM knowledge_document WHERE org = :org ORDER BY document_id",
    "knowledge_revision": "SELECT * FROM knowledge_revision WHERE org = :org ORDER BY document_id, revision",
    "knowledge_text": "SELECT * FROM knowledge_text WHERE org = :org ORDER BY document_id, revision, part",
    "knowledge_chunk": "SELECT document_id, revision, ordinal, namespace, headings, first_line, last_line, first_page, "
    "last_page, content, space FROM knowledge_chunk WHERE org = :org ORDER BY document_id, revision, ordinal",
}
"""Passages are cut again, and then have new ids, which nothing shows."""

LEFT_BEHIND = frozenset(
    {
        *(
            "embedding_space",
            "job",
            "idempotency",
            "access_token",
            "profile_read",
            "knowledge_upload",
            "code_pending",
            "memory_extraction",
        ),
        *("derived_watch", "derived_user", "derived_build", "derived_source"),
        *("sign_in_code", "sign_in_session"),
        "audit_record",
    }
)
"""Tables that stay: work under way, kept answers, secrets, who read what and who did what here, files that were
not added yet; and what the builds of structured profiles read."""

Tables = Mapping[str, Sequence[Row]]
Line = dict[str, Any]


def whole_core(home: Path, database: Database, clock: Clock, pool: Executor) -> Core:
    """A core of every operation and job, as a server in `home` has them."""
    settings = config.Settings(home=home)
    every = [op for op in compose.registry() if op.name != "ops.capabilities"]
    return core_of(every, compose.jobs(settings, HashingEmbedder(), None), {}, database, clock, pool)


def fill(core: Core, folder: Path) -> None:
    """Every kind of row there is, and the jobs done."""
    fill_memories(core)
    fill_documents(core)
    fill_conversations(core)
    fill_issues(core)
    fill_code(core, folder)
    core.clock.step(hours=1)
    for org in ORGS:
        core.drain(org)


def fill_memories(core: Core) -> None:
    """Memories and sections in every state."""
    for number in range(130):
        core.call(
            "memory.set", memory_key="long", value={"ü": number, "deep": [None, 1.5, {"a": True}]}, tags=["a", "ß"]
        )
    for user in ("ann", "日本", "-"):
        for agent in ("claude", "codex"):
            core.call("memory.set", memory_key=UNICODE[:40], value=UNICODE, user_id=user, agent=agent, session_id="s1")
    core.call("memory.set", memory_key="locked", value="kept", run_id="r", source_trace="trace ü")
    core.call("memory.lock", memory_key="locked", mode="read_only", reason="because of ü")
    core.call("memory.set", memory_key="guarded", value=1, confidence=0.1)
    core.call("memory.lock", memory_key="guarded", mode="no_delete", reason="why")
    core.call("memory.set", memory_key="pinned", value=2**62, namespace="second")
    core.call("memory.pin", memory_key="pinned", namespace="second")
    core.call("memory.set", memory_key="gone", value="deleted text", namespace="second")
    core.call("memory.delete", memory_key="gone", namespace="second", source_trace="cleaning")
    core.call("memory.set", memory_key="back", value="was away")
    core.call("memory.delete", memory_key="back")
    core.call("memory.restore", memory_key="back")
    core.call("memory.set", memory_key="black", value="plumbago", tags=["plumbago"])
    core.call("memory.set", memory_key="black", value="plumbago again")
    core.call("memory.redact", memory_key="black")
    one = core.call("memory.set", memory_key="holed", value="first")
    core.call("memory.set", memory_key="holed", value=None)
    core.call("memory.delete_version", memory_key="holed", version_text=one["version_text"])
    core.call("memory.set", memory_key="late", value="expires", ttl_seconds=60, user_id="ann")
    core.call("memory.set", memory_key="valid", value="", sensitivity="high", valid_at="2026-01-01T00:00:00.000001Z")
    core.call("memory.set", memory_key="deepest", value=nested(60))
    core.call("profile.set", label="persona", value="brief", char_limit=50, user_id="ann")
    for number in range(3):
        core.call("profile.append", label="style", addition=f"line {number} é", user_id="ann", namespace="dritte Welt")
    for title in ("diet", "Größe"):
        schema = {"type": "object", "title": title, "properties": {"size": {"type": "string", "description": title}}}
        core.call("profile.schema_set", namespace="shaped", json_schema=schema)


def nested(depth: int) -> Any:
    """A value so deep."""
    value: Any = "core"
    for _ in range(depth):
        value = [value]
    return value


def fill_documents(core: Core) -> None:
    """Documents of several revisions, users and lengths; one that is gone."""
    for number in range(3):
        core.call("knowledge.add", uri="docs/tea.md", text=f"# Tea\n\nRevision {number} steeps {number} minutes.\n")
    core.call("knowledge.add", uri="docs/tea.md", text="# Tea\n\nRevision 2 steeps 2 minutes.\n", tags=["ü", "drinks"])
    core.call("knowledge.add", uri="ann.md", text=f"# Notes\n\n{UNICODE}\n", user_id="ann", session_id="s1")
    core.call("knowledge.add", text="# Nameless\n\nHas no address.\n", namespace="second", title="Called so")
    long = "\n".join(f"Line {number} about kettles and spouts." for number in range(LONG_LINES))
    core.call("knowledge.add", uri="long.txt", text=long)
    core.call("knowledge.add", uri="long.txt", text=f"{long}\nAnd a quetzal at the end.")
    core.call("knowledge.add", uri="gone.md", text="# Gone\n\nAbout plumbago.\n")
    core.call("knowledge.delete", uri="gone.md")


def fill_conversations(core: Core) -> None:
    """Conversations with every kind of block, deleted turns, and more turns than a line has."""
    blocks = [
        {"type": "thinking", "thinking": "hmm ü"},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a.py"}},
    ]
    core.call(
        "conversation.append",
        session="planning",
        title="Plänë",
        user_id="ann",
        run_id="r1",
        messages=[
            {"id": "m1", "role": "user", "content": "Which database shall we take?", "time": "2026-01-02T03:04:05.6Z"},
            {"id": "m2", "role": "assistant", "content": blocks, "name": "Cla\u00fcde"},
            {"role": "tool", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "print('ü')"}]},
            {"id": "m4", "role": "user", "content": "Never mention plumbago."},
        ],
    )
    core.call("conversation.delete", session="planning", user_id="ann", message_ids=["m4"])
    long = [{"id": f"m{number}", "role": "user", "content": f"Word {number} {UNICODE}"} for number in range(TURNS)]
    core.call("conversation.append", session="long ü", messages=long, namespace="second")
    core.call("conversation.append", session="gone", messages=[{"role": "user", "content": "plumbago"}])
    core.call("conversation.delete", session="gone", whole_session=True)


def fill_issues(core: Core) -> None:
    """Issues with frames of the text and given ones, changed and deleted."""
    where: dict[str, Any] = {"org": TRACKER_ORG, "namespace": "bugs"}
    body = 'Traceback\n  File "a/kettle.py", line 3, in boil\nValueError: ü see #7\nuse `Kettle.boil()`'
    core.call("tracker.add", **where, number=1, title="Kettle fails", body=body, labels=["bug", "ü"], component="k")
    core.call("tracker.add", **where, number=1, title="Kettle fails at boil", body=body, state="closed", duplicate_of=2)
    core.call("tracker.add", **where, number=2, title="Spout", frames=["Spout.pour (spout.py)"], user_id="ann")
    core.call("tracker.add", **where, number=3, title="plumbago", body="plumbago")
    core.call("tracker.delete", **where, number=3)


def fill_code(core: Core, folder: Path) -> None:
    """A repository, with its documents, bound to the tracker's namespace."""
    for name, content in SHOP.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, "utf-8")
    core.call("code.index", org=CODE_ORG, namespace="shop", source=str(folder))
    while core.drain(CODE_ORG):
        pass
    status = core.call("code.index_status", org=CODE_ORG, namespace="shop")
    assert (status["state"], status["files_done"]) == ("ready", len(SHOP)), status


def tables(database: Database, org: str = ORG) -> Tables:
    """The rows of an org, without the org's own name."""
    with database.transaction(org, write=False) as tx:
        return {
            name: [{key: value for key, value in row.items() if key != "org"} for row in tx.rows(sql)]
            for name, sql in TABLES.items()
        }


def differences(before: Tables, after: Tables) -> list[str]:
    """Each row that is not the same, shortly."""
    found: list[str] = []
    for name in TABLES:
        one, other = before[name], after[name]
        if len(one) != len(other):
            found.append(f"{name}: {len(one)} rows, {len(other)} rows")
        for row, same in zip(one, other, strict=False):
            found += [f"{name}.{key}: {row[key]!r} {same[key]!r}"[:300] for key in row if row[key] != same[key]]
    return found


def searched(core: Core, orgs: Mapping[str, str]) -> str:
    """What every plane's search answers; `orgs` has the org to ask instead of each."""
    own, code_org, issues = orgs[ORG], orgs[CODE_ORG], orgs[TRACKER_ORG]
    answers = [
        core.call("search.query", org=own, query=query, explain=True, top_k=20, namespace_scope="all_mine")
        for query in ("how long does tea steep", "Grüße 日本語", "quetzal", "which database", "plumbago")
    ]
    answers += [
        core.call("memory.search", org=own, query="deep text", top_k=20),
        core.call("knowledge.search", org=own, query="kettles spouts", top_k=20),
        core.call("conversation.search", org=own, query="database", user_id="ann", neighbours=2),
        core.call("code.search", org=code_org, namespace="shop", query="add the tax", top_k=20),
        core.call("code.callers", org=code_org, namespace="shop", name="with_tax"),
        core.call("code.read", org=code_org, namespace="shop", path="shop/größe.py"),
        core.call("knowledge.search", org=code_org, namespace="shop", query="boil water"),
        core.call("tracker.search", org=issues, namespace="bugs", query="kettle", user_id="ann"),
        core.call("tracker.duplicate_check", org=issues, namespace="bugs", title="ValueError in boil of kettle"),
    ]
    for answer in answers:
        answer.pop("timings_ms", None)
    return json.dumps(answers, ensure_ascii=False, sort_keys=True)


def exported(core: Core, org: str, limit: int = 500, **args: Any) -> list[Line]:
    """Every line of an org's export."""
    lines: list[Line] = []
    cursor = ""
    while True:
        asked: dict[str, Any] = {"org": org, "all_namespaces": True, **args}
        answer = core.call("store.export", **asked, limit=limit, cursor=cursor)
        assert len(answer["lines"]) <= limit
        lines += answer["lines"]
        cursor = answer["next_cursor"]
        if not cursor:
            return lines


def imported(core: Core, lines: list[Line], org: str, **args: Any) -> dict[str, Any]:
    """What became of lines."""
    # Through text, as a file would carry them.
    return core.call("store.import", org=org, lines=json.loads(json.dumps(lines)), **args)


def first(lines: list[Line], kind: str) -> Line:
    """A copy of the first line of a kind."""
    return copy.deepcopy(next(line for line in lines if line["kind"] == kind))


def with_part(line: Line, name: str, change: Line) -> Line:
    """The line with a change in the first of its parts."""
    return line | {name: [line[name][0] | change, *line[name][1:]]}
