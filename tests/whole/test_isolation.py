"""No token reads a row outside its org, namespaces, user and session, by any operation, over HTTP and MCP."""

import itertools
import json
import re
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from anyio.from_thread import start_blocking_portal
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from running import READY_TIMEOUT_S, Server, running, wait_until

pytestmark = pytest.mark.slow

ORGS, NAMESPACES, USERS, SESSIONS = ("o1", "o2"), ("n1", "n2"), ("-", "u1", "u2"), ("s1", "s2")
MARK = re.compile(r"mark[a-z]\d+x")
SCOPES = ("namespace", "own_user", "own_session")

Call = Callable[[str, dict[str, Any]], str]
"""From an operation and its arguments to the answer's text, refusals included."""


@dataclass(frozen=True)
class Row:
    """One stored text and whose it is."""

    mark: str
    org: str
    namespace: str
    user: str
    session: str


@dataclass(frozen=True)
class World:
    """A filled server, its rows, and an admin token for each org."""

    server: Server
    rows: tuple[Row, ...]
    admins: dict[str, str]
    ids: tuple[str, ...]


@dataclass(frozen=True)
class Reach:
    """A token to try."""

    org: str
    namespaces: tuple[str, ...] | None
    user: str | None
    session: str | None
    scope: str
    asked_user: str
    asked_session: str
    face: str

    def may_see(self, row: Row) -> bool:
        """What the promise is."""
        if row.org != self.org or (self.namespaces is not None and row.namespace not in self.namespaces):
            return False
        if row.user == "-" or self.scope == "namespace":
            return True
        user, session = self.user or self.asked_user, self.session or self.asked_session
        return row.user == user and (self.scope == "own_user" or row.session == session)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, module_store: Mapping[str, str]) -> Iterator[World]:
    home = tmp_path_factory.mktemp("isolation") / "home"
    fast = {"embedder": "hashing", "reads_per_minute": "1000000", "writes_per_minute": "1000000"}
    with running(home, **fast, **module_store) as server:
        rows: list[Row] = []
        ids: list[str] = []
        for number, (org, space, user, session) in enumerate(itertools.product(ORGS, NAMESPACES, USERS, SESSIONS)):
            whose = {"org": org, "namespace": space, "user_id": user, "session_id": session, "agent": "writer"}
            memory, section, document, turn = (f"mark{letter}{number}x" for letter in "msdt")
            made = server.call("memory.set", **whose, memory_key=f"key/{session}", value=f"shared word {memory}")
            server.call("profile.set", **whose, label=f"about {session}", value=f"shared word {section}")
            server.call("knowledge.add", **whose, uri=f"{user}/{session}.md", text=f"shared word {document}")
            said = [{"role": "user", "message_id": "one", "content": f"shared word {turn}"}]
            server.call("conversation.append", **whose, title=f"about {turn}", messages=said)
            ids.append(made["memory_id"])
            rows += [Row(mark, org, space, user, session) for mark in (memory, section, document, turn)]
        for number, (org, space) in enumerate(itertools.product(ORGS, NAMESPACES)):
            rows += filled_scope(server, home, (org, space), number)
        yield World(server, tuple(rows), {org: minted_here(home, org, module_store) for org in ORGS}, tuple(ids))


def filled_scope(server: Server, home: Path, where: tuple[str, str], number: int) -> list[Row]:
    """The code and the issues of one namespace of each kind, which belong to no user."""
    org, space = where
    code, issue = f"markc{number}x", f"marki{number}x"
    root = home.parent / f"{org}-{space}"
    root.mkdir()
    (root / "app.py").write_text(f'def {code}():\n    """Shared word."""\n    return used()\n')
    bare = {"org": org, "agent": "writer"}
    server.call("code.index", **bare, namespace=f"{space}-code", source=str(root), vectors=False)
    item = {"number": 1, "title": f"TypeError shared word crash {issue}", "body": f"shared word {issue}"}
    server.call("tracker.import", **bare, namespace=f"{space}-issues", repository=root.name, items=[item])
    asked = {**bare, "namespace": f"{space}-code"}
    wait_until(lambda: server.call("code.index_status", **asked)["state"] == "ready", READY_TIMEOUT_S)
    return [Row(code, org, f"{space}-code", "-", "-"), Row(issue, org, f"{space}-issues", "-", "-")]


def minted_here(home: Path, org: str, store: Mapping[str, str]) -> str:
    """An admin token minted at the store itself, as its owner does."""
    command = [sys.executable, "-m", "loom", "token", "mint", "admin", "--role", "admin", "--org", org, "--json"]
    environment = {"LOOM_HOME": str(home)} | {f"LOOM_{name.upper()}": value for name, value in store.items()}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)["token"]


@contextmanager
def over_http(server: Server, token: str) -> Generator[Call]:
    bearer = {"Authorization": f"Bearer {token}"}
    yield lambda op, args: server.http.post(f"/v1/{op}", json=args, headers=bearer).text


@contextmanager
def over_mcp(server: Server, token: str) -> Generator[Call]:
    """One client for every call of an example, as an agent has one for its session."""
    with start_blocking_portal() as portal:
        headers = {"Authorization": f"Bearer {token}"}
        http = portal.wrap_async_context_manager(httpx2.AsyncClient(headers=headers, timeout=60))
        with http as opened:
            client = Client(streamable_http_client(f"{server.url}/mcp", http_client=opened))
            with portal.wrap_async_context_manager(client) as asked:

                def call(op: str, args: dict[str, Any]) -> str:
                    result = portal.call(asked.call_tool, "loom_op", {"op": op, "args": args})
                    return str(result.structured_content) + str(result.content)

                yield call


def reads(world: World, reach: Reach) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every way to read, aimed inside and outside of what the token reaches."""
    who = {"agent": "reader", "user_id": reach.asked_user, "session_id": reach.asked_session}
    for namespace in NAMESPACES:
        where = {**who, "namespace": namespace}
        for scope in ({}, {"read_scope": "namespace"}):
            yield "memory.search", {**where, **scope, "query": "shared word", "top_k": 100}
            yield "memory.list", {**where, **scope, "limit": 500}
            yield "profile.render", {**where, **scope}
        yield "memory.list", {**where, "memory_types": ["profile"], "contains": "mark"}
        yield "memory.search", {**where, "query": "shared word", "top_k": 1, "namespace_scope": "all_mine"}
        yield "search.query", {**where, "query": "shared word", "top_k": 100, "explain": True, "bodies": "full"}
        yield "profile.activity", where
        for session in SESSIONS:
            yield "memory.get", {**where, "memory_key": f"key/{session}"}
            yield "memory.history", {**where, "memory_key": f"key/{session}"}
            yield "memory.update", {**where, "memory_key": f"key/{session}", "tags": ["x"], "if_match_sha256": "0" * 64}
    for memory_id in world.ids[:: len(world.ids) // 6]:
        yield "memory.history", {**who, "namespace": "n1", "memory_id": memory_id}
    yield from itertools.chain.from_iterable(plane_reads(who, namespace) for namespace in NAMESPACES)
    yield "store.export", {**who, "namespace": "n1"}
    yield "namespace.list", who


def plane_reads(who: Mapping[str, Any], namespace: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every way to read documents, conversations, code and issues."""
    where = {**who, "namespace": namespace}
    asked = {"query": "shared word", "top_k": 50}
    for scope in ({}, {"read_scope": "namespace"}):
        yield "knowledge.search", {**where, **scope, **asked, "namespace_scope": "all_mine"}
        yield "knowledge.list", {**where, **scope}
        yield "conversation.search", {**where, **scope, **asked, "namespace_scope": "all_mine", "neighbours": 2}
        yield "conversation.list", {**where, **scope}
        yield "context.pack", {**where, **scope, "query": "shared word", "tokens_max": 8000}
        yield "context.activate", {**where, **scope, "tokens_max": 8000}
    for user, session in itertools.product(USERS, SESSIONS):
        yield "knowledge.get", {**where, "uri": f"{user}/{session}.md"}
    yield from (("conversation.get", {**where, "session": session}) for session in SESSIONS)
    code, issues = {**who, "namespace": f"{namespace}-code"}, {**who, "namespace": f"{namespace}-issues"}
    for op in ("search.query", "context.pack", "code.search"):
        yield op, {**code, "query": "TypeError: shared word crash in app.py"}
    yield "code.search", {**code, "query": "app"}
    yield "code.symbol", {**code, "name": "used"}
    yield "code.callers", {**code, "name": "used"}
    yield "code.read", {**code, "path": "app.py"}
    yield "tracker.get", {**issues, "number": 1}
    yield "tracker.search", {**issues, **asked}
    yield "tracker.duplicate_check", {**issues, "title": "TypeError shared word crash"}


REACHES = st.builds(
    Reach,
    org=st.sampled_from(ORGS),
    namespaces=st.sampled_from([None, ("n1",), ("n2",), ("n1", "n2"), ("n1", "n1-code"), ("n2-code", "n2-issues")]),
    user=st.sampled_from([None, "u1", "u2"]),
    session=st.sampled_from([None, "s1", "s2"]),
    scope=st.sampled_from(SCOPES),
    asked_user=st.sampled_from(USERS),
    asked_session=st.sampled_from(("-", *SESSIONS)),
    face=st.sampled_from(("http", "http", "mcp")),
)


@pytest.mark.timeout(400)
@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(reach=REACHES)
def test_no_read_shows_a_row_outside_the_tokens_reach(world: World, reach: Reach) -> None:
    pins = {"user_id": reach.user, "session_id": reach.session}
    body = {
        "name": "tried",
        "role": "writer",
        "pins": {name: value for name, value in pins.items() if value},
        "namespaces": reach.namespaces,
        "read_scope": reach.scope,
    }
    with world.server.client(world.admins[reach.org]) as admin:
        answer = admin.post("/v1/token.mint", json=body)
    assert answer.status_code == 200, answer.text
    face = over_mcp if reach.face == "mcp" else over_http
    by_mark = {row.mark: row for row in world.rows}
    seen: set[str] = set()
    with face(world.server, answer.json()["token"]) as call:
        for op, args in reads(world, reach):
            for mark in MARK.findall(call(op, args)):
                assert reach.may_see(by_mark[mark]), (op, args, by_mark[mark])
                seen.add(mark)
    shared = [row for row in world.rows if row.user == "-" and reach.may_see(row)]
    asked_outside = {reach.user, reach.asked_user, "-", None} - {reach.user, "-", None} and reach.user
    session_outside = reach.session and reach.asked_session not in ("-", reach.session)
    if not asked_outside and not session_outside:
        assert {row.mark for row in shared} <= seen
