"""Signing in to the dashboard: one-time codes, and the sessions that cookies name.

Of both only a hash is kept, and both speak for a principal, never for rights of
their own: whose session it is, is asked of the token again with every request.
Several servers on one store know the same sessions.
"""

import hashlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar, cast

from loom.access.caller import LOCAL, LOCAL_PRINCIPAL, Caller
from loom.access.tokens import Authenticator
from loom.errors import Unauthenticated, Unavailable
from loom.storage.interface import SYSTEM_ORG, Database, Raced, StoreError, Transaction

Made = TypeVar("Made")

SECRET_BYTES = 32
BY_TOKEN, BY_LINK, BY_MINTING = "token", "link", "minting"
CODE_TTL_S = 300
SESSION_TTL_S = 12 * 3600
SECOND_US = 1_000_000

ADD_CODE = """
INSERT INTO sign_in_code (org, code_sha256, principal, expires_at) VALUES (:org, :code_sha256, :principal, :expires_at)
"""
CODE = "SELECT principal FROM sign_in_code WHERE org = :org AND code_sha256 = :code_sha256 AND expires_at > :now"
SPEND = "DELETE FROM sign_in_code WHERE org = :org AND code_sha256 = :code_sha256"
FORGET_CODES = "DELETE FROM sign_in_code WHERE org = :org AND expires_at <= :now"

ADD_SESSION = """
INSERT INTO sign_in_session (org, cookie_sha256, principal, created_at, expires_at)
VALUES (:org, :cookie_sha256, :principal, :created_at, :expires_at)
"""
SESSION = """
SELECT principal, expires_at FROM sign_in_session
WHERE org = :org AND cookie_sha256 = :cookie_sha256 AND expires_at > :now
"""
END = "DELETE FROM sign_in_session WHERE org = :org AND cookie_sha256 = :cookie_sha256"
FORGET_SESSIONS = "DELETE FROM sign_in_session WHERE org = :org AND expires_at <= :now"


@dataclass(frozen=True, slots=True)
class Session:
    """Who is signed in.

    Attributes:
        caller: whom the session's principal stands for now.
        expires_at: when the session ends by itself, microseconds UTC; None where no sign-in was needed.
    """

    caller: Caller
    expires_at: int | None


def new_code(tx: Transaction, principal: str, now_us: int) -> tuple[str, int]:
    """A code that signs `principal` in, once, and when it ends. `tx` writes to the system's org."""
    code, expires_at = secrets.token_urlsafe(SECRET_BYTES), now_us + CODE_TTL_S * SECOND_US
    tx.run(FORGET_CODES, now=now_us)
    tx.run(ADD_CODE, code_sha256=hashed(code), principal=principal, expires_at=expires_at)
    return code, expires_at


def hashed(secret: str) -> str:
    """What is kept of a code or a cookie."""
    return hashlib.sha256(secret.encode()).hexdigest()


class Witness(Protocol):
    """Is told who signs in, and that somebody could not. `by` is a word for the way: token, link or minting."""

    def opened(self, tx: Transaction, caller: Caller, by: str) -> None:
        """A session begins, in this transaction on the system's rows."""
        ...

    def refused(self, by: str, token: Caller | None) -> None:
        """Nobody was signed in. `token` is whom the token stands for that was named, if any. Must not block."""
        ...


class Sessions:
    """Sessions of people, over the store. Safe for threads.

    Args:
        database: where they are kept.
        authenticator: knows tokens, and whether one is needed.
        clock_us: now, in microseconds UTC.
        witness: told of every sign-in.
    """

    def __init__(
        self, database: Database, authenticator: Authenticator, clock_us: Callable[[], int], witness: Witness
    ) -> None:
        self._database = database
        self._authenticator = authenticator
        self._clock_us = clock_us
        self._witness = witness

    def of(self, cookie: str) -> Session:
        """Whose session the cookie names; the local user's where no sign-in is needed.

        Raises:
            Unauthenticated: there is no such session, it is over, or its token is no good any more.
            Unavailable: the store cannot say.
        """
        if cookie:
            kept = self._kept(cookie)
            if kept is not None:
                principal, expires_at = kept
                return Session(self._caller(principal), expires_at)
        return Session(self._authenticator.authenticate(None), None)

    def open(self, caller: Caller, by: str) -> str:
        """Begin a session for a caller; its cookie."""
        return self._written(lambda tx: self._add(tx, caller, by))

    def with_token(self, token: str) -> str:
        """Begin a session for whom a token stands for; its cookie.

        Raises:
            Unauthenticated: the token is not good.
        """
        try:
            caller = self._authenticator.authenticate(f"Bearer {token}")
        except Unauthenticated:
            self._witness.refused(BY_TOKEN, self._authenticator.named_by(token))
            raise
        return self.open(caller, BY_TOKEN)

    def with_code(self, code: str) -> str:
        """Spend a one-time code; the cookie of the session that begins.

        Raises:
            Unauthenticated: it was used before, is over, or its token is no good any more.
        """
        principal = self._written(lambda tx: self._spent(tx, hashed(code)))
        if principal is None:
            self._witness.refused(BY_LINK, None)
            raise Unauthenticated("this link was used before, or is over; `loom dashboard` makes another")
        return self.open(self._caller(principal), BY_LINK)

    def close(self, cookie: str) -> None:
        """End a session; nothing happens when there is none."""
        self._written(lambda tx: tx.run(END, cookie_sha256=hashed(cookie)))

    def _caller(self, principal: str) -> Caller:
        return LOCAL if principal == LOCAL_PRINCIPAL else self._authenticator.standing(principal)

    def _kept(self, cookie: str) -> tuple[str, int] | None:
        try:
            with self._database.transaction(SYSTEM_ORG, write=False) as tx:
                row = tx.row(SESSION, cookie_sha256=hashed(cookie), now=self._clock_us())
        except StoreError as error:
            raise Unavailable(str(error), retry_after_s=1) from error
        return None if row is None else (cast("str", row["principal"]), cast("int", row["expires_at"]))

    def _add(self, tx: Transaction, caller: Caller, by: str) -> str:
        cookie, now_us = secrets.token_urlsafe(SECRET_BYTES), self._clock_us()
        tx.run(FORGET_SESSIONS, now=now_us)
        expires_at = now_us + SESSION_TTL_S * SECOND_US
        known = {"cookie_sha256": hashed(cookie), "principal": caller.principal}
        tx.run(ADD_SESSION, **known, created_at=now_us, expires_at=expires_at)
        self._witness.opened(tx, caller, by)
        return cookie

    def _spent(self, tx: Transaction, code_sha256: str) -> str | None:
        row = tx.row(CODE, code_sha256=code_sha256, now=self._clock_us())
        if row is None or tx.run(SPEND, code_sha256=code_sha256) != 1:
            return None
        return cast("str", row["principal"])

    def _written(self, work: Callable[[Transaction], Made]) -> Made:
        try:
            with self._database.transaction(SYSTEM_ORG, write=True) as tx:
                return work(tx)
        except Raced:
            raise Unavailable("another sign-in came first; try again", retry_after_s=1) from None
        except StoreError as error:
            raise Unavailable(str(error), retry_after_s=1) from error
