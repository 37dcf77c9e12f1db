# Generated from the registry by `make docs`. Do not edit.
"""Fields of the operations of `token`."""

from datetime import datetime
from typing import Literal, NotRequired, Required

from loom.edges.client.core import Identity
from loom.system.tokens import Pins


class TokenListFields(Identity):
    """What `token.list` takes."""


class TokenMintFields(Identity):
    """What `token.mint` takes."""

    name: Required[str]
    """What the token is for, for instance a person's or a machine's name."""
    role: NotRequired[Literal["viewer", "writer", "admin"]]
    """viewer reads, writer writes as well, admin manages the rest."""
    pins: NotRequired[Pins]
    """Identity values to fix; calls that name others are refused."""
    namespaces: NotRequired[list[str] | None]
    """The namespaces it reaches; null for all that this caller reaches."""
    read_scope: NotRequired[Literal["namespace", "own_user", "own_session"] | None]
    """How far it reads across users at most; null for as far as this caller does. With own_user..."""
    expires_at: NotRequired[datetime | None]
    """When it ends; null for never, or with this caller's token if that ends."""
    ttl_days: NotRequired[int | None]
    """In how many days it ends, in place of expires_at; null as there."""


class TokenRevokeFields(Identity):
    """What `token.revoke` takes."""

    token_id: Required[str]
    """The token to end, as token.list names it."""
    keep_minted: NotRequired[bool]
    """Whether the tokens that it minted, and those that they minted, stay good. Left out, they end..."""
