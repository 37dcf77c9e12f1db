"""Where conversations are kept: sessions, and their turns in order."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from loom.access import namespaces
from loom.ledger import conditions
from loom.ledger.rules import Reader
from loom.planes.conversation.rules import Draft
from loom.storage.interface import Param, Row, Transaction

BEFORE_ALL: Final = (1 << 63) - 1

VISIBLE = "s.org = :org AND s.namespace IN (:namespaces) AND " + conditions.reached("s")

SESSION = """
SELECT s.session_key, s.namespace, s.user_id, s.session_id, s.agent, s.title, s.titled, s.turn_count, s.next_seq,
    s.next_place, s.first_at, s.last_at, s.created_at
FROM conversation_session s
"""

EXACT_SESSION = (
    SESSION + "WHERE s.org = :org AND s.namespace = :namespace AND s.session_id = :name AND s.user_id = :user"
)

MEANT_SESSION = (
    SESSION
    + "WHERE "
    + VISIBLE
    + """ AND s.session_id = :name
ORDER BY CASE WHEN s.user_id = :user THEN 0 WHEN s.user_id = '-' THEN 1 ELSE 2 END, s.last_at DESC, s.session_key
LIMIT 1
"""
)

SESSIONS_BY_KEY = SESSION + "WHERE s.org = :org AND s.session_key IN (:keys)"

SEEN_SESSION = SESSION + "WHERE " + VISIBLE + " AND s.session_key = :key"

NEWEST_SESSIONS = (
    SESSION
    + "WHERE "
    + VISIBLE
    + """
    AND (s.last_at < :before_at OR (s.last_at = :before_at AND s.session_key < :before_key))
    AND s.last_at >= :since AND s.first_at < :until
ORDER BY s.last_at DESC, s.session_key DESC LIMIT :most
"""
)

COUNT_SESSIONS = (
    """
SELECT count(*) AS count FROM conversation_session s WHERE """
    + VISIBLE
    + " AND s.last_at >= :since AND s.first_at < :until"
)

PUT_SESSION = """
INSERT INTO conversation_session (org, session_key, namespace, user_id, session_id, agent, title, titled, turn_count,
    next_seq, next_place, first_at, last_at, created_at)
VALUES (:org, :session_key, :namespace, :user_id, :session_id, :agent, :title, :titled, :turn_count,
    :next_seq, :next_place, :first_at, :last_at, :created_at)
ON CONFLICT (org, session_key) DO UPDATE
SET title = excluded.title, titled = excluded.titled, turn_count = excluded.turn_count, next_seq = excluded.next_seq,
    next_place = excluded.next_place, first_at = excluded.first_at, last_at = excluded.last_at
"""

DELETE_SESSION = "DELETE FROM conversation_session WHERE org = :org AND session_key = :session_key"

SUMS = """
SELECT count(*) AS turn_count, COALESCE(min(said_at), 0) AS first_at, COALESCE(max(said_at), 0) AS last_at
FROM conversation_turn WHERE org = :org AND session_key = :session_key
"""

OPENING = """
SELECT said FROM conversation_turn
WHERE org = :org AND session_key = :session_key AND spoken = 1 AND role = 'user' ORDER BY seq LIMIT 1
"""

TURN = """
SELECT t.item_id, t.session_key, t.seq, t.spoken, t.place, t.message_id, t.role, t.speaker, t.agent, t.run_id,
    t.said_at, t.said, t.aside, t.content, t.content_sha256, t.created_at
FROM conversation_turn t
"""

TURNS_FROM = TURN + "WHERE t.org = :org AND t.session_key = :session_key AND t.seq >= :start ORDER BY t.seq LIMIT :most"

TURNS_BEFORE = (
    TURN + "WHERE t.org = :org AND t.session_key = :session_key AND t.seq < :start ORDER BY t.seq DESC LIMIT :most"
)

SPOKEN_NEAR = (
    TURN
    + """
WHERE t.org = :org AND t.session_key = :session_key AND t.spoken = 1 AND t.place >= :first AND t.place <= :last
ORDER BY t.place LIMIT :most
"""
)

SPOKEN_AFTER = (
    TURN
    + """
WHERE t.org = :org AND t.session_key = :session_key AND t.spoken = 1 AND t.seq > :after ORDER BY t.seq LIMIT :most
"""
)

BY_IDS = TURN + "WHERE t.org = :org AND t.item_id IN (:ids)"

BY_MESSAGE = TURN + "WHERE t.org = :org AND t.session_key = :session_key AND t.message_id IN (:messages)"

HELD = """
SELECT message_id, content_sha256 FROM conversation_turn
WHERE org = :org AND session_key = :session_key AND message_id IN (:messages)
"""

PUT_TURN = """
INSERT INTO conversation_turn (org, item_id, session_key, seq, spoken, place, message_id, role, speaker, agent, run_id,
    said_at, said, aside, content, content_sha256, created_at)
VALUES (:org, :item_id, :session_key, :seq, :spoken, :place, :message_id, :role, :speaker, :agent, :run_id,
    :said_at, :said, :aside, :content, :content_sha256, :created_at)
"""

DELETE_TURNS = "DELETE FROM conversation_turn WHERE org = :org AND item_id IN (:ids)"

PURGE_TURNS = """
DELETE FROM conversation_turn WHERE org = :org AND session_key IN
    (SELECT session_key FROM conversation_session WHERE org = :org AND namespace = :namespace)
"""

PURGE_SESSIONS = "DELETE FROM conversation_session WHERE org = :org AND namespace = :namespace"


@dataclass(frozen=True, slots=True)
class Session:
    """A conversation of one user. Times are microseconds UTC.

    Attributes:
        session_key: its number.
        namespace: where it is.
        user_id: whose it is, `-` for none.
        session_id: its name.
        agent: who began it.
        title: what it is called.
        titled: whether somebody said so; else the title is the beginning of what the user said first.
        turn_count: how many turns it has.
        next_seq: the number of the next turn; numbers are not used again.
        next_place: the place of the next turn in which something is said.
        first_at: the earliest time of a turn.
        last_at: the latest.
        created_at: when it was begun here.
    """

    session_key: int
    namespace: str
    user_id: str
    session_id: str
    agent: str
    title: str
    titled: bool
    turn_count: int
    next_seq: int
    next_place: int
    first_at: int
    last_at: int
    created_at: int


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a conversation; see `Draft` and the table."""

    item_id: int
    session_key: int
    seq: int
    spoken: bool
    place: int
    message_id: str
    role: str
    speaker: str
    agent: str
    run_id: str
    said_at: int
    said: str
    aside: str
    content: str
    content_sha256: str
    created_at: int


def lock(tx: Transaction, namespace: str, user_id: str, session_id: str) -> None:
    """Hold the conversation against every other writer until the transaction ends."""
    namespaces.enter(tx, namespace)
    tx.lock("conversation", namespace, user_id, session_id)


def visible_params(namespaces: Sequence[str], reader: Reader) -> Mapping[str, Param]:
    """The parameters of `VISIBLE`."""
    return {"namespaces": list(namespaces), **conditions.reach_params(reader)}


def exact(tx: Transaction, namespace: str, user_id: str, session_id: str) -> Session | None:
    """The conversation of exactly this user."""
    row = tx.row(EXACT_SESSION, namespace=namespace, name=session_id, user=user_id)
    return None if row is None else session_of(row)


def meant(tx: Transaction, namespace: str, session_id: str, reader: Reader) -> Session | None:
    """The conversation that a reader means by a name: the user's own, then one of no user, then another's in reach."""
    params = visible_params([namespace], reader)
    row = tx.row(MEANT_SESSION, name=session_id, user=reader.user_id, **params)
    return None if row is None else session_of(row)


def seen(tx: Transaction, namespaces: Sequence[str], reader: Reader, session_key: int) -> Session | None:
    """The conversation of this number, if the reader may see it."""
    row = tx.row(SEEN_SESSION, key=session_key, **visible_params(namespaces, reader))
    return None if row is None else session_of(row)


def sessions(tx: Transaction, keys: Collection[int]) -> Mapping[int, Session]:
    """Conversations by their numbers."""
    rows = tx.rows(SESSIONS_BY_KEY, keys=list(keys)) if keys else ()
    return {one.session_key: one for one in map(session_of, rows)}


def turns_from(tx: Transaction, session_key: int, start: int, most: int) -> list[Turn]:
    """Turns from the number `start` on, in order."""
    return [turn_of(row) for row in tx.rows(TURNS_FROM, session_key=session_key, start=start, most=most)]


def turns_before(tx: Transaction, session_key: int, start: int, most: int) -> list[Turn]:
    """The last turns before the number `start`, in order."""
    rows = tx.rows(TURNS_BEFORE, session_key=session_key, start=start, most=most)
    return [turn_of(row) for row in rows][::-1]


def spoken_near(tx: Transaction, turn: Turn, reach: int) -> list[Turn]:
    """The turns in which something is said, up to `reach` before and after a turn, in order, without itself."""
    first = turn.place - reach + (0 if turn.spoken else 1)
    rows = tx.rows(SPOKEN_NEAR, session_key=turn.session_key, first=first, last=turn.place + reach, most=2 * reach + 1)
    return [one for one in map(turn_of, rows) if one.item_id != turn.item_id]


def spoken_after(tx: Transaction, session_key: int, after: int, most: int) -> list[Turn]:
    """Turns in which something is said, with numbers above `after`, in order."""
    return [turn_of(row) for row in tx.rows(SPOKEN_AFTER, session_key=session_key, after=after, most=most)]


def by_ids(tx: Transaction, ids: Collection[int]) -> Mapping[int, Turn]:
    """Turns by their ids, whoever may see them."""
    rows = tx.rows(BY_IDS, ids=list(ids)) if ids else ()
    return {one.item_id: one for one in map(turn_of, rows)}


def by_message(tx: Transaction, session_key: int, messages: Collection[str]) -> list[Turn]:
    """The turns of a conversation with these message ids."""
    rows = tx.rows(BY_MESSAGE, session_key=session_key, messages=list(messages)) if messages else ()
    return [turn_of(row) for row in rows]


def held(tx: Transaction, session_key: int, messages: Collection[str]) -> Mapping[str, str]:
    """Of these message ids, those that the conversation has, each with the hash of its content."""
    rows = tx.rows(HELD, session_key=session_key, messages=list(messages)) if messages else ()
    return {cast("str", row["message_id"]): cast("str", row["content_sha256"]) for row in rows}


def put_session(tx: Transaction, session: Session) -> None:
    """Store a conversation, new or changed."""
    tx.run(
        PUT_SESSION,
        session_key=session.session_key,
        namespace=session.namespace,
        user_id=session.user_id,
        session_id=session.session_id,
        agent=session.agent,
        title=session.title,
        titled=int(session.titled),
        turn_count=session.turn_count,
        next_seq=session.next_seq,
        next_place=session.next_place,
        first_at=session.first_at,
        last_at=session.last_at,
        created_at=session.created_at,
    )


def turn_row(session: Session, item_id: int, made: Draft, agent: str, run_id: str) -> Turn:
    """The draft as the next turn of the conversation."""
    spoken = bool(made.spoken.said)
    return Turn(
        item_id=item_id,
        session_key=session.session_key,
        seq=session.next_seq,
        spoken=spoken,
        place=session.next_place if spoken else session.next_place - 1,
        message_id=made.message_id,
        role=made.role,
        speaker=made.speaker,
        agent=agent,
        run_id=run_id,
        said_at=made.said_at,
        said=made.spoken.said,
        aside=made.spoken.aside,
        content=made.content.text,
        content_sha256=made.sha256,
        created_at=item_id // 1000,
    )


def put_turns(tx: Transaction, turns: Sequence[Turn]) -> None:
    """Store new turns."""
    tx.run_many(
        PUT_TURN,
        [
            {
                "item_id": one.item_id,
                "session_key": one.session_key,
                "seq": one.seq,
                "spoken": int(one.spoken),
                "place": one.place,
                "message_id": one.message_id,
                "role": one.role,
                "speaker": one.speaker,
                "agent": one.agent,
                "run_id": one.run_id,
                "said_at": one.said_at,
                "said": one.said,
                "aside": one.aside,
                "content": one.content,
                "content_sha256": one.content_sha256,
                "created_at": one.created_at,
            }
            for one in turns
        ],
    )


def session_of(row: Row) -> Session:
    """A conversation from a row of `SESSION`."""
    return Session(
        session_key=cast("int", row["session_key"]),
        namespace=cast("str", row["namespace"]),
        user_id=cast("str", row["user_id"]),
        session_id=cast("str", row["session_id"]),
        agent=cast("str", row["agent"]),
        title=cast("str", row["title"]),
        titled=bool(row["titled"]),
        turn_count=cast("int", row["turn_count"]),
        next_seq=cast("int", row["next_seq"]),
        next_place=cast("int", row["next_place"]),
        first_at=cast("int", row["first_at"]),
        last_at=cast("int", row["last_at"]),
        created_at=cast("int", row["created_at"]),
    )


def turn_of(row: Row) -> Turn:
    """A turn from a row of `TURN`."""
    return Turn(
        item_id=cast("int", row["item_id"]),
        session_key=cast("int", row["session_key"]),
        seq=cast("int", row["seq"]),
        spoken=bool(row["spoken"]),
        place=cast("int", row["place"]),
        message_id=cast("str", row["message_id"]),
        role=cast("str", row["role"]),
        speaker=cast("str", row["speaker"]),
        agent=cast("str", row["agent"]),
        run_id=cast("str", row["run_id"]),
        said_at=cast("int", row["said_at"]),
        said=cast("str", row["said"]),
        aside=cast("str", row["aside"]),
        content=cast("str", row["content"]),
        content_sha256=cast("str", row["content_sha256"]),
        created_at=cast("int", row["created_at"]),
    )
