"""What an operation is: its name, its two types, its role, its function."""

from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Generic, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from loom.access.caller import Caller, ReadScope, Role
from loom.canonical import Json
from loom.errors import LoomError
from loom.models.interface import Embedder
from loom.models.reranker import Reranker
from loom.models.writer import Writer
from loom.ops.text_checks import DEPTH_MAX
from loom.storage.interface import Database, Transaction

NONE = "-"
"""The identity value that means "none" or "not given"."""

IDENTITY_LENGTH_MAX = 256


Identity = Annotated[
    str,
    Field(json_schema_extra={"maxLength": IDENTITY_LENGTH_MAX, "pattern": "^[^\\x00-\\x1f\\x7f-\\x9f]*$"}),
]
"""An identity value as schemas show it; `ops.identity` checks it, after filling it in."""


class Request(BaseModel):
    """Base of every operation's input: who calls, and where the row belongs.

    Every operation shows the same six identity fields. `org`, `namespace` and
    `agent` are filled from the token and the transport where they can be.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    DEPTH_MAX: ClassVar[int] = DEPTH_MAX
    """How deep its values may be nested."""

    org: Annotated[Identity, Field(description="The tenant. Filled from the token, or the install's own.")]
    namespace: Annotated[Identity, Field(description="The namespace to read or write.")]
    agent: Annotated[
        Identity, Field(description="The agent that reads or writes; '-' or '*' for any where rows are read.")
    ]
    user_id: Annotated[Identity, Field(description="The end user the row is about; '-' for none.")] = NONE
    session_id: Annotated[Identity, Field(description="The conversation the row comes from; '-' for none.")] = NONE
    run_id: Annotated[Identity, Field(description="The agent run or task this call is part of; '-' for none.")] = NONE


class OpenRequest(Request):
    """Base for operations that do not need to know which agent calls."""

    agent: Annotated[Identity, Field(description="The agent that reads or writes; '-' or '*' for any.")] = NONE


class ServerRequest(OpenRequest):
    """Base for operations about the server or the org, which need no namespace."""

    namespace: Annotated[Identity, Field(description="Not needed here; '-' for none.")] = NONE


IDENTITY_FIELDS = ("org", "namespace", "agent", "user_id", "session_id", "run_id")


class Answer(BaseModel):
    """Base of every operation's output.

    An answer that lost a part says so in a field `degraded` of its own.
    Fields named in `ABSENT_WHEN_NONE` are left out of the JSON while they are None.
    """

    model_config = ConfigDict(frozen=True)

    ABSENT_WHEN_NONE: ClassVar[frozenset[str]] = frozenset()


class Kind(Enum):
    """What a repeated call does; transports turn it into their own hints."""

    READ = "read"
    WRITE = "write"
    IDEMPOTENT = "idempotent"


class Toolset(Enum):
    """The lists of MCP tools an operation can appear in. Unlisted ones are still callable."""

    DEFAULT = "default"
    ALL = "all"


class Later(Protocol):
    """Work that must not slow the answer and may be lost in a crash (who read what)."""

    def __call__(self, name: str, org: str, payload: Mapping[str, Json]) -> None:
        """Queue `payload` for the handler `name`; never blocks, drops when the queue is full."""
        ...

    def flush(self, org: str) -> None:
        """Hand on what is queued for `org` now. Waits for the store, so never inside a transaction."""
        ...


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds that an install sets and operations obey.

    Attributes:
        fanout_namespaces_max: how many namespaces one search reads.
        leg_timeout_s: how long search.query waits for each leg, the query's embedding included.
        tombstone_days: how long a deleted memory can be restored.
        git_schemes: the kinds of address that code.index fetches from.
        closed_folders: folders of the server that no operation reads files from, nor from anything in them.
        code_folders: the folders of the server that a token may have indexed.
        git_private_hosts: hosts and networks inside the server's own network that a token may have code fetched from.
    """

    fanout_namespaces_max: int
    leg_timeout_s: float
    tombstone_days: int
    git_schemes: tuple[str, ...]
    closed_folders: tuple[Path, ...] = ()
    code_folders: tuple[Path, ...] = ()
    git_private_hosts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Prepare:
    """What an op's `prepare` step may use: models, and short read transactions. No writes.

    Attributes:
        caller: who calls.
        scope: how far this read may reach; never wider than the token's ceiling.
        now_us: the moment of the call, microseconds UTC.
        embedder: turns text into vectors; never called inside a transaction.
        database: opens the read transactions.
        pool: runs several read transactions side by side.
        limits: the install's bounds.
        later: flushed by a read that shows what earlier calls queued.
        plane_orgs: the planes that keep an org of their own for this caller.
        may_lag: whether the op's reads may be a moment behind.
        reranker: reads a question and a text together; None where there is none. Never called inside a transaction.
        writer: the language model; None when none is configured.
    """

    caller: Caller
    scope: ReadScope
    now_us: int
    embedder: Embedder
    database: Database
    pool: Executor
    limits: Limits
    later: Later
    plane_orgs: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    may_lag: bool = False
    reranker: Reranker | None = None
    writer: Writer | None = None

    def org_of(self, plane: str, org: str) -> str:
        """The org in which a call of this caller to a plane's own operations works, where `org` is the request's."""
        return self.plane_orgs.get(plane, org)

    def read(self, org: str) -> AbstractContextManager[Transaction]:
        """A read transaction. Close it before a model is called.

        Where the op may lag, the block may end with Raced once; run again it does not, for a while.
        """
        return self.database.transaction(org, write=False, may_lag=self.may_lag)


@dataclass(frozen=True, slots=True)
class Context:
    """What a handler may use, besides its request. No models: a transaction is open.

    Attributes:
        caller: who calls.
        scope: how far this read may reach; never wider than the token's ceiling.
        tx: the open transaction on the request's org.
        now_us: the moment of the call, microseconds UTC.
        prepared: what the op's `prepare` step returned, or None; see `prepared_as`.
        later: queues work that may be lost.
        limits: the install's bounds.
        client: the calling program's name as the transport knows it, or None.
        unnoticed: whether a read of the profile is not to be noted as one.
    """

    caller: Caller
    scope: ReadScope
    tx: Transaction
    now_us: int
    prepared: object
    later: Later
    limits: Limits
    client: str | None = None
    unnoticed: bool = False


Prepared = TypeVar("Prepared")


def prepared_as(ctx: Context, kind: type[Prepared]) -> Prepared:
    """What `prepare` returned, checked to be a `kind`."""
    if not isinstance(ctx.prepared, kind):
        raise TypeError(f"prepare gave {type(ctx.prepared).__name__}, the handler wants {kind.__name__}")
    return ctx.prepared


In = TypeVar("In", bound=Request)
Out = TypeVar("Out", bound=Answer)


@dataclass(frozen=True, slots=True)
class Audited:
    """What the audit keeps of an operation's calls. Only names, ids and numbers may be listed.

    Attributes:
        about: fields of the answer, or else of the request, that name what the call was about.
        outcome: fields of the answer that say how much came of it: numbers, or yes or no.
        namespace: the field of the request that names the namespace.
        tenant: the org that the record concerns, from the context, the request and the answer; None for the
            request's. Asked after the handler, in its transaction.
    """

    about: tuple[str, ...] = ()
    outcome: tuple[str, ...] = ()
    namespace: str = "namespace"
    tenant: Callable[[Context, Any, Any], str] | None = None


@dataclass(frozen=True, slots=True)
class Op(Generic[In, Out]):
    """One operation, declared once; HTTP, OpenAPI, MCP, command line, client and docs read this.

    Attributes:
        name: dotted, `<plane>.<verb>`.
        summary: one sentence: what it does and when to use it.
        takes: the input; every field described.
        gives: the output; every field described.
        role: the least role that may call it.
        kind: read, write (a repeat writes again) or idempotent (a repeat changes nothing more).
        run: the handler, inside one transaction.
        example: an input that works on an empty store of a single user.
        prepare: runs before the transaction, with models and without a write.
        raises: errors beyond those every op can raise.
        toolsets: the MCP toolsets that list it.
        tool: its MCP name, when that is not `loom_` and the name with underscores.
        own_org: whether the transaction is on the system's own rows, not the request's org.
        replayable: whether an answer may be kept for an idempotency key; false where it holds a secret.
        destructive: whether it can take stored information away (an MCP hint).
        may_lag: whether a read may come from a replica that is a moment behind; false where callers read back
            what they just wrote.
        audited: what the audit keeps of each call, for a write that changes access or takes information away;
            None to keep nothing.
    """

    name: str
    summary: str
    takes: type[In]
    gives: type[Out]
    role: Role
    kind: Kind
    run: Callable[[Context, In], Out]
    example: Mapping[str, Json]
    prepare: Callable[[Prepare, In], object] | None = None
    raises: tuple[type[LoomError], ...] = ()
    toolsets: frozenset[Toolset] = field(default_factory=lambda: frozenset({Toolset.ALL}))
    tool: str = ""
    own_org: bool = False
    replayable: bool = True
    destructive: bool = False
    may_lag: bool = False
    audited: Audited | None = None


AnyOp = Op[Any, Any]
"""An Op whose types are not known to the reader, as dispatch and the edges see it."""


def plane_of(op: AnyOp) -> str:
    """The first part of the op's name."""
    return op.name.partition(".")[0]


def tool_name(op: AnyOp) -> str:
    """The op's MCP tool name: `loom_` and the name with underscores, unless it has its own."""
    return op.tool or "loom_" + op.name.replace(".", "_")
