"""Requests read and answers written, on bare ASGI."""

import re
import secrets
from collections.abc import Mapping
from typing import Any, cast

import anyio
from pydantic_core import from_json, to_json
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope, Send

from loom.errors import BadRequest, BodyTooLarge, LoomError, MalformedJson, Unauthenticated, WrongMedia

BODY_LENGTH_MAX = 4 * 1024 * 1024
"""Bytes."""
BODY_WAIT_S = 30.0
REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
REQUEST_ID_KEY = "loom.request_id"
LABEL_KEY = "loom.label"


def headers_of(scope: Scope, name: bytes) -> list[str]:
    """Every value of the header `name` (lower case)."""
    return [_text(value) for key, value in scope["headers"] if key == name]


def header_of(scope: Scope, name: bytes) -> str | None:
    """The first value of the header `name` (lower case) without the spaces around it, or None."""
    for key, value in scope["headers"]:
        if key == name:
            return _text(value).strip() or None
    return None


def authorization_of(scope: Scope) -> str | None:
    """The Authorization header without the spaces around it, or None.

    Raises:
        Unauthenticated: there are several, of which a proxy may have checked another one.
    """
    if len(headers_of(scope, b"authorization")) > 1:
        raise Unauthenticated("Authorization: sent more than once; send one")
    return header_of(scope, b"authorization")


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def request_id_of(scope: Scope) -> str:
    """The id of this request: the caller's own when it is a plain word, else a new one."""
    known = scope.get(REQUEST_ID_KEY)
    if isinstance(known, str):
        return known
    sent = header_of(scope, b"x-request-id")
    made = sent if sent is not None and REQUEST_ID.fullmatch(sent) else secrets.token_hex(8)
    scope[REQUEST_ID_KEY] = made
    return made


def check_media(scope: Scope) -> None:
    """WrongMedia unless the body is plain JSON, by its headers; no Content-Type counts as JSON."""
    media = header_of(scope, b"content-type")
    if media is not None:
        kind, *parameters = [part.strip().lower() for part in media.split(";")]
        charset = [part for part in parameters if part.startswith("charset=")]
        if kind != "application/json" or any(part[8:].strip('"') not in ("utf-8", "utf8") for part in charset):
            raise WrongMedia("send the body with the header Content-Type: application/json, in UTF-8")
    if (header_of(scope, b"content-encoding") or "identity").lower() != "identity":
        raise WrongMedia("send the body uncompressed")


def is_short(scope: Scope, length_max: int) -> bool:
    """Whether the body has at most `length_max` bytes by its header, which the parser holds it to."""
    declared = header_of(scope, b"content-length")
    return declared is not None and declared.isdecimal() and int(declared[:20]) <= length_max


async def body_of(scope: Scope, receive: Receive, length_max: int) -> bytes:
    """The whole body, at most `length_max` bytes.

    Raises:
        BodyTooLarge: it is longer, by its header or while it arrives.
        BadRequest: it did not arrive in time.
        ClientDisconnect: the client left.
    """
    declared = header_of(scope, b"content-length")
    if declared is not None and declared.isdecimal() and int(declared[:20]) > length_max:
        raise _too_large(length_max)
    parts: list[bytes] = []
    length = 0
    with anyio.move_on_after(BODY_WAIT_S):
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            part = message.get("body", b"")
            length += len(part)
            if length > length_max:
                raise _too_large(length_max)
            parts.append(part)
            if not message.get("more_body", False):
                return parts[0] if len(parts) == 1 else b"".join(parts)
    raise BadRequest(f"the body did not arrive within {BODY_WAIT_S:.0f} s")


def _too_large(length_max: int) -> BodyTooLarge:
    return BodyTooLarge(f"the body is over {length_max} bytes; send less at once", body_length_max=length_max)


def object_of(body: bytes) -> dict[str, Any]:
    """The body as a JSON object; an empty body is an empty object.

    Raises:
        MalformedJson: not JSON, not an object, NaN, Infinity, half a surrogate pair, or nested too deep.
    """
    if not body:
        return {}
    try:
        value = from_json(body, allow_inf_nan=False)
    except ValueError:
        # The parser's message can repeat a piece of the body; ours never does.
        raise MalformedJson(
            "the body is not JSON; check quotes, commas, NaN, lone surrogates and nesting (UTF-8 only)"
        ) from None
    if not isinstance(value, dict):
        raise MalformedJson("the body is JSON but not an object; send {...}")
    return cast("dict[str, Any]", value)


def json_of(value: object) -> bytes:
    """Compact JSON in UTF-8; a number that JSON lacks becomes null."""
    return to_json(value, inf_nan_mode="null")


async def send_json(send: Send, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
    """Answer with JSON bytes."""
    lines = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        (b"cache-control", b"no-store"),
    ]
    lines.extend((name.encode(), value.encode()) for name, value in (headers or {}).items())
    await send({"type": "http.response.start", "status": status, "headers": lines})
    await send({"type": "http.response.body", "body": body})


async def send_error(send: Send, error: LoomError) -> None:
    """Answer with an error in the one shape that every error has."""
    await send_json(send, error.status, json_of(error.body()), error_headers(error))


def error_headers(error: LoomError) -> dict[str, str]:
    """The headers that go with an error."""
    headers: dict[str, str] = {}
    if error.retry_after_s is not None:
        headers["retry-after"] = str(max(1, round(error.retry_after_s)))
    if error.status == 401:  # noqa: PLR2004  # the status is the name
        headers["www-authenticate"] = "Bearer"
    if error.status == 413:  # noqa: PLR2004  # the same
        headers["connection"] = "close"
    allow = error.extras.get("allow")
    if isinstance(allow, str):
        headers["allow"] = allow
    return headers


def replayed(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives `body` once, and then what the client does next."""
    first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return first.pop() if first else await receive()

    return again
