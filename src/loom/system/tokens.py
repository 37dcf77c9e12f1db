"""token.mint, token.list and token.revoke: who may call, and how far they reach."""

from collections.abc import Mapping, Sequence
from typing import Annotated, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from loom.access import tokens
from loom.access.caller import Caller, ReadScope, Role
from loom.access.tokens import Token, covers
from loom.canonical import Json
from loom.errors import Denied, NotFound, Rejected
from loom.jobs.handlers import Bench
from loom.ops.fields import DAY_US, Instant, RoleWord, ScopeWord, instant, instant_or_none, microseconds
from loom.ops.identity import ANY_AGENT, NOT_GIVEN
from loom.ops.spec import IDENTITY_LENGTH_MAX, Answer, Audited, Context, Kind, Op, ServerRequest
from loom.ops.text_checks import has_control

USED = "token.used"
"""The name under which uses of tokens are queued."""

NAME_LENGTH_MAX = 256
NAMESPACES_MAX = 1000
TTL_DAYS_MAX = 3650
LISTED_MAX = 1000


def _plain(value: str) -> str:
    if has_control(value):
        raise ValueError("control characters are not allowed")
    return value


def _pinnable(value: str) -> str:
    if value == ANY_AGENT:
        raise ValueError("'*' is every one, which is no pin; leave it out")
    return _plain(value)


Name = Annotated[str, Field(min_length=1, max_length=NAME_LENGTH_MAX), AfterValidator(_plain)]
Identity = Annotated[str, Field(min_length=1, max_length=IDENTITY_LENGTH_MAX), AfterValidator(_plain)]
Pin = Annotated[str, Field(max_length=IDENTITY_LENGTH_MAX), AfterValidator(_pinnable)]


class Pins(BaseModel):
    """Identity values that a token fixes."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    org: Annotated[Pin | None, Field(description="The tenant; null for the one of this call.")] = None
    agent: Annotated[Pin | None, Field(description="The agent; null for whatever the client says.")] = None
    user_id: Annotated[Pin | None, Field(description="The end user; null for whatever the client says.")] = None
    session_id: Annotated[Pin | None, Field(description="The conversation; null for whatever the client says.")] = None


class MintRequest(ServerRequest):
    """What token.mint takes."""

    name: Annotated[Name, Field(description="What the token is for, for instance a person's or a machine's name.")]
    role: Annotated[RoleWord, Field(description="viewer reads, writer writes as well, admin manages the rest.")] = (
        "writer"
    )
    pins: Annotated[Pins, Field(description="Identity values to fix; calls that name others are refused.")] = Pins()
    namespaces: Annotated[
        Annotated[list[Identity], Field(min_length=1, max_length=NAMESPACES_MAX)] | None,
        Field(description="The namespaces it reaches; null for all that this caller reaches."),
    ] = None
    read_scope: Annotated[
        ScopeWord | None,
        Field(
            description="How far it reads across users at most; null for as far as this caller does. "
            "With own_user each call names its user_id, unless pins fix it."
        ),
    ] = None
    expires_at: Annotated[
        Instant | None, Field(description="When it ends; null for never, or with this caller's token if that ends.")
    ] = None
    ttl_days: Annotated[
        Annotated[int, Field(ge=1, le=TTL_DAYS_MAX)] | None,
        Field(description="In how many days it ends, in place of expires_at; null as there."),
    ] = None


class TokenView(Answer):
    """A token, its secret left out."""

    token_id: Annotated[str, Field(description="Names the token, for token.revoke and in the audit.")]
    name: Annotated[str, Field(description="What it is for.")]
    role: Annotated[RoleWord, Field(description="What it may do.")]
    org: Annotated[str, Field(description="The tenant it belongs to.")]
    pins: Annotated[dict[str, str], Field(description="The identity values it fixes, the tenant among them.")]
    namespaces: Annotated[list[str] | None, Field(description="The namespaces it reaches; null for all of the tenant.")]
    read_scope: Annotated[ScopeWord, Field(description="How far it reads across users at most.")]
    created_at: Annotated[Instant, Field(description="When it was minted.")]
    expires_at: Annotated[Instant | None, Field(description="When it ends by itself; null for never.")]
    last_used_at: Annotated[Instant | None, Field(description="When it was used last, to the minute; null for never.")]
    revoked_at: Annotated[Instant | None, Field(description="When it was revoked; null while it was not.")]
    minted_by: Annotated[
        str | None,
        Field(
            description="Who minted it: the token_id of a token, or local for somebody on the server's own machine "
            "without one; null for tokens from before this was kept."
        ),
    ]


class MintAnswer(TokenView):
    """What token.mint answers."""

    token: Annotated[str, Field(description="The token itself. It is shown here once and kept nowhere.")]


class ListRequest(ServerRequest):
    """What token.list takes."""


class ListAnswer(Answer):
    """What token.list answers."""

    tokens: Annotated[
        list[TokenView], Field(description="At most 1,000 tokens, the newest first; ended ones are among them.")
    ]


class RevokeRequest(ServerRequest):
    """What token.revoke takes."""

    token_id: Annotated[Name, Field(description="The token to end, as token.list names it.")]
    keep_minted: Annotated[
        bool,
        Field(
            description="Whether the tokens that it minted, and those that they minted, stay good. "
            "Left out, they end with it; revoke a token again to end what was kept."
        ),
    ] = False


class RevokeAnswer(Answer):
    """What token.revoke answers."""

    token_id: Annotated[str, Field(description="The token that has ended.")]
    revoked_at: Annotated[Instant, Field(description="When it ended; the first time, if it was revoked before.")]
    minted_revoked: Annotated[
        int, Field(description="How many good tokens ended with it: those that it minted, itself or through others.")
    ]
    minted_kept: Annotated[int, Field(description="How many such tokens are still good, for keep_minted.")]


def mint(ctx: Context, request: MintRequest) -> MintAnswer:
    """Mint a token that reaches no further than its minter, which is good until this has been written."""
    minter = _minter(ctx)
    if minter is not None and minter.generation >= tokens.GENERATIONS_MAX:
        raise Denied(f"{tokens.GENERATIONS_MAX} tokens minted one another down to this; mint with an earlier one")
    wanted = _wanted(ctx.caller, request)
    if not covers(ctx.caller, wanted):
        raise Denied("role, pins, namespaces, read_scope: a token cannot reach further than the one that mints it")
    expires_at = _ending(minter, request, ctx.now_us)
    text, token = tokens.mint(ctx.tx, wanted, request.name, ctx.now_us, expires_at, minter)
    return MintAnswer(token=text, **dict(view(token)))


def list_tokens(ctx: Context, request: ListRequest) -> ListAnswer:
    """Show the tokens that reach no further than the caller's, in the same org."""
    del request
    seen = [view(token) for token in tokens.listed(ctx.tx) if covers(ctx.caller, token.caller)]
    return ListAnswer(tokens=seen[:LISTED_MAX])


def revoke(ctx: Context, request: RevokeRequest) -> RevokeAnswer:
    """End a token, and those that it minted, itself or through others.

    None of those reaches further than it, so that who may end it may end them all.
    """
    tokens.close(ctx.tx)
    token = tokens.find(ctx.tx, request.token_id)
    if token is None or not covers(ctx.caller, token.caller):
        raise NotFound("token_id: there is no such token; token.list shows them", field="token_id")
    minted = tokens.minted(ctx.tx, request.token_id, ctx.now_us)
    ending = () if request.keep_minted else (*minted.good, *minted.over)
    tokens.revoke(ctx.tx, (request.token_id, *ending), ctx.now_us)
    return RevokeAnswer(
        token_id=request.token_id,
        revoked_at=instant(ctx.now_us if token.revoked_at is None else token.revoked_at),
        minted_revoked=0 if request.keep_minted else len(minted.good),
        minted_kept=len(minted.good) if request.keep_minted else 0,
    )


def tenant_of_revoked(ctx: Context, request: RevokeRequest, answer: RevokeAnswer) -> str:
    """The org of the token that has ended; its admins see who did it."""
    del request
    token = tokens.find(ctx.tx, answer.token_id)
    return ctx.tx.org if token is None else token.caller.pins["org"]


def note_uses(bench: Bench, org: str, payloads: Sequence[Mapping[str, Json]]) -> None:
    """Keep when tokens were used. Several are held at once, so they are in order, and none is revoked meanwhile."""
    uses = sorted((cast("str", payload["token_id"]), cast("int", payload["at"])) for payload in payloads)
    with bench.database.transaction(org, write=True) as tx:
        tokens.enter(tx)
        for token_id, at in uses:
            tokens.used(tx, token_id, at)


def view(token: Token) -> TokenView:
    """A token as answers show it."""
    caller = token.caller
    return TokenView(
        token_id=caller.principal,
        name=token.name,
        role=cast("RoleWord", caller.role.word),
        org=caller.pins["org"],
        pins=dict(caller.pins),
        namespaces=None if caller.namespaces is None else sorted(caller.namespaces),
        read_scope=cast("ScopeWord", caller.read_scope.word),
        created_at=instant(token.created_at),
        expires_at=instant_or_none(token.expires_at),
        last_used_at=instant_or_none(token.last_used_at),
        revoked_at=instant_or_none(token.revoked_at),
        minted_by=token.minted_by,
    )


def _wanted(minter: Caller, request: MintRequest) -> Caller:
    """Whom the token is to stand for; what is left out is the minter's own."""
    given = {field: value for field, value in request.pins if value not in NOT_GIVEN}
    names = request.namespaces
    return Caller(
        "",
        Role[request.role.upper()],
        {"org": request.org, **minter.pins, **given},
        minter.namespaces if names is None else frozenset(names),
        minter.read_scope if request.read_scope is None else ReadScope[request.read_scope.upper()],
    )


def _minter(ctx: Context) -> Token | None:
    """The token that mints, which nobody revokes until the transaction ends; None for a caller without one.

    Raises:
        Unauthenticated: it was revoked since the call began.
    """
    tokens.enter(ctx.tx)
    if ctx.caller.tokenless:
        return None
    token = tokens.find(ctx.tx, ctx.caller.principal)
    tokens.check(token, ctx.now_us)
    return token


def _ending(minter: Token | None, request: MintRequest, now_us: int) -> int | None:
    """When the token ends: as asked for, else when its minter does.

    Raises:
        Denied: its minter ends before.
    """
    asked = _expiry(request, now_us)
    latest = None if minter is None else minter.expires_at
    if asked is None or latest is None:
        return latest if asked is None else asked
    if asked > latest:
        raise Denied(
            "expires_at, ttl_days: a token cannot outlive the one that mints it; leave both out to end with it"
        )
    return asked


def _expiry(request: MintRequest, now_us: int) -> int | None:
    if request.ttl_days is not None:
        if request.expires_at is not None:
            raise Rejected("ttl_days: send this or expires_at, not both", field="ttl_days")
        return now_us + request.ttl_days * DAY_US
    if request.expires_at is None:
        return None
    expires_at = microseconds(request.expires_at)
    if expires_at <= now_us:
        raise Rejected("expires_at: is over already; send a time to come", field="expires_at")
    return expires_at


MINT = Op(
    name="token.mint",
    summary="Make a token for a person or a machine. The first one ends calls without a token.",
    takes=MintRequest,
    gives=MintAnswer,
    role=Role.ADMIN,
    kind=Kind.WRITE,
    run=mint,
    example={"name": "ada's laptop", "role": "writer", "ttl_days": 90},
    raises=(Denied,),
    toolsets=frozenset(),
    own_org=True,
    replayable=False,
    audited=Audited(about=("token_id", "role"), tenant=lambda _ctx, _request, answer: answer.org),
)

LIST = Op(
    name="token.list",
    summary="See every token that reaches no further than yours, without its secret.",
    takes=ListRequest,
    gives=ListAnswer,
    role=Role.ADMIN,
    kind=Kind.READ,
    run=list_tokens,
    example={},
    toolsets=frozenset(),
    own_org=True,
)

REVOKE = Op(
    name="token.revoke",
    summary="End a token and every token that it minted, itself or through others, at once and in every process.",
    takes=RevokeRequest,
    gives=RevokeAnswer,
    role=Role.ADMIN,
    kind=Kind.IDEMPOTENT,
    run=revoke,
    example={"token_id": "0123456789ab"},
    raises=(NotFound,),
    toolsets=frozenset(),
    own_org=True,
    destructive=True,
    audited=Audited(about=("token_id",), outcome=("minted_revoked", "minted_kept"), tenant=tenant_of_revoked),
)

OPS = (MINT, LIST, REVOKE)
LATE = {USED: note_uses}
