"""dashboard.link, a one-time link that signs a person in to the dashboard; and what the audit has of signing in."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, cast

from pydantic import Field

from loom.access import sessions
from loom.access.caller import Caller, Role
from loom.canonical import Json
from loom.jobs.handlers import Bench, LateHandler
from loom.ops import audit
from loom.ops.fields import Instant, instant
from loom.ops.spec import Answer, Audited, Context, Kind, Later, Op, ServerRequest
from loom.storage.interface import SYSTEM_ORG, Transaction

ENTRY = "/enter?code="
"""Where the dashboard takes a code."""


SIGN_IN = "dashboard.sign_in"
"""The audit's word for it; there is no such operation."""

REFUSED = "sign_in.refused"
"""The name under which sign-ins that failed are queued."""

COUNTED_US = 3_600 * 1_000_000
"""For how long such sign-ins are counted in one record."""


@dataclass(frozen=True, slots=True)
class Witness:
    """Tells the audit who signs in, and how often somebody could not; `access.sessions.Witness`.

    Attributes:
        later: queues what failed, so that a flood of it costs one write a second.
        org: the install's, which is told of what names no token.
        clock_us: now, in microseconds UTC.
    """

    later: Later
    org: str
    clock_us: Callable[[], int]

    def opened(self, tx: Transaction, caller: Caller, by: str) -> None:
        """Record it with the session."""
        entry = audit.Entry(
            tenant=caller.pins.get("org", self.org),
            op=SIGN_IN,
            principal=caller.principal,
            about={"by": by},
            outcome={"signed_in": True},
        )
        audit.record(tx, entry, self.clock_us())

    def refused(self, by: str, token: Caller | None) -> None:
        """Count it. Of what was sent, nothing is kept but the id of a token that there is."""
        tenant = self.org if token is None else token.pins.get("org", self.org)
        token_id = "" if token is None else token.principal
        self.later(REFUSED, SYSTEM_ORG, {"tenant": tenant, "by": by, "token_id": token_id})


def note_refusals(bench: Bench, org: str, payloads: Sequence[Mapping[str, Json]]) -> None:
    """Keep how often sign-ins failed: a record an hour for each token that was named, and one for none."""
    counts = Counter(tuple(cast("str", one[name]) for name in ("tenant", "by", "token_id")) for one in payloads)
    with bench.database.transaction(org, write=True) as tx:
        for (tenant, by, token_id), count in sorted(counts.items()):
            about = {"by": by, **({"token_id": token_id} if token_id else {})}
            outcome: dict[str, int | bool] = {"signed_in": False, "attempts": count}
            entry = audit.Entry(tenant=tenant, op=SIGN_IN, about=about, outcome=outcome)
            audit.count_up(tx, entry, bench.clock_us(), COUNTED_US)


class LinkRequest(ServerRequest):
    """What dashboard.link takes."""


class LinkAnswer(Answer):
    """What dashboard.link answers."""

    path: Annotated[str, Field(description="Open this path of the server in a browser; it works once. A secret.")]
    expires_at: Annotated[Instant, Field(description="When it stops to work, unused or not.")]


def link(ctx: Context, request: LinkRequest) -> LinkAnswer:
    """Make a link for the caller, who is signed in by it with the same rights."""
    del request
    code, expires_at = sessions.new_code(ctx.tx, ctx.caller.principal, ctx.now_us)
    return LinkAnswer(path=ENTRY + code, expires_at=instant(expires_at))


LINK = Op(
    name="dashboard.link",
    summary="Make a link that opens the dashboard once, within five minutes, signed in as you.",
    takes=LinkRequest,
    gives=LinkAnswer,
    role=Role.VIEWER,
    kind=Kind.WRITE,
    run=link,
    example={},
    toolsets=frozenset(),
    own_org=True,
    replayable=False,
    audited=Audited(),
)

LATE: Mapping[str, LateHandler] = {REFUSED: note_refusals}
