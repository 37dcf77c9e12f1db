"""Who calls over MCP: the agent from the client's name, the conversation from what clients send along."""

import base64
import binascii
import secrets
from collections.abc import Mapping
from typing import Any, cast

from loom.access.caller import Transport

KNOWN_AGENTS = ("claude-code", "codex", "cursor")
AGENT_LENGTH_MAX = 64
SESSION_META = ("loom/session_id", "sessionId", "threadId")
TURN_META = "x-codex-turn-metadata"
KEY_META = "loom/idempotency_key"


def agent_of(client_name: str | None) -> str | None:
    """The agent behind a client's name: a known one, else the name in lower case with hyphens.

    `codex-mcp-client` is `codex`, `cursor-vscode` is `cursor`, `My Client` is `my-client`.
    """
    if not client_name:
        return None
    plain = "".join(c if c.isalnum() or c in "._" else "-" for c in client_name[: AGENT_LENGTH_MAX * 4].lower())
    slug = "-".join(part for part in plain.split("-") if part)[:AGENT_LENGTH_MAX]
    for known in KNOWN_AGENTS:
        if slug == known or slug.startswith(known + "-"):
            return known
    return slug or None


def agent_of_browserless(user_agent: str | None) -> str | None:
    """A known agent named by a User-Agent header, or None; libraries' own names say nothing."""
    name = agent_of((user_agent or "").partition("/")[0])
    return name if name in KNOWN_AGENTS else None


def minted_session(agent: str | None) -> str:
    """A protocol session id that carries the agent's name, so that no server has to remember it.

    It is a name, not a capability: whoever makes one up gains what
    `X-Loom-Agent` would have given.
    """
    named = base64.urlsafe_b64encode((agent or "").encode()).rstrip(b"=").decode()
    return f"{named}.{secrets.token_hex(16)}"


def agent_in_session(session: str | None) -> str | None:
    """The agent's name in an id that `minted_session` made, or None."""
    named, dot, _ = (session or "").partition(".")
    if not dot or not named or len(named) > AGENT_LENGTH_MAX * 8:
        return None
    try:
        name = base64.b64decode(named + "=" * (-len(named) % 4), b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        return None
    return name if agent_of(name) == name else None


def kept_session(session: str | None) -> str | None:
    """The protocol's own session id, where it stands for a conversation.

    Only the known agents are trusted to keep one: many libraries open one for each call.
    """
    return session if agent_in_session(session) in KNOWN_AGENTS else None


def session_of(meta: Mapping[str, Any]) -> str | None:
    """The conversation that a call's `_meta` names, by Loom's key or those of known clients."""
    turn = meta.get(TURN_META)
    found = [meta.get(key) for key in SESSION_META]
    if isinstance(turn, dict):
        found.append(cast("dict[str, Any]", turn).get("session_id"))
    return next((value for value in found if isinstance(value, str) and value), None)


def transport_of(
    headers: Mapping[str, str | None], meta: Mapping[str, Any], client_name: str | None, request_id: str
) -> Transport:
    """What this call's surroundings say about its author.

    Args:
        headers: by lower-case name; empty without HTTP.
        meta: the call's `_meta`.
        client_name: as the client calls itself in this request, or None.
        request_id: names the call in logs.
    """
    key = meta.get(KEY_META)
    return Transport(
        agent=headers.get("x-loom-agent")
        or agent_of(client_name)
        or agent_in_session(headers.get("mcp-session-id"))
        or agent_of_browserless(headers.get("user-agent")),
        session_id=session_of(meta) or headers.get("x-loom-session") or kept_session(headers.get("mcp-session-id")),
        project=headers.get("x-loom-project"),
        idempotency_key=key if isinstance(key, str) else headers.get("idempotency-key"),
        request_id=request_id,
    )
