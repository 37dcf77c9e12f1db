"""Conversations as lines of an export: each with some of its turns, in their order."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Final, Literal, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue

from loom.access import namespaces
from loom.canonical import Json
from loom.errors import Rejected
from loom.ops.spec import Context
from loom.planes import cargo
from loom.planes.cargo import Cargo, Carried, Count, IdentityText, Key, Line, Moment, Reach, Sha256, Stamp
from loom.planes.conversation import fields, indexing, rules, store
from loom.planes.conversation.indexing import Ready
from loom.planes.conversation.rules import Message
from loom.planes.conversation.store import Session, Turn
from loom.storage.interface import Transaction

TURNS_MAX: Final = 100
"""Turns in one line; a conversation with more has several lines, the first turns first."""

LINE_CHARACTERS_MAX: Final = 1_000_000
"""Characters of turns in one line, about; one turn always fits."""

SESSIONS_FROM = (
    store.SESSION
    + """
WHERE s.org = :org AND (:every = 1 OR s.namespace IN (:namespaces)) AND s.session_key >= :least
ORDER BY s.session_key LIMIT :most
"""
)

COUNT = """
SELECT count(*) AS total FROM conversation_session
WHERE org = :org AND (:every = 1 OR namespace IN (:namespaces))
"""

# Three look-ups, each by an index of its own: with OR, an engine without statistics reads every turn of the org.
TAKEN = (
    store.TURN
    + "WHERE t.org = :org AND t.item_id IN (:ids) UNION ALL "
    + store.TURN
    + "WHERE t.org = :org AND t.session_key = :session_key AND t.seq IN (:numbers) UNION ALL "
    + store.TURN
    + "WHERE t.org = :org AND t.session_key = :session_key AND t.message_id IN (:messages)"
)

NO_VECTORS: Final = Ready("", {})


class TurnPart(BaseModel):
    """One turn. What it says is read out of its content again."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    item_id: Stamp
    seq: Count
    place: Annotated[int, Field(ge=-1, le=cargo.COUNT_MAX)]
    message_id: Annotated[str, Field(min_length=1, max_length=fields.MESSAGE_ID_LENGTH_MAX)]
    role: Annotated[str, Field(min_length=1, max_length=fields.ROLE_LENGTH_MAX)]
    speaker: Annotated[str, Field(max_length=fields.SPEAKER_LENGTH_MAX)] = ""
    agent: IdentityText
    run_id: IdentityText = "-"
    said_at: Moment
    content: Annotated[JsonValue, AfterValidator(fields.text_or_blocks)]
    content_sha256: Sha256
    created_at: Moment


class ConversationLine(Line):
    """A conversation and some of its turns. Its sums are counted again."""

    KIND: ClassVar[str] = "conversation"

    kind: Literal["conversation"]
    session_key: Stamp
    namespace: IdentityText
    user_id: IdentityText
    session_id: IdentityText
    agent: IdentityText
    title: Annotated[str, Field(max_length=fields.TITLE_LENGTH_MAX)] = ""
    titled: bool
    next_seq: Count
    next_place: Count
    created_at: Moment
    turns: Annotated[list[TurnPart], Field(min_length=1, max_length=TURNS_MAX)]


@dataclass(frozen=True, slots=True)
class Made:
    """A line, and its turns as rows."""

    line: ConversationLine
    turns: Sequence[Turn]


def read(tx: Transaction, reach: Reach, after: Key) -> Iterator[Carried]:
    """Lines after a place, which is a conversation and the number of the next turn; -1 for after its last."""
    first, start = int(after[0]), int(after[1])

    def fetch(before: int) -> Sequence[Session]:
        rows = tx.rows(SESSIONS_FROM, least=before + 1, most=cargo.AT_ONCE, **reach.params())
        return [store.session_of(row) for row in rows]

    for session in cargo.in_order(fetch, lambda one: one.session_key, first if start < 0 else first - 1):
        yield from lines_of(tx, session, start if session.session_key == first else 0)


def lines_of(tx: Transaction, session: Session, start: int) -> Iterator[Carried]:
    """A conversation's lines, from a turn on."""
    while start >= 0:
        turns, start = slice_of(tx, session.session_key, start)
        if turns:
            length = sum(len(turn.content) for turn in turns)
            yield Carried(line_of(session, turns), (session.session_key, start), length)


def slice_of(tx: Transaction, session_key: int, start: int) -> tuple[Sequence[Turn], int]:
    """Turns for one line, and the number to go on with; -1 at the end."""
    taken: list[Turn] = []
    room = LINE_CHARACTERS_MAX
    while len(taken) < TURNS_MAX:
        found = store.turns_from(tx, session_key, start, min(cargo.AT_ONCE, TURNS_MAX - len(taken)))
        for turn in found:
            room -= len(turn.content)
            if room < 0 and taken:
                return taken, turn.seq
            taken.append(turn)
        if len(found) < cargo.AT_ONCE and len(taken) < TURNS_MAX:
            return taken, -1
        start = taken[-1].seq + 1
    return taken, start


def line_of(session: Session, turns: Sequence[Turn]) -> ConversationLine:
    """A conversation and some of its turns as a line."""
    said = [cargo.fields_of(TurnPart, turn) | {"content": json.loads(turn.content)} for turn in turns]
    return ConversationLine.model_validate(
        cargo.fields_of(ConversationLine, session) | {"kind": "conversation", "turns": said}
    )


def ready(line: ConversationLine) -> Made:
    """The line with its turns as rows.

    Raises:
        TooLong: a turn's content is over its cap.
        Rejected: a hash is not its turn's, or two turns share a number or an id.
    """
    turns = [turn_of(line.session_key, part, place) for place, part in enumerate(line.turns)]
    for names in ({one.item_id for one in turns}, {one.seq for one in turns}, {one.message_id for one in turns}):
        if len(names) < len(turns):
            raise Rejected("turns: two share an id, a number or a message_id", field="turns")
    return Made(line, turns)


def turn_of(session_key: int, part: TurnPart, place: int) -> Turn:
    """A turn's row, with what it says read out of its content."""
    message = Message(part.message_id, part.role, part.speaker, part.said_at, cast("Json", part.content))
    draft = rules.drafted(message, f"turns.{place}.content")
    if draft.sha256 != part.content_sha256:
        raise Rejected(f"turns.{place}.content_sha256: is not the hash of the turn", field="turns")
    return Turn(
        item_id=part.item_id,
        session_key=session_key,
        seq=part.seq,
        spoken=bool(draft.spoken.said),
        place=part.place,
        message_id=part.message_id,
        role=part.role,
        speaker=part.speaker,
        agent=part.agent,
        run_id=part.run_id,
        said_at=part.said_at,
        said=draft.spoken.said,
        aside=draft.spoken.aside,
        content=draft.content.text,
        content_sha256=draft.sha256,
        created_at=part.created_at,
    )


def take(ctx: Context, made: Made) -> bool:
    """Add the turns that are missing, and the conversation if it is; what is here stays as it is."""
    line = made.line
    cargo.check_reached(ctx, line.namespace)
    stamps = (line.session_key, *(turn.item_id for turn in made.turns))
    cargo.check_not_ahead(ctx, *stamps, field="turns")
    store.lock(ctx.tx, line.namespace, line.user_id, line.session_id)
    there = same_session(ctx.tx, line)
    new = missing(ctx.tx, made)
    session = merged(there, line, new)
    if session == there:
        return False
    if session.turn_count > rules.TURNS_MAX:
        raise Rejected(f"turns: a conversation has at most {rules.TURNS_MAX} turns", field="turns")
    ctx.tx.outstrip(max(stamps))
    store.put_session(ctx.tx, session)
    if new:
        store.put_turns(ctx.tx, new)
        indexing.index(ctx.tx, session, new, NO_VECTORS)
        namespaces.touch(ctx.tx, line.namespace, max(turn.item_id for turn in new))
    return True


def same_session(tx: Transaction, line: ConversationLine) -> Session | None:
    """The conversation that the line is about, None when it is not here yet.

    Raises:
        Rejected: its name is another conversation's, or its key stands for another name.
    """
    there = store.exact(tx, line.namespace, line.user_id, line.session_id)
    if there is not None and there.session_key != line.session_key:
        raise Rejected("session_id: another conversation has this name here", field="session_id")
    if there is None and store.sessions(tx, [line.session_key]):
        raise Rejected("session_key: another conversation has this key here", field="session_key")
    if there is None and store.turns_from(tx, line.session_key, 0, 1):
        raise Rejected("session_key: it was deleted here and is still on its way out; try later", field="session_key")
    return there


def missing(tx: Transaction, made: Made) -> Sequence[Turn]:
    """The turns that are not here yet.

    Raises:
        Rejected: another turn has the id of one, or its number or message_id in the conversation.
    """
    rows = tx.rows(
        TAKEN,
        session_key=made.line.session_key,
        ids=[turn.item_id for turn in made.turns],
        numbers=[turn.seq for turn in made.turns],
        messages=[turn.message_id for turn in made.turns],
    )
    held = {one.item_id: one for one in map(store.turn_of, rows)}
    names = {name for one in held.values() if one.session_key == made.line.session_key for name in _names(one)}
    new: list[Turn] = []
    for turn in made.turns:
        same = held.get(turn.item_id)
        if same is None and not names.intersection(_names(turn)):
            new.append(turn)
        elif same is None or (same.session_key, same.seq, same.content_sha256) != (
            turn.session_key,
            turn.seq,
            turn.content_sha256,
        ):
            raise Rejected("turns: another turn stands in the place of one, or has its id", field="turns")
    return new


def _names(turn: Turn) -> tuple[int, str]:
    return turn.seq, turn.message_id


def merged(there: Session | None, line: ConversationLine, new: Sequence[Turn]) -> Session:
    """The conversation with these turns more. What is here of it stays, where the line's does not go further."""
    session = there or Session(
        session_key=line.session_key,
        namespace=line.namespace,
        user_id=line.user_id,
        session_id=line.session_id,
        agent=line.agent,
        title=line.title,
        titled=line.titled,
        turn_count=0,
        next_seq=0,
        next_place=0,
        first_at=new[0].said_at if new else line.created_at,
        last_at=new[0].said_at if new else line.created_at,
        created_at=line.created_at,
    )
    further = line.next_seq > session.next_seq
    return replace(
        session,
        title=line.title if further else session.title,
        titled=line.titled if further else session.titled,
        turn_count=session.turn_count + len(new),
        next_seq=max(session.next_seq, line.next_seq, *(turn.seq + 1 for turn in new)),
        next_place=max(session.next_place, line.next_place, *(turn.place + 1 for turn in new)),
        first_at=min(session.first_at, *(turn.said_at for turn in new)) if new else session.first_at,
        last_at=max(session.last_at, *(turn.said_at for turn in new)) if new else session.last_at,
    )


CARGO = Cargo(ConversationLine, (0, -1), COUNT, read, ready, take)
