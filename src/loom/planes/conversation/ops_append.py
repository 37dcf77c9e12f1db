"""conversation.append: messages at the end of a conversation, in order, each once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, WithJsonSchema

from loom.access import namespaces
from loom.access.caller import ReadScope, Role
from loom.canonical import Json
from loom.errors import Denied, Rejected, TooLong
from loom.ops.fields import EMBEDDER, Instant, instant, microseconds
from loom.ops.spec import Answer, Context, Kind, Op, Prepare, Request, Toolset, prepared_as
from loom.planes.conversation import fields, indexing, rules, store
from loom.planes.conversation.fields import MESSAGE_ID_LENGTH_MAX, ROLE_LENGTH_MAX, SPEAKER_LENGTH_MAX, SessionName
from loom.planes.conversation.indexing import Ready
from loom.planes.conversation.rules import Draft, Message
from loom.planes.conversation.store import Session, Turn
from loom.storage.interface import Transaction

MESSAGES_MAX = 500
CONFLICTS_SHOWN_MAX = 100


CONTENT_SCHEMA: Mapping[str, object] = {
    "anyOf": [{"type": "string"}, {"type": "array", "maxItems": rules.BLOCKS_MAX, "items": {"type": "object"}}]
}


class MessageSent(BaseModel):
    """One message, as chat APIs spell it."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    role: Annotated[
        str,
        Field(min_length=1, max_length=ROLE_LENGTH_MAX, description="user, assistant, system, tool or another word."),
    ]
    content: Annotated[
        JsonValue,
        AfterValidator(fields.text_or_blocks),
        WithJsonSchema(dict(CONTENT_SCHEMA)),
        Field(
            description="A text, or blocks of the kinds text, thinking, tool_use, tool_result, image and so on; "
            "other kinds are kept too. Bytes of pictures and files are left out."
        ),
    ]
    id: Annotated[
        str,
        Field(
            max_length=MESSAGE_ID_LENGTH_MAX,
            description="The message's own id in the conversation, so that a repeat adds nothing; may be empty.",
        ),
    ] = ""
    time: Annotated[Instant | None, Field(description="When it was said; null for now.")] = None
    name: Annotated[
        str, Field(max_length=SPEAKER_LENGTH_MAX, description="Who speaks, by name, where the role does not say it.")
    ] = ""


class AppendRequest(Request):
    """What conversation.append takes."""

    messages: Annotated[
        list[MessageSent],
        Field(min_length=1, max_length=MESSAGES_MAX, description="1 to 500 messages, in the order they were said."),
    ]
    session: Annotated[
        SessionName,
        Field(description="The conversation's name; empty for the session the call is made in (session_id)."),
    ] = ""
    title: Annotated[
        str,
        Field(
            max_length=fields.TITLE_LENGTH_MAX,
            description="What to call the conversation from now on; empty leaves it, or takes the user's first words.",
        ),
    ] = ""


class AppendAnswer(Answer):
    """What conversation.append answers."""

    ABSENT_WHEN_NONE: ClassVar[frozenset[str]] = frozenset({"degraded"})

    session: Annotated[str, Field(description="The conversation's name.")]
    namespace: Annotated[str, Field(description="The namespace that holds it.")]
    title: Annotated[str, Field(description="What it is called.")]
    appended: Annotated[int, Field(description="How many messages are new.")]
    unchanged: Annotated[int, Field(description="How many were there already, by their id.")]
    conflicts: Annotated[
        list[str],
        Field(description="Ids that stand for another message already; what is stored stays. At most 100 are named."),
    ]
    turn_count: Annotated[int, Field(description="How many turns the conversation has now.")]
    first_at: Annotated[Instant, Field(description="When its earliest turn was said.")]
    last_at: Annotated[Instant, Field(description="When its latest turn was said.")]
    degraded: Annotated[
        list[str] | None, Field(description="embedder when vectors follow because it failed; else absent.")
    ] = None


@dataclass(frozen=True, slots=True)
class Batch:
    """Messages ready to be written, and their vectors as far as they were made."""

    drafts: Sequence[Draft]
    ready: Ready


@dataclass(frozen=True, slots=True)
class Sorted:
    """Messages by what is to become of them."""

    new: Sequence[Draft]
    unchanged: int
    conflicts: Sequence[str]


def ready_to_append(prepare: Prepare, request: AppendRequest) -> Batch:
    """Read the messages, and embed what is new when it is little."""
    name = fields.named_session(request, request.session)
    check_reach(prepare, request, name)
    drafts = [
        rules.drafted(message_of(one, prepare.now_us), f"messages.{place}.content")
        for place, one in enumerate(request.messages)
    ]
    with prepare.read(request.org) as tx:
        session = store.exact(tx, request.namespace, request.user_id, name)
        known = known_in(tx, session, drafts)
    new = sorted_out(drafts, known).new
    texts = [rules.meaning_text(one.speaker, one.spoken.said) for one in new if one.spoken.said]
    return Batch(drafts, indexing.made_ready(prepare.embedder, texts))


def message_of(sent: MessageSent, now_us: int) -> Message:
    """A message as the rules take it."""
    said_at = now_us if sent.time is None else microseconds(sent.time)
    return Message(sent.id, sent.role, sent.name, said_at, cast("Json", sent.content))


def known_in(tx: Transaction, session: Session | None, drafts: Sequence[Draft]) -> Mapping[str, str]:
    """Of the messages' ids, those that the conversation has, each with the hash of what it stands for."""
    if session is None:
        return {}
    return store.held(tx, session.session_key, [one.message_id for one in drafts if one.message_id])


def check_reach(bench: Prepare | Context, request: Request, name: str) -> None:
    """Denied when the token reaches one conversation alone and this is another one."""
    if bench.scope is ReadScope.OWN_SESSION and name != request.session_id:
        raise Denied("session: this token reaches its own session alone; leave the field out", field="session")


def sorted_out(drafts: Sequence[Draft], known: Mapping[str, str]) -> Sorted:
    """Which messages are new; of two with one id the first counts."""
    seen = dict(known)
    new: list[Draft] = []
    conflicts: list[str] = []
    for one in drafts:
        there = seen.get(one.message_id) if one.message_id else None
        if there is None:
            new.append(one)
            if one.message_id:
                seen[one.message_id] = one.sha256
        elif there != one.sha256:
            conflicts.append(one.message_id)
    return Sorted(new, len(drafts) - len(new) - len(conflicts), conflicts)


def append(ctx: Context, request: AppendRequest) -> AppendAnswer:
    """Write what is new behind what is there, with its indexes."""
    batch = prepared_as(ctx, Batch)
    name = fields.named_session(request, request.session)
    store.lock(ctx.tx, request.namespace, request.user_id, name)
    before = store.exact(ctx.tx, request.namespace, request.user_id, name)
    known = known_in(ctx.tx, before, batch.drafts)
    found = sorted_out(batch.drafts, known)
    session = before or begun(ctx, request, name)
    if session.turn_count + len(found.new) > rules.TURNS_MAX:
        raise Rejected(
            f"session: a conversation has at most {rules.TURNS_MAX} turns; begin another one", field="session"
        )
    session, turns = grown(ctx, request, session, found.new)
    if request.title.strip():
        session = replace(session, title=request.title.strip(), titled=True)
    if session != before:
        store.put_session(ctx.tx, session)
    if turns:
        store.put_turns(ctx.tx, turns)
        indexing.index(ctx.tx, session, turns, batch.ready)
        namespaces.touch(ctx.tx, request.namespace, turns[-1].item_id)
    return AppendAnswer(
        session=name,
        namespace=request.namespace,
        title=session.title,
        appended=len(turns),
        unchanged=found.unchanged,
        conflicts=list(found.conflicts[:CONFLICTS_SHOWN_MAX]),
        turn_count=session.turn_count,
        first_at=instant(session.first_at),
        last_at=instant(session.last_at),
        degraded=[EMBEDDER] if batch.ready.failed else None,
    )


def begun(ctx: Context, request: AppendRequest, name: str) -> Session:
    """A conversation without a turn."""
    return Session(
        session_key=ctx.tx.stamp(),
        namespace=request.namespace,
        user_id=request.user_id,
        session_id=name,
        agent=request.agent,
        title="",
        titled=False,
        turn_count=0,
        next_seq=0,
        next_place=0,
        first_at=0,
        last_at=0,
        created_at=ctx.now_us,
    )


def grown(
    ctx: Context, request: AppendRequest, session: Session, new: Sequence[Draft]
) -> tuple[Session, Sequence[Turn]]:
    """The conversation with these messages behind its last, and their rows."""
    turns: list[Turn] = []
    for one in new:
        item_id = ctx.tx.stamp()
        named = one if one.message_id else replace(one, message_id=rules.turn_id_of(item_id))
        turn = store.turn_row(session, item_id, named, request.agent, request.run_id)
        turns.append(turn)
        first = one.said_at if session.turn_count == 0 else min(session.first_at, one.said_at)
        last = one.said_at if session.turn_count == 0 else max(session.last_at, one.said_at)
        session = replace(
            session,
            title=session.title or (rules.title_of(one.spoken.said) if one.role == "user" else ""),
            turn_count=session.turn_count + 1,
            next_seq=session.next_seq + 1,
            next_place=session.next_place + int(turn.spoken),
            first_at=first,
            last_at=last,
        )
    return session, turns


APPEND = Op(
    name="conversation.append",
    summary="Keep messages of a conversation for later ones to search; a message with a known id adds nothing.",
    takes=AppendRequest,
    gives=AppendAnswer,
    role=Role.WRITER,
    kind=Kind.WRITE,
    run=append,
    example={
        "session": "planning-monday",
        "messages": [
            {"id": "m1", "role": "user", "content": "Which database shall we take?"},
            {"id": "m2", "role": "assistant", "content": [{"type": "text", "text": "Postgres, since it is there."}]},
        ],
    },
    prepare=ready_to_append,
    raises=(Denied, TooLong),
    toolsets=frozenset({Toolset.ALL}),
)
