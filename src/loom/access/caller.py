"""The caller: a role, the identity values its token fixes, and how far it reads."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType

NO_PINS: Mapping[str, str] = MappingProxyType({})


OWNERS = frozenset({"agent", "user_id", "session_id"})
"""Identity fields that say whose a row is inside its namespace."""


class Role(IntEnum):
    """Ordered, so that `caller.role >= op.role` is the whole permission check."""

    VIEWER = 1
    WRITER = 2
    ADMIN = 3

    @property
    def word(self) -> str:
        """The role as requests and answers spell it."""
        return self.name.lower()


class ReadScope(IntEnum):
    """How far a read reaches across users; ordered from narrow to wide."""

    OWN_SESSION = 1
    OWN_USER = 2
    NAMESPACE = 3

    @property
    def word(self) -> str:
        """The scope as requests and answers spell it."""
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Caller:
    """One authenticated request's author.

    Attributes:
        principal: the token's id, or `local` for the tokenless single user;
            keys idempotency and rate limits. Never a secret.
        role: the highest role the caller may act in.
        pins: identity fields the token fixes (for example `org`). A pinned
            field is filled in when absent, and refused when sent otherwise.
        namespaces: the namespaces the token reaches; None for every one of its org.
        read_scope: the ceiling of the caller's reads.
    """

    principal: str
    role: Role
    pins: Mapping[str, str] = field(default_factory=lambda: NO_PINS)
    namespaces: frozenset[str] | None = None
    read_scope: ReadScope = ReadScope.NAMESPACE

    @property
    def tokenless(self) -> bool:
        """Whether this is the single user of an install without tokens."""
        return self.principal == LOCAL_PRINCIPAL

    @property
    def reaches_everybody(self) -> bool:
        """Whether it reaches every user's, agent's and session's rows of its namespaces."""
        return self.read_scope is ReadScope.NAMESPACE and self.pins.keys().isdisjoint(OWNERS)

    def reaches(self, namespace: str) -> bool:
        """Whether the caller may name this namespace."""
        return self.namespaces is None or namespace in self.namespaces


LOCAL_PRINCIPAL = "local"
LOCAL = Caller(LOCAL_PRINCIPAL, Role.ADMIN)


@dataclass(frozen=True, slots=True)
class Transport:
    """What a transport knows besides the request itself.

    Attributes:
        agent: the client's name (`claude-code`), or None.
        session_id: the conversation the client is in, or None.
        project: the code namespace of the project the client works in, or None.
        idempotency_key: the key sent with a write, or None.
        request_id: names this call in logs and answers.
        unnoticed: whether a read of the profile is no news. The dashboard's are; no caller can send this.
    """

    agent: str | None = None
    session_id: str | None = None
    project: str | None = None
    idempotency_key: str | None = None
    request_id: str = "-"
    unnoticed: bool = False


@dataclass(frozen=True, slots=True)
class Install:
    """The identity a tokenless call on a single-user server falls back to.

    `plane_orgs` names the planes (`code`, `tracker`) that keep an org of
    their own, so that a repository indexed once serves every org.
    """

    org: str = "dev"
    namespace: str = "local"
    agent: str = "-"
    plane_orgs: Mapping[str, str] = field(
        default_factory=lambda: MappingProxyType({"code": "code", "tracker": "tracker"})
    )
