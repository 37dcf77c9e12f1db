"""Fields, answers and small steps that conversation operations share."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue

from loom.errors import NotFound, Rejected
from loom.ledger.rules import Reader
from loom.ops.fields import Instant, ScopeWord, instant
from loom.ops.spec import IDENTITY_LENGTH_MAX, NONE, Context, Prepare, Request
from loom.ops.text_checks import has_control
from loom.planes.conversation import rules, store
from loom.planes.conversation.store import Session, Turn
from loom.storage.interface import Transaction

MESSAGE_ID_LENGTH_MAX = 256
ROLE_LENGTH_MAX = 64
SPEAKER_LENGTH_MAX = 256
TITLE_LENGTH_MAX = 300
TURN_ID_LENGTH = len("turn_") + 16


def _session_name(name: str) -> str:
    if has_control(name):
        raise ValueError("control characters are not allowed")
    return "" if name == NONE else name


SessionName = Annotated[str, Field(max_length=IDENTITY_LENGTH_MAX), AfterValidator(_session_name)]
"""The name of a conversation; empty or `-` for the one the call is made in."""

MessageId = Annotated[str, Field(min_length=1, max_length=MESSAGE_ID_LENGTH_MAX)]

TurnId = Annotated[str, Field(max_length=TURN_ID_LENGTH)]
"""`turn_` and 16 hex digits; empty for none."""

ReadScopeField = Annotated[
    ScopeWord,
    Field(
        description="How far the read reaches: every user's conversations, this user_id's, or this session's; "
        "those of no user are always read. A token that reaches less far wins."
    ),
]


def text_or_blocks(content: JsonValue) -> JsonValue:
    """A message's content, once it is a text or a list of blocks; ValueError when it is neither."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list) or not all(isinstance(block, dict) for block in content):
        raise ValueError("should be a text, or a list of blocks, each an object with a type")
    if len(content) > rules.BLOCKS_MAX:
        raise ValueError(f"at most {rules.BLOCKS_MAX} blocks")
    return content


class TurnShown(BaseModel):
    """One message of a conversation."""

    model_config = ConfigDict(frozen=True)

    turn_id: Annotated[str, Field(description="Names the turn for good.")]
    message_id: Annotated[str, Field(description="The message's own id; the turn's id where it came without one.")]
    seq: Annotated[int, Field(description="Its number in the conversation, from 0; a deleted turn's stays free.")]
    role: Annotated[str, Field(description="user, assistant, system, tool or another word.")]
    speaker: Annotated[str, Field(description="Who spoke, by name; empty when it came without one.")]
    agent: Annotated[str, Field(description="The agent that appended it.")]
    said_at: Annotated[Instant, Field(description="When it was said.")]
    text: Annotated[str, Field(description="What was said; empty for a turn of thoughts or tool calls alone.")]
    aside: Annotated[str, Field(description="What thoughts, tool calls and results say, the beginning of it.")]
    truncated: Annotated[bool, Field(description="Whether text is cut because the answer would be too large.")]
    content: Annotated[
        JsonValue, Field(description="The message's content as it came, with bodies full; else null.")
    ] = None


class SessionShown(BaseModel):
    """One conversation."""

    model_config = ConfigDict(frozen=True)

    session: Annotated[str, Field(description="Its name.")]
    title: Annotated[str, Field(description="Its title, or the beginning of what the user said first.")]
    namespace: Annotated[str, Field(description="The namespace that holds it.")]
    agent: Annotated[str, Field(description="The agent that began it.")]
    user_id: Annotated[str, Field(description="Whose it is; '-' for none.")]
    turn_count: Annotated[int, Field(description="How many turns it has.")]
    first_at: Annotated[Instant, Field(description="When its earliest turn was said.")]
    last_at: Annotated[Instant, Field(description="When its latest turn was said.")]


def session_shown(session: Session) -> SessionShown:
    """A conversation as answers show it."""
    return SessionShown(
        session=session.session_id,
        title=session.title,
        namespace=session.namespace,
        agent=session.agent,
        user_id=session.user_id,
        turn_count=session.turn_count,
        first_at=instant(session.first_at),
        last_at=instant(session.last_at),
    )


def named_session(request: Request, session: str) -> str:
    """The name of the conversation that is meant: the field, else the call's own session.

    Raises:
        Rejected: there is neither.
    """
    name = session or request.session_id
    if name == NONE:
        raise Rejected("session: name the conversation; the call itself comes from none", field="session")
    return name


def reader_of(bench: Context | Prepare, request: Request) -> Reader:
    """How far this call reaches; for a write, how far its token does."""
    return Reader(bench.scope, request.user_id, request.session_id)


def item_id_of(turn_id: str, field: str) -> int:
    """The number behind a turn id.

    Raises:
        Rejected: it is no turn id.
    """
    number = rules.item_id_of(turn_id)
    if number is None:
        raise Rejected(f"{field}: a turn id is turn_ and 16 hex digits, as answers show it", field=field)
    return number


def turn_meant(tx: Transaction, namespace: str, reader: Reader, item_id: int) -> tuple[Session, Turn]:
    """A turn within reach, and its conversation.

    Raises:
        NotFound: there is none.
    """
    turn = store.by_ids(tx, [item_id]).get(item_id)
    session = None if turn is None else store.seen(tx, [namespace], reader, turn.session_key)
    if turn is None or session is None:
        raise NotFound("turn_id: there is no such turn in this namespace", field="turn_id")
    return session, turn
