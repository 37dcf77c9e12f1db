"""conversation.get and conversation.list."""

import json
import re
from collections.abc import Sequence
from typing import Annotated, Literal, cast

from pydantic import Field, JsonValue

from loom.access.caller import Role
from loom.errors import NotFound, Rejected
from loom.ops.fields import Instant, instant, microseconds_or_none
from loom.ops.spec import Answer, Context, Kind, Op, OpenRequest
from loom.planes.conversation import fields, rules, store
from loom.planes.conversation.fields import ReadScopeField, SessionName, SessionShown, TurnId, TurnShown
from loom.planes.conversation.store import Session, Turn

TURNS_SHOWN_MAX = 200
SESSIONS_SHOWN_MAX = 100
ANSWER_CHARACTERS_MAX = 200_000
"""Characters of text and content in one answer, about; the first turn is shown whatever its length."""

TEXT_CHARACTERS_MAX = 50_000
ASIDE_SHOWN = 300
CURSOR = re.compile(r"(-?[0-9]{1,18}):([0-9]{1,19})")
CURSOR_LENGTH_MAX = 64
TIME_MAX = (1 << 63) - 1


class GetRequest(OpenRequest):
    """What conversation.get takes."""

    session: Annotated[
        SessionName,
        Field(description="The conversation's name; empty for the session the call is made in, or the turn's."),
    ] = ""
    turn_id: Annotated[TurnId, Field(description="Show the turns around this one; empty to read from start.")] = ""
    start: Annotated[
        int,
        Field(ge=0, le=TIME_MAX, description="The seq of the first turn; next_start of an answer reads on."),
    ] = 0
    limit: Annotated[
        int,
        Field(ge=1, le=TURNS_SHOWN_MAX, description="At most this many turns, 1 to 200; with turn_id half before it."),
    ] = 20
    bodies: Annotated[
        Literal["text", "full", "none"],
        Field(description="text: what was said; full: the content with tool calls and results as well; none: neither."),
    ] = "text"
    read_scope: ReadScopeField = "namespace"


class GetAnswer(Answer):
    """What conversation.get answers."""

    found: Annotated[bool, Field(description="Whether there is such a conversation.")]
    session: Annotated[SessionShown | None, Field(description="The conversation; null when there is none.")]
    turns: Annotated[list[TurnShown], Field(description="Its turns, in order.")]
    next_start: Annotated[int | None, Field(description="Send as start to read on; null at the end.")]


class ListRequest(OpenRequest):
    """What conversation.list takes."""

    limit: Annotated[int, Field(ge=1, le=SESSIONS_SHOWN_MAX, description="At most this many, 1 to 100.")] = 20
    cursor: Annotated[
        str, Field(max_length=CURSOR_LENGTH_MAX, description="next_cursor of the answer before; empty to begin.")
    ] = ""
    since: Annotated[Instant | None, Field(description="Only conversations with a turn at or after this time.")] = None
    until: Annotated[Instant | None, Field(description="Only conversations that began before this time.")] = None
    read_scope: ReadScopeField = "namespace"


class ListAnswer(Answer):
    """What conversation.list answers."""

    sessions: Annotated[list[SessionShown], Field(description="Conversations, the last spoken in first.")]
    total: Annotated[int, Field(description="How many there are on all pages.")]
    next_cursor: Annotated[str, Field(description="Send as cursor to read on; empty at the end.")]


def get(ctx: Context, request: GetRequest) -> GetAnswer:
    """Read turns of a conversation."""
    reader = fields.reader_of(ctx, request)
    if request.turn_id:
        item_id = fields.item_id_of(request.turn_id, "turn_id")
        session, turn = fields.turn_meant(ctx.tx, request.namespace, reader, item_id)
        if request.session not in ("", session.session_id):
            raise NotFound("turn_id: there is no such turn in this session", field="turn_id")
        before = store.turns_before(ctx.tx, session.session_key, turn.seq, request.limit // 2)
        start = before[0].seq if before else turn.seq
    else:
        found = store.meant(ctx.tx, request.namespace, fields.named_session(request, request.session), reader)
        if found is None:
            return GetAnswer(found=False, session=None, turns=[], next_start=None)
        session, start = found, request.start
    turns = store.turns_from(ctx.tx, session.session_key, start, request.limit + 1)
    shown = shown_turns(turns[: request.limit], request.bodies)
    more = turns[len(shown)].seq if len(turns) > len(shown) else None
    return GetAnswer(found=True, session=fields.session_shown(session), turns=shown, next_start=more)


def shown_turns(turns: Sequence[Turn], bodies: str) -> list[TurnShown]:
    """As many of the turns as fit into one answer, one at least."""
    shown: list[TurnShown] = []
    room = ANSWER_CHARACTERS_MAX
    for turn in turns:
        one = turn_shown(turn, bodies)
        room -= len(one.text) + len(one.aside) + (len(turn.content) if one.content is not None else 0)
        if room < 0 and shown:
            break
        shown.append(one)
    return shown


def turn_shown(turn: Turn, bodies: str) -> TurnShown:
    """One turn as it is shown."""
    silent = bodies == "none"
    return TurnShown(
        turn_id=rules.turn_id_of(turn.item_id),
        message_id=turn.message_id,
        seq=turn.seq,
        role=turn.role,
        speaker=turn.speaker,
        agent=turn.agent,
        said_at=instant(turn.said_at),
        text="" if silent else turn.said[:TEXT_CHARACTERS_MAX],
        aside="" if silent else turn.aside[:ASIDE_SHOWN],
        truncated=not silent and len(turn.said) > TEXT_CHARACTERS_MAX,
        content=cast("JsonValue", json.loads(turn.content)) if bodies == "full" else None,
    )


def list_sessions(ctx: Context, request: ListRequest) -> ListAnswer:
    """List conversations."""
    before_at, before_key = place_of(request.cursor)
    since, until = microseconds_or_none(request.since), microseconds_or_none(request.until)
    where = {
        **store.visible_params([request.namespace], fields.reader_of(ctx, request)),
        "since": -TIME_MAX if since is None else since,
        "until": TIME_MAX if until is None else until,
    }
    rows = ctx.tx.rows(
        store.NEWEST_SESSIONS, before_at=before_at, before_key=before_key, most=request.limit + 1, **where
    )
    found = [store.session_of(row) for row in rows]
    counted = ctx.tx.row(store.COUNT_SESSIONS, **where)
    more = len(found) > request.limit
    found = found[: request.limit]
    return ListAnswer(
        sessions=[fields.session_shown(one) for one in found],
        total=cast("int", counted["count"]) if counted else 0,
        next_cursor=cursor_of(found[-1]) if more else "",
    )


def cursor_of(session: Session) -> str:
    """The place of a conversation in the list."""
    return f"{session.last_at}:{session.session_key}"


def place_of(cursor: str) -> tuple[int, int]:
    """Time and number of the conversation that a cursor names; beyond all for an empty one.

    Raises:
        Rejected: it is no cursor.
    """
    if not cursor:
        return TIME_MAX, TIME_MAX
    match = CURSOR.fullmatch(cursor)
    if match is None or int(match[2]) > TIME_MAX:
        raise Rejected("cursor: not a cursor of an earlier answer; begin again without it", field="cursor")
    return int(match[1]), int(match[2])


GET = Op(
    name="conversation.get",
    summary="Read the turns of a conversation, or those around a turn that a search found.",
    takes=GetRequest,
    gives=GetAnswer,
    role=Role.VIEWER,
    kind=Kind.READ,
    run=get,
    example={"session": "planning-monday", "limit": 10},
    raises=(NotFound,),
)

LIST = Op(
    name="conversation.list",
    summary="List conversations with their titles, times and numbers of turns, the latest first.",
    takes=ListRequest,
    gives=ListAnswer,
    role=Role.VIEWER,
    kind=Kind.READ,
    run=list_sessions,
    example={"limit": 10},
)
