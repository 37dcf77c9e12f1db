"""conversation.delete: turns, or a whole conversation, for good."""

from dataclasses import replace
from typing import Annotated, cast

from pydantic import Field

from loom.access import namespaces
from loom.access.caller import Role
from loom.errors import Denied, NotFound, Rejected
from loom.jobs import outbox
from loom.ledger import rules as reach
from loom.ops import idempotency
from loom.ops.spec import Answer, Audited, Context, Kind, Op, Request
from loom.planes.conversation import fields, indexing, rules, store
from loom.planes.conversation.fields import MessageId, SessionName, TurnId
from loom.planes.conversation.indexing import PURGED_AT_ONCE
from loom.planes.conversation.store import Session, Turn

TURNS_DELETED_MAX = 500


class DeleteRequest(Request):
    """What conversation.delete takes."""

    turn_id: Annotated[TurnId, Field(description="Delete this turn; empty when another field says what.")] = ""
    session: Annotated[
        SessionName,
        Field(description="The conversation that message_ids or whole_session are about; never taken from the call."),
    ] = ""
    message_ids: Annotated[
        list[MessageId],
        Field(max_length=TURNS_DELETED_MAX, description="Delete the turns of the session with these message ids."),
    ] = Field(default_factory=list)
    whole_session: Annotated[bool, Field(description="Delete the session named in session, with every turn.")] = False


class DeleteAnswer(Answer):
    """What conversation.delete answers."""

    session: Annotated[str, Field(description="The conversation.")]
    deleted: Annotated[int, Field(description="How many turns are gone: no operation shows or finds them any more.")]
    turn_count: Annotated[int, Field(description="How many turns the conversation still has; 0 when it is gone.")]


def delete(ctx: Context, request: DeleteRequest) -> DeleteAnswer:
    """Delete what is named, with its place in the indexes."""
    check_one(request)
    answer = deleted(ctx, request)
    about = {"session": answer.session, "namespace": request.namespace}
    idempotency.forget_text(ctx.tx, "conversation.append", about, "title")
    return answer


def deleted(ctx: Context, request: DeleteRequest) -> DeleteAnswer:
    """Delete the turn, the turns or the conversation that is named."""
    if request.turn_id:
        item_id = fields.item_id_of(request.turn_id, "turn_id")
        session, _ = fields.turn_meant(ctx.tx, request.namespace, fields.reader_of(ctx, request), item_id)
        session = held(ctx, session)
        turns = list(store.by_ids(ctx.tx, [item_id]).values())
        return without(ctx, session, turns)
    session = held(ctx, named(ctx, request))
    if request.whole_session:
        return gone(ctx, session)
    turns = store.by_message(ctx.tx, session.session_key, request.message_ids)
    return without(ctx, session, turns)


def check_one(request: DeleteRequest) -> None:
    """Rejected unless exactly one thing is named."""
    ways = (bool(request.turn_id), bool(request.message_ids), request.whole_session)
    if sum(ways) != 1:
        raise Rejected("turn_id: send exactly one of turn_id, message_ids and whole_session", field="turn_id")
    if not request.turn_id and not request.session:
        raise Rejected("session: name the conversation that is meant", field="session")


def named(ctx: Context, request: DeleteRequest) -> Session:
    """The user's conversation of this name.

    Raises:
        NotFound: there is none.
        Denied: the token does not reach it.
    """
    found = store.exact(ctx.tx, request.namespace, request.user_id, request.session)
    if found is None:
        raise NotFound("session: this user has no conversation of this name", field="session")
    if not reach.visible(found.user_id, found.session_id, fields.reader_of(ctx, request)):
        raise Denied("session: it belongs to another user or session than this token reaches", field="session")
    return found


def held(ctx: Context, session: Session) -> Session:
    """The conversation as it is once nobody else can change it.

    Raises:
        NotFound: it went meanwhile.
    """
    store.lock(ctx.tx, session.namespace, session.user_id, session.session_id)
    again = store.sessions(ctx.tx, [session.session_key]).get(session.session_key)
    if again is None:
        raise NotFound("session: there is no such conversation", field="session")
    return again


def without(ctx: Context, session: Session, turns: list[Turn]) -> DeleteAnswer:
    """Take turns out; a conversation whose last turn goes, goes too."""
    if turns:
        indexing.forget(ctx.tx, session.namespace, turns)
        indexing.scrub(ctx.tx, session.namespace)
        session = summed(ctx, session)
        if session.turn_count:
            store.put_session(ctx.tx, session)
        else:
            ctx.tx.run(store.DELETE_SESSION, session_key=session.session_key)
        namespaces.touch(ctx.tx, session.namespace, ctx.tx.stamp())
    return DeleteAnswer(session=session.session_id, deleted=len(turns), turn_count=session.turn_count)


def summed(ctx: Context, session: Session) -> Session:
    """The conversation with its sums counted anew, and a title that no deleted turn lends it."""
    sums = ctx.tx.row(store.SUMS, session_key=session.session_key)
    if sums is None:
        return session
    title = session.title
    if not session.titled:
        opening = ctx.tx.row(store.OPENING, session_key=session.session_key)
        title = "" if opening is None else rules.title_of(cast("str", opening["said"]))
    return replace(
        session,
        title=title,
        turn_count=cast("int", sums["turn_count"]),
        first_at=cast("int", sums["first_at"]),
        last_at=cast("int", sums["last_at"]),
    )


def gone(ctx: Context, session: Session) -> DeleteAnswer:
    """Delete a whole conversation: at once out of every answer, and out of the store as fast as it goes.

    Without the conversation's own row no read lets a turn of it through; what is
    more than a thousand turns is then removed by a job.
    """
    ctx.tx.run(store.DELETE_SESSION, session_key=session.session_key)
    turns = store.turns_from(ctx.tx, session.session_key, 0, PURGED_AT_ONCE)
    indexing.forget(ctx.tx, session.namespace, turns)
    if len(turns) == PURGED_AT_ONCE:
        outbox.enqueue(ctx.tx, indexing.PURGE, f"{session.session_key}:{session.namespace}")
    else:
        indexing.scrub(ctx.tx, session.namespace)
    namespaces.touch(ctx.tx, session.namespace, ctx.tx.stamp())
    return DeleteAnswer(session=session.session_id, deleted=session.turn_count, turn_count=0)


DELETE = Op(
    name="conversation.delete",
    summary="Delete turns of a conversation, or all of it, for good.",
    takes=DeleteRequest,
    gives=DeleteAnswer,
    role=Role.WRITER,
    kind=Kind.IDEMPOTENT,
    run=delete,
    example={"session": "planning-monday", "message_ids": ["m2"]},
    raises=(NotFound, Denied),
    destructive=True,
    audited=Audited(about=("session",), outcome=("deleted", "turn_count")),
)
