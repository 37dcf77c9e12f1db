"""Tokens: who a secret stands for.

A token reads `loom_<id>_<secret>`. The id is public and names the row; of the
secret only the SHA-256 is kept, which suffices because the secret is 256 random
bits. Every call reads the row anew, so that a token that was minted or revoked, here
or in another process, counts at once.
"""

import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from loom.access.caller import LOCAL, LOCAL_PRINCIPAL, Caller, ReadScope, Role
from loom.errors import Unauthenticated, Unavailable
from loom.storage.interface import SYSTEM_ORG, Database, Row, StoreError, Transaction

SECRET_BYTES = 32
ID_BYTES = 6
TOKEN = re.compile(r"loom_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
SCHEME = "bearer "
LISTED_MAX = 10_000
USED_EVERY_US = 60 * 1_000_000
"""How exact the time of the last use is."""

NOTED_MAX = 10_000

GENERATIONS_MAX = 64
"""Through how many tokens one may come from a person: a revocation may have to read all tokens once for each."""

COLUMNS = """
SELECT token_id, secret_sha256, name, role, pins, namespaces, read_scope, created_at, expires_at, revoked_at,
    last_used_at, minted_by, generation
FROM access_token
"""
FIND = COLUMNS + "WHERE org = :org AND token_id = :token_id"
LIST = COLUMNS + "WHERE org = :org ORDER BY created_at DESC, token_id LIMIT :most"
ANY = "SELECT 1 AS one FROM access_token WHERE org = :org LIMIT 1"
ADD = """
INSERT INTO access_token (org, token_id, secret_sha256, name, role, pins, namespaces, read_scope, created_at,
    expires_at, minted_by, generation)
VALUES (:org, :token_id, :secret_sha256, :name, :role, :pins, :namespaces, :read_scope, :created_at, :expires_at,
    :minted_by, :generation)
"""
# CROSS JOIN, so that SQLite looks up what each token minted, and does not read all tokens for each.
MINTED = """
WITH RECURSIVE minted (token_id, expires_at, revoked_at) AS (
    SELECT token_id, expires_at, revoked_at FROM access_token WHERE org = :org AND minted_by = :token_id
    UNION
    SELECT access_token.token_id, access_token.expires_at, access_token.revoked_at FROM minted CROSS JOIN access_token
    WHERE access_token.org = :org AND access_token.minted_by = minted.token_id
)
SELECT token_id, expires_at FROM minted WHERE revoked_at IS NULL
"""
REVOKE = (
    "UPDATE access_token SET revoked_at = :now WHERE org = :org AND token_id IN (:token_ids) AND revoked_at IS NULL"
)
USED = """
UPDATE access_token SET last_used_at = :at
WHERE org = :org AND token_id = :token_id AND (last_used_at IS NULL OR last_used_at < :at)
"""


@dataclass(frozen=True, slots=True)
class Token:
    """A token's row, its secret's hash included. Times are microseconds UTC.

    Attributes:
        caller: whom it stands for; its principal is the token's id.
        name: what it is for, in a person's words.
        secret_sha256: lower-case hex.
        created_at: when it was minted.
        expires_at: from when it is no good any more; None for never.
        revoked_at: when it was revoked; None while it is good.
        last_used_at: when it was used last, to the minute; None for never.
        minted_by: the principal that minted it; None where that was not noted yet.
        generation: through how many tokens it comes from a person.
    """

    caller: Caller
    name: str
    secret_sha256: str
    created_at: int
    expires_at: int | None
    revoked_at: int | None
    last_used_at: int | None
    minted_by: str | None
    generation: int


def enter(tx: Transaction) -> None:
    """Let no token be revoked until the transaction ends; before what is read of tokens.

    Who mints with a token so either sees that it was revoked, or is seen by what revokes it.
    """
    tx.share("access_token")


def close(tx: Transaction) -> None:
    """Let no token be minted or revoked until the transaction ends; before what is read of tokens."""
    tx.lock("access_token")


def mint(
    tx: Transaction, caller: Caller, name: str, now_us: int, expires_at: int | None, minter: Token | None
) -> tuple[str, Token]:
    """A new token for `caller`, whose principal is replaced by the token's id: its text, shown once, and its row.

    `tx` is a write transaction on the system's org that has entered. `minter` is the token that mints; None for the
    local user.
    """
    token_id, secret = secrets.token_hex(ID_BYTES), secrets.token_urlsafe(SECRET_BYTES)
    tx.run(
        ADD,
        token_id=token_id,
        secret_sha256=_sha256(secret),
        name=name,
        role=caller.role.word,
        pins=json.dumps(dict(caller.pins)),
        namespaces=None if caller.namespaces is None else json.dumps(sorted(caller.namespaces)),
        read_scope=caller.read_scope.word,
        created_at=now_us,
        expires_at=expires_at,
        minted_by=LOCAL_PRINCIPAL if minter is None else minter.caller.principal,
        generation=0 if minter is None else minter.generation + 1,
    )
    made = find(tx, token_id)
    if made is None:
        raise AssertionError("the row that was just written is there")
    return f"loom_{token_id}_{secret}", made


def find(tx: Transaction, token_id: str) -> Token | None:
    """The token with this id, revoked and expired ones included."""
    row = tx.row(FIND, token_id=token_id)
    return None if row is None else _token(row)


def listed(tx: Transaction) -> Sequence[Token]:
    """The 10,000 newest tokens, revoked and expired ones included."""
    return [_token(row) for row in tx.rows(LIST, most=LISTED_MAX)]


def revoke(tx: Transaction, token_ids: Sequence[str], now_us: int) -> None:
    """End tokens; nothing happens to one that has ended before. Rows stay, and count as tokens that were minted.

    `tx` has closed.
    """
    tx.run(REVOKE, token_ids=list(token_ids), now=now_us)


@dataclass(frozen=True, slots=True)
class Minted:
    """Tokens that come from one, through any number of others, and were not revoked.

    Attributes:
        good: ids of those that are good.
        over: ids of those that have expired.
    """

    good: Sequence[str]
    over: Sequence[str]


def minted(tx: Transaction, token_id: str, now_us: int) -> Minted:
    """The tokens that a token minted, itself or through others, whether those in between have ended or not.

    All of them: as many as there are, in at most GENERATIONS_MAX steps.
    """
    good, over = list[str](), list[str]()
    for row in tx.rows(MINTED, token_id=token_id):
        expires_at = cast("int | None", row["expires_at"])
        kind = good if expires_at is None or expires_at > now_us else over
        kind.append(cast("str", row["token_id"]))
    return Minted(good, over)


def used(tx: Transaction, token_id: str, at_us: int) -> None:
    """Note when a token was used."""
    tx.run(USED, token_id=token_id, at=at_us)


def check(token: Token | None, now_us: int) -> None:
    """Go on only if there is a token, and it is good.

    Raises:
        Unauthenticated: there is none, or it was revoked or is over.
    """
    if token is None:
        raise Unauthenticated("Authorization: the token is unknown; ask an admin for another")
    if token.revoked_at is not None:
        raise Unauthenticated("Authorization: the token was revoked; ask an admin for another")
    if token.expires_at is not None and token.expires_at <= now_us:
        raise Unauthenticated("Authorization: the token has expired; ask an admin for another")


class Authenticator:
    """From the Authorization header to the caller. Safe for threads.

    Args:
        database: where tokens are kept.
        clock_us: now, in microseconds UTC.
        loopback: whether only this machine can reach the server; without that, every call needs a token.
        note_use: told a token's id and a moment, at most once a minute for each; must not block.
    """

    def __init__(
        self, database: Database, clock_us: Callable[[], int], *, loopback: bool, note_use: Callable[[str, int], None]
    ) -> None:
        self._database = database
        self._clock_us = clock_us
        self._loopback = loopback
        self._note_use = note_use
        self._noted: dict[str, int] = {}

    def authenticate(self, authorization: str | None) -> Caller:
        """Who calls. Without a token: the local user, while no token was ever minted and the server is on loopback.

        Raises:
            Unauthenticated: no token where one is needed, or one that is not good.
            Unavailable: the store cannot say.
        """
        try:
            if authorization is None:
                return self._local()
            return self._named(authorization)
        except StoreError as error:
            raise Unavailable(str(error), retry_after_s=1) from error

    def _local(self) -> Caller:
        if self._loopback and self._database.look(SYSTEM_ORG, ANY) is None:
            return LOCAL
        raise Unauthenticated("send a token as Authorization: Bearer <token>; an admin can mint one")

    def _named(self, authorization: str) -> Caller:
        scheme, text = authorization[: len(SCHEME)], authorization[len(SCHEME) :].strip()
        parts = TOKEN.fullmatch(text) if scheme.lower() == SCHEME else None
        if parts is None:
            raise Unauthenticated("Authorization: send Bearer and a token, like Bearer loom_<id>_<secret>")
        row = self._database.look(SYSTEM_ORG, FIND, token_id=parts[1])
        token = None if row is None else _token(row)
        if token is None or not hmac.compare_digest(token.secret_sha256, _sha256(parts[2])):
            raise Unauthenticated("Authorization: the token is unknown; ask an admin for another")
        return self._good(token)

    def named_by(self, text: str) -> Caller | None:
        """Whom the token stood or stands for that a text names, good or not; None when it names none."""
        parts = TOKEN.fullmatch(text)
        if parts is None:
            return None
        try:
            row = self._database.look(SYSTEM_ORG, FIND, token_id=parts[1])
        except StoreError:
            return None
        return None if row is None else _token(row).caller

    def standing(self, token_id: str) -> Caller:
        """Whom a token stands for that was shown before, by its id.

        Raises:
            Unauthenticated: it is no good any more.
            Unavailable: the store cannot say.
        """
        try:
            with self._database.transaction(SYSTEM_ORG, write=False) as tx:
                token = find(tx, token_id)
        except StoreError as error:
            raise Unavailable(str(error), retry_after_s=1) from error
        if token is None:
            raise Unauthenticated("Authorization: the token is unknown; ask an admin for another")
        return self._good(token)

    def _good(self, token: Token) -> Caller:
        """The token's caller, while it is neither revoked nor over; its use is noted."""
        now_us = self._clock_us()
        check(token, now_us)
        self._note(token, now_us)
        return token.caller

    def _note(self, token: Token, now_us: int) -> None:
        token_id = token.caller.principal
        earlier = max(token.last_used_at or 0, self._noted.get(token_id, 0))
        if now_us - earlier < USED_EVERY_US:
            return
        if len(self._noted) >= NOTED_MAX:
            self._noted.clear()
        self._noted[token_id] = now_us
        self._note_use(token_id, now_us)


def covers(minter: Caller, other: Caller) -> bool:
    """Whether `other` reaches nowhere that `minter` does not."""
    pinned = all(other.pins.get(field) == value for field, value in minter.pins.items())
    inside = minter.namespaces is None or (other.namespaces is not None and other.namespaces <= minter.namespaces)
    return pinned and inside and other.role <= minter.role and other.read_scope <= minter.read_scope


def _sha256(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _token(row: Row) -> Token:
    names = cast("str | None", row["namespaces"])
    caller = Caller(
        cast("str", row["token_id"]),
        Role[cast("str", row["role"]).upper()],
        cast("Mapping[str, str]", json.loads(cast("str", row["pins"]))),
        None if names is None else frozenset(cast("list[str]", json.loads(names))),
        ReadScope[cast("str", row["read_scope"]).upper()],
    )
    return Token(
        caller,
        cast("str", row["name"]),
        cast("str", row["secret_sha256"]),
        cast("int", row["created_at"]),
        cast("int | None", row["expires_at"]),
        cast("int | None", row["revoked_at"]),
        cast("int | None", row["last_used_at"]),
        cast("str | None", row["minted_by"]),
        cast("int", row["generation"]),
    )
