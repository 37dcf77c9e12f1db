"""memory.set_from_messages: what a conversation says, as memories."""

from typing import Final

from loom.access.caller import Role
from loom.errors import Conflict, ModelFailed, Rejected, TooLong
from loom.ops.identity import check_one_agent
from loom.ops.spec import Context, Kind, Op, Prepare, prepared_as
from loom.planes.memory import extracting, extractions
from loom.planes.memory.extracting import Desk, Extraction
from loom.planes.memory.keeping import answer_of, kept
from loom.planes.memory.messages import SetFromMessagesAnswer, SetFromMessagesRequest

TIMEOUT_S: Final = 120.0
"""How long the model may take for the messages of one call that waits for it."""

NO_MODEL: Final = (
    "no language model is configured, and messages are read by one: set LOOM_WRITER_URL and LOOM_WRITER_MODEL on the"
    " server (the guide 'Using a language model' says what is sent there), or write claims of your own with"
    " memory.set_many"
)


def ready_to_set_from(prepare: Prepare, request: SetFromMessagesRequest) -> Extraction | None:
    """Have the messages read, unless that is for later."""
    check_one_agent(request)
    if prepare.writer is None:
        raise Rejected(NO_MODEL)
    turns = request.turns(prepare.now_us)
    if request.deferred or not turns:
        return None
    desk = Desk(prepare.database, prepare.embedder, prepare.writer, prepare.scope, prepare.now_us)
    return extracting.answered(desk, request, TIMEOUT_S)


def set_from_messages(ctx: Context, request: SetFromMessagesRequest) -> SetFromMessagesAnswer:
    """Write what the messages say, or keep them for later."""
    if ctx.prepared is not None:
        return kept(ctx, request, prepared_as(ctx, Extraction))
    waits = request.deferred and bool(request.turns(ctx.now_us))
    if waits:
        extractions.put(ctx.tx, request, (ctx.caller.principal, ctx.scope), ctx.now_us)
    return answer_of([], deferred=waits)


SET_FROM_MESSAGES = Op(
    name="memory.set_from_messages",
    summary="Have the language model read messages, and remember what they say as claims that name them. "
    "The messages are sent to the endpoint that the server's settings name.",
    takes=SetFromMessagesRequest,
    gives=SetFromMessagesAnswer,
    role=Role.WRITER,
    kind=Kind.WRITE,
    run=set_from_messages,
    example={
        "session": "planning-monday",
        "messages": [
            {
                "id": "m1",
                "role": "user",
                "time": "2026-03-02T09:00:00Z",
                "content": "Since yesterday we run PostgreSQL 18.",
            }
        ],
    },
    prepare=ready_to_set_from,
    raises=(Rejected, TooLong, Conflict, ModelFailed),
    destructive=True,
)
