"""What is said to an OpenAI-compatible endpoint, and how its answers are read. Pure."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final, Literal, NoReturn, cast

from loom.canonical import Json, encoded
from loom.models.strict_schema import Strict
from loom.models.writer import WriterFailed

Format = Literal["json_schema", "json_object", "text"]

FORMATS: Final[tuple[Format, ...]] = ("json_schema", "json_object", "text")
"""How an answer's shape is asked for, the surest first."""

REFUSALS: Final = frozenset({400, 415, 422, 501})
"""Statuses of an endpoint that does not know a field of the request."""

RETRIED: Final = frozenset({408, 425, 429, 500, 502, 503, 504, 529})
KEY_REFUSED: Final = frozenset({401, 403})
REDIRECTED: Final = range(300, 400)
OK: Final = range(200, 300)
NOT_THERE: Final = 404
TOO_LARGE: Final = 413
NO_QUOTA: Final = "insufficient_quota"
TOO_LONG_KINDS: Final = frozenset({"context_length_exceeded", "exceed_context_size_error", "string_above_max_length"})
TOO_LONG_WORDS: Final = re.compile(r"context (?:length|size|window)", re.IGNORECASE)
"""What servers say in words that give an error no kind."""

ANSWERED_MAX_DEPTH: Final = 64
THOUGHTS: Final = re.compile(r"<think>.*?</think>", re.DOTALL)
SHAPE_ASKED: Final = "\n\nAnswer with one JSON value and nothing else. It must fit this JSON Schema:\n"


class NotJson(WriterFailed):
    """The model said something, and it is no JSON."""


@dataclass(frozen=True, slots=True)
class Manner:
    """How one endpoint wants to be asked.

    Attributes:
        format: how the shape of the answer is asked for.
        length_field: the field that bounds the answer's tokens.
        cold: whether it takes a temperature of 0.
    """

    format: Format = "json_schema"
    length_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    cold: bool = True


MANNERS_MAX: Final = 6
"""Ways to ask that one call tries: three formats, another name of the bound, no temperature, and one to spare."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One question.

    Attributes:
        model: who is asked.
        instructions: the system's message.
        text: the user's message.
        shape: what the answer is to look like.
        tokens_max: the longest answer.
    """

    model: str
    instructions: str
    text: str
    shape: Strict
    tokens_max: int


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back. The body of an error may be cut."""

    status: int
    body: bytes
    retry_after: str


def request_body(ask: Ask, manner: Manner) -> bytes:
    """The request as JSON."""
    instructions = ask.instructions
    if manner.format != "json_schema":
        instructions += SHAPE_ASKED + encoded(dict(ask.shape.schema))
    told: dict[str, Json] = {
        "model": ask.model,
        "messages": [{"role": "system", "content": instructions}, {"role": "user", "content": ask.text}],
        manner.length_field: ask.tokens_max,
        "stream": False,
    }
    if manner.cold:
        told["temperature"] = 0
    if manner.format == "json_schema":
        schema: dict[str, Json] = {"name": "answer", "strict": ask.shape.exact, "schema": dict(ask.shape.schema)}
        told["response_format"] = {"type": "json_schema", "json_schema": schema}
    elif manner.format == "json_object":
        told["response_format"] = {"type": "json_object"}
    return json.dumps(told, ensure_ascii=False).encode()


def next_manner(manner: Manner, reply: Reply) -> Manner | None:
    """Another way to ask after a refusal; None when asking otherwise will not help."""
    if reply.status not in REFUSALS or _is_too_long(reply):
        return None
    refused = _error_of(reply).get("param")
    if refused == "max_tokens" and manner.length_field == "max_tokens":
        return replace(manner, length_field="max_completion_tokens")
    if refused == "temperature" and manner.cold:
        return replace(manner, cold=False)
    at = FORMATS.index(manner.format) + 1
    return replace(manner, format=FORMATS[at]) if at < len(FORMATS) else None


def failure(reply: Reply) -> WriterFailed:
    """What a reply that is no answer means. Of its body, nothing is repeated."""
    status = reply.status
    if status in REDIRECTED:
        return WriterFailed(
            f"the endpoint sends on to another address (HTTP {status}), where no text is sent; "
            "set LOOM_WRITER_URL to the address that answers",
            retryable=False,
            misconfigured=True,
        )
    if status in KEY_REFUSED:
        return WriterFailed(
            f"the endpoint refuses the key (HTTP {status}); see LOOM_WRITER_API_KEY",
            retryable=False,
            misconfigured=True,
        )
    if status == NOT_THERE:
        return WriterFailed(
            "the endpoint knows no such path or model (HTTP 404); see LOOM_WRITER_URL and LOOM_WRITER_MODEL",
            retryable=False,
            misconfigured=True,
        )
    if status == TOO_LARGE or _is_too_long(reply):
        return WriterFailed(
            "the text is too long for the model; see LOOM_WRITER_CONTEXT_TOKENS", retryable=False, too_long=True
        )
    if NO_QUOTA in _kinds(reply):
        return WriterFailed("the endpoint says that the key's quota is used up", retryable=False, misconfigured=True)
    return WriterFailed(f"the endpoint answers HTTP {status}", retryable=status in RETRIED)


def retry_after_s(reply: Reply, now: datetime) -> float | None:
    """How long the endpoint asks to wait; None when it does not say."""
    said = reply.retry_after.strip()
    if said.isascii() and said.replace(".", "", 1).isdigit():
        return float(said)
    try:
        moment = parsedate_to_datetime(said)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - now).total_seconds())


def answer(reply: Reply) -> Json:
    """The JSON that the model made.

    Raises:
        NotJson: the model made no JSON.
        WriterFailed: the reply is none of this protocol's, or the model refused or stopped half way.
    """
    try:
        read = cast("object", json.loads(reply.body))
    except (ValueError, RecursionError):
        raise WriterFailed("the endpoint's answer is not JSON", retryable=False) from None
    choice = _first(_part(read, "choices"))
    message = _part(choice, "message")
    if _part(choice, "finish_reason") == "length":
        raise WriterFailed("the model's answer was cut off; it was too long", retryable=False, too_long=True)
    if _part(message, "refusal") or _part(choice, "finish_reason") == "content_filter":
        raise WriterFailed("the model refused to answer", retryable=False)
    content = _part(message, "content")
    if isinstance(content, list):
        parts = [_part(one, "text") for one in cast("list[object]", content)]
        content = "".join(part for part in parts if isinstance(part, str))
    if not isinstance(content, str):
        raise WriterFailed("the endpoint's answer holds no text", retryable=False)
    return parsed(content)


def parsed(content: str) -> Json:
    """The JSON in a model's text: the whole of it, or what stands behind its thoughts, between fences, or in prose.

    Raises:
        NotJson: there is none.
        WriterFailed: it cannot be stored.
    """
    said = THOUGHTS.sub("", content).strip()
    begins = [place for place in (said.find("{"), said.find("[")) if place >= 0]
    for text in (said, said[min(begins) :] if begins else ""):
        found, value = _decoded(text)
        if found:
            return _storable(value)
    raise NotJson("the model's answer is not JSON", retryable=False)


def _decoded(text: str) -> tuple[bool, Json]:
    try:
        read = _DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        return False, None
    value, end = cast("tuple[Json, int]", read)
    # A text that merely begins with a number or a word of JSON is no JSON.
    return isinstance(value, dict | list) or not text[end:].strip(), value


def _storable(value: Json) -> Json:
    """The value, once it is one that every store takes.

    Raises:
        WriterFailed: it holds half a surrogate pair, a NUL, a number that is not finite, or is nested too deep.
    """
    stack = [(value, 0)]
    while stack:
        part, depth = stack.pop()
        if depth > ANSWERED_MAX_DEPTH or (isinstance(part, str) and "\x00" in part):
            raise WriterFailed("the model's answer cannot be stored", retryable=False)
        if isinstance(part, dict):
            stack.extend((one, depth + 1) for pair in part.items() for one in pair)
        elif isinstance(part, list):
            stack.extend((one, depth + 1) for one in part)
    try:
        encoded(value).encode()
    except (ValueError, RecursionError):
        raise WriterFailed("the model's answer cannot be stored", retryable=False) from None
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


_DECODER = json.JSONDecoder(parse_constant=_no_constant)


def _error_of(reply: Reply) -> Mapping[str, object]:
    """The error's fields; empty when there are none to read."""
    try:
        read = cast("object", json.loads(reply.body))
    except (ValueError, RecursionError):
        return {}
    found = _part(read, "error")
    return cast("Mapping[str, object]", found if isinstance(found, dict) else read if isinstance(read, dict) else {})


def _kinds(reply: Reply) -> set[object]:
    error = _error_of(reply)
    return {kind for kind in (error.get("code"), error.get("type")) if isinstance(kind, str)}


def _is_too_long(reply: Reply) -> bool:
    said = _error_of(reply).get("message")
    return bool(_kinds(reply) & TOO_LONG_KINDS) or (isinstance(said, str) and bool(TOO_LONG_WORDS.search(said)))


def _part(value: object, name: str) -> object:
    return cast("dict[str, object]", value).get(name) if isinstance(value, dict) else None


def _first(value: object) -> object:
    return cast("list[object]", value)[0] if isinstance(value, list) and value else None
