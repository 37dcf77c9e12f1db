"""dashboard.link: a one-time link that signs a person in to the dashboard."""

from typing import Annotated

from pydantic import Field

from loom.access import sessions
from loom.access.caller import Role
from loom.ops.fields import Instant, instant
from loom.ops.spec import Answer, Audited, Context, Kind, Op, ServerRequest

ENTRY = "/enter?code="
"""Where the dashboard takes a code."""


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
