# ruff: noqa: ARG001, ARG002  # a fake takes what the real one takes
"""A small server of four operations over a store in memory, for tests of the edges."""

import threading
import time
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal, cast

from pydantic import Field
from starlette.applications import Starlette

from fakes import LIMITS, Unlimited
from loom.access.caller import LOCAL, Caller, Install, Role
from loom.canonical import Json
from loom.edges.http import Http, Lifecycle, http_app
from loom.edges.http.calls import Authenticate
from loom.edges.http.messages import BODY_LENGTH_MAX
from loom.edges.mcp import McpEndpoint, Tools, mcp_server
from loom.edges.workers import Workers
from loom.errors import NotFound, Rejected, ShaMismatch, Unauthenticated
from loom.models.hashing import HashingEmbedder
from loom.ops.dispatch import Dispatcher
from loom.ops.ratelimit import RateLimit
from loom.ops.registry import Registry
from loom.ops.spec import Answer, Context, Kind, Later, Op, OpenRequest, Request, Toolset
from loom.storage.indexes import IndexedText, Scored, Shelf, TextQuery, Vector
from loom.storage.interface import Param, Row, StoreError, Transaction, Value


class NoText:
    """A word index without words."""

    def put(self, shelf: Shelf, item_id: int, text: IndexedText) -> None: ...
    def remove(self, shelf: Shelf, item_id: int) -> None: ...
    def scrub(self, shelf: Shelf) -> None: ...
    def drop(self, shelf: Shelf) -> None: ...

    def best(self, shelf: Shelf, query: TextQuery, k: int, allowed: Collection[int] | None = None) -> Sequence[Scored]:
        return ()


class NoVectors:
    """A vector index without vectors."""

    def put(self, shelf: Shelf, item_id: int, space: str, vectors: Sequence[Vector]) -> None: ...
    def add(self, shelf: Shelf, item_id: int, space: str, vectors: Sequence[Vector]) -> None: ...
    def remove(self, shelf: Shelf, item_id: int) -> None: ...
    def drop(self, shelf: Shelf) -> None: ...

    def spaces(self) -> Mapping[str, int]:
        return {}

    def drop_others(self, keep: Collection[str], most: int) -> int:
        return 0

    def best(
        self, shelf: Shelf, space: str, vector: Vector, k: int, allowed: Collection[int] | None = None
    ) -> Sequence[Scored]:
        return ()

    def begin(self, shelf: Shelf, space: str, vector: Vector, k: int) -> Callable[[], Sequence[Scored]]:
        return lambda: ()

    def scores(self, shelf: Shelf, space: str, vector: Vector, item_ids: Collection[int]) -> Mapping[int, float]:
        return {}

    def missing(self, shelf: Shelf, space: str, item_ids: Collection[int]) -> Sequence[int]:
        return ()

    def first(self, shelf: Shelf, space: str, item_ids: Collection[int]) -> Mapping[int, Vector]:
        return {}


@dataclass
class MemoryTransaction:
    """Knows two kinds of row: a value under a key, and an answer under an idempotency key."""

    org: str
    kept: dict[tuple[Param, ...], Row]
    text: NoText = field(default_factory=NoText)
    vectors: NoVectors = field(default_factory=NoVectors)

    def rows(self, sql: str, /, **params: Param) -> Sequence[Row]:
        return list(self.kept.values())

    def row(self, sql: str, /, **params: Param) -> Row | None:
        return self.kept.get((self.org, params.get("principal"), params["key"]))

    def run(self, sql: str, /, **params: Param) -> int:
        self.kept[(self.org, params.get("principal"), params["key"])] = cast("Row", params)
        return 1

    def send(self, sql: str, /, **params: Param) -> None:
        self.run(sql, **params)

    def send_last(self, sql: str, /, **params: Param) -> None:
        self.run(sql, **params)

    def run_many(self, sql: str, params: Iterable[Mapping[str, Value]], /) -> None:
        for one in params:
            self.run(sql, **one)

    def claim(self, sql: str, /, **params: Param) -> Sequence[Row]:
        return self.rows(sql, **params)

    def lock(self, *key: str) -> None: ...
    def lock_own(self, *key: str) -> None: ...
    def share(self, *key: str) -> None: ...
    def stamp_soon(self) -> None: ...

    def stamp(self) -> int:
        return time.time_ns()

    def outstrip(self, number: int) -> None: ...

    def clock_ns(self) -> int:
        return time.time_ns()


class MemoryDatabase:
    """Rows in a dictionary behind one lock; `failing` makes every transaction fail."""

    def __init__(self) -> None:
        self.kept: dict[tuple[Param, ...], Row] = {}
        self.failing = False
        self._lock = threading.Lock()

    def transaction(
        self, org: str, *, write: bool, may_lag: bool = False, turn: Sequence[str] = ()
    ) -> AbstractContextManager[Transaction]:
        return self._transaction(org)

    @contextmanager
    def _transaction(self, org: str) -> Generator[Transaction]:
        if self.failing:
            raise StoreError("the disk is full; make room")
        with self._lock:
            yield MemoryTransaction(org, self.kept)

    def look(self, org: str, sql: str, /, **params: Param) -> Row | None:
        with self._transaction(org) as tx:
            return tx.row(sql, **params)

    def orgs(self) -> Sequence[str]:
        return ("dev",)

    def check(self) -> Sequence[str]:
        return ()

    def maintain(self) -> None: ...

    def shared_counts(self) -> None: ...

    def share_wakes(self, wake: Callable[[str], None]) -> Callable[[str], None]:
        return wake

    def close(self) -> None: ...


class SetRequest(Request):
    """A note to keep."""

    key: Annotated[str, Field(description="The note's key.", min_length=1)]
    value: Annotated[str, Field(description="The note.")]
    tags: Annotated[list[str], Field(description="Words it is found by.", default_factory=list)]
    mode: Annotated[Literal["keep", "replace"], Field(description="What to do when it is there.")] = "replace"
    if_match_sha256: Annotated[str | None, Field(description="Only over this content.")] = None


class SetAnswer(Answer):
    """What was kept, and for whom."""

    ABSENT_WHEN_NONE: ClassVar[frozenset[str]] = frozenset({"note"})

    key: Annotated[str, Field(description="The note's key.")]
    version: Annotated[int, Field(description="Above 2^53.")]
    who: Annotated[dict[str, str], Field(description="The identity that was filled in.")]
    note: Annotated[str | None, Field(description="Something to say.")] = None


class GetRequest(OpenRequest):
    """A note to read."""

    key: Annotated[str, Field(description="The note's key.")]


class GetAnswer(Answer):
    """The note."""

    key: Annotated[str, Field(description="The note's key.")]
    value: Annotated[str | None, Field(description="The note.")]


class ClearRequest(OpenRequest):
    """Nothing more to say."""


class ClearAnswer(Answer):
    """How many went."""

    count: Annotated[int, Field(description="Notes that went.")]


def set_note(ctx: Context, request: SetRequest) -> SetAnswer:
    if request.if_match_sha256:
        raise ShaMismatch("if_match_sha256: the note has changed; read it again", current_sha256="00")
    ctx.tx.run("set", key=request.key, value=request.value)
    who = {name: getattr(request, name) for name in ("org", "namespace", "agent", "user_id", "session_id", "run_id")}
    return SetAnswer(key=request.key, version=2**53 + 7, who=who)


def get_note(ctx: Context, request: GetRequest) -> GetAnswer:
    row = ctx.tx.row("get", key=request.key)
    if row is None:
        raise NotFound("key: no note has it; note.set makes one", field="key")
    return GetAnswer(key=request.key, value=str(row["value"]))


def clear_notes(ctx: Context, request: ClearRequest) -> ClearAnswer:
    return ClearAnswer(count=len(ctx.tx.rows("all")))


class Trap:
    """An operation that breaks, with a secret in its message, or waits until it is let go."""

    def __init__(self) -> None:
        self.entered = threading.Semaphore(0)
        self.release = threading.Event()

    def run(self, ctx: Context, request: GetRequest) -> GetAnswer:
        if request.key == "break":
            raise ZeroDivisionError("the secret text 4711")
        self.entered.release()
        if not self.release.wait(60):
            raise Rejected("nobody let go")
        return GetAnswer(key=request.key, value=None)


def ops_of(trap: Trap) -> Registry:
    key: Mapping[str, Json] = {"key": "a"}
    everywhere = frozenset({Toolset.DEFAULT, Toolset.ALL})
    return Registry(
        (
            Op(
                "note.set",
                "Keep a note.",
                SetRequest,
                SetAnswer,
                Role.WRITER,
                Kind.WRITE,
                set_note,
                {"key": "a", "value": "tea"},
                raises=(ShaMismatch,),
                toolsets=everywhere,
            ),
            Op("note.get", "Read a note.", GetRequest, GetAnswer, Role.VIEWER, Kind.READ, get_note, key,
               raises=(NotFound,), toolsets=everywhere),
            Op("note.clear", "Drop all notes.", ClearRequest, ClearAnswer, Role.ADMIN, Kind.IDEMPOTENT, clear_notes, {},
               destructive=True),
            Op("note.trap", "Break or wait.", GetRequest, GetAnswer, Role.VIEWER, Kind.READ, trap.run, key,
               toolsets=frozenset()),
        )
    )  # fmt: skip


class NoLater:
    """Drops what could be done later."""

    def __call__(self, name: str, org: str, payload: Mapping[str, Json]) -> None: ...
    def flush(self, org: str) -> None: ...


TOKENS: Mapping[str, Caller] = {
    "Bearer viewer": Caller("viewer", Role.VIEWER, {"org": "acme"}, frozenset({"team"})),
    "Bearer writer": Caller("writer", Role.WRITER, {"org": "acme"}, frozenset({"team"})),
    "Bearer admin": Caller("admin", Role.ADMIN, {"org": "acme"}, None),
}


def token_only(authorization: str | None) -> Caller:
    caller = TOKENS.get(authorization or "")
    if caller is None:
        raise Unauthenticated("send a valid token as Authorization: Bearer <token>")
    return caller


def anyone(authorization: str | None) -> Caller:
    return LOCAL if authorization is None else token_only(authorization)


@dataclass
class Kit:
    """The small server's parts."""

    trap: Trap = field(default_factory=Trap)
    database: MemoryDatabase = field(default_factory=MemoryDatabase)
    seen: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    rate_limit: RateLimit = field(default_factory=Unlimited)
    later: Later = field(default_factory=NoLater)
    pool: ThreadPoolExecutor = field(default_factory=ThreadPoolExecutor)
    woken: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self.registry = ops_of(self.trap)
        self.workers = Workers()
        self.lifecycle = Lifecycle()
        self.dispatcher = Dispatcher(
            self.registry,
            self.database,
            HashingEmbedder(),
            Install(),
            self.rate_limit,
            lambda: time.time_ns() // 1000,
            self.later,
            self.observe,
            self.pool,
            LIMITS,
            self.woken.append,
        )

    def app(self, authenticate: Authenticate = anyone, **changes: Any) -> Starlette:
        tools = Tools(self.registry, self.dispatcher.call, self.workers)
        limit = changes.get("body_length_max", BODY_LENGTH_MAX)
        endpoint = McpEndpoint(mcp_server(tools, "1.2.3"), authenticate, self.workers, self.lifecycle, limit)
        parts = Http(
            self.registry,
            self.dispatcher.call,
            authenticate,
            "1.2.3",
            mcp=endpoint,
            workers=self.workers,
            lifecycle=self.lifecycle,
        )
        return http_app(replace(parts, **changes))

    def observe(self, op: str, outcome: str, seconds: float) -> None:
        self.seen.append((op, outcome))
