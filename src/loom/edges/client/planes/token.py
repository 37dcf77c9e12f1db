# Generated from the registry by `make docs`. Do not edit.
"""The operations of `token` as methods."""

from typing import Unpack

from loom.edges.client.planes.token_fields import TokenListFields, TokenMintFields, TokenRevokeFields
from loom.edges.client.running import AsyncRun, Run
from loom.system.tokens import ListAnswer, MintAnswer, RevokeAnswer


class Token:
    """The operations of `token`, waiting for each answer."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def list(self, **fields: Unpack[TokenListFields]) -> ListAnswer:
        """See every token that reaches no further than yours, without its secret."""
        return self._run("token.list", ListAnswer, fields)

    def mint(self, **fields: Unpack[TokenMintFields]) -> MintAnswer:
        """Make a token for a person or a machine.

        The first one ends calls without a token.
        """
        return self._run("token.mint", MintAnswer, fields)

    def revoke(self, **fields: Unpack[TokenRevokeFields]) -> RevokeAnswer:
        """End a token and every token that it minted, itself or through others, at once and in every process."""
        return self._run("token.revoke", RevokeAnswer, fields)


class AsyncToken:
    """The operations of `token`, awaited."""

    def __init__(self, run: AsyncRun) -> None:
        self._run = run

    async def list(self, **fields: Unpack[TokenListFields]) -> ListAnswer:
        """See every token that reaches no further than yours, without its secret."""
        return await self._run("token.list", ListAnswer, fields)

    async def mint(self, **fields: Unpack[TokenMintFields]) -> MintAnswer:
        """Make a token for a person or a machine.

        The first one ends calls without a token.
        """
        return await self._run("token.mint", MintAnswer, fields)

    async def revoke(self, **fields: Unpack[TokenRevokeFields]) -> RevokeAnswer:
        """End a token and every token that it minted, itself or through others, at once and in every process."""
        return await self._run("token.revoke", RevokeAnswer, fields)
