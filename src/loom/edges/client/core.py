"""What the client decides, without sending anything.

A call is a generator: it yields what to do next (send a request, pause), is
sent what came of it, and returns the answer. The two drivers run it.
"""

import json
import random
import uuid
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any, NotRequired, TypedDict, cast

from pydantic_core import PydanticSerializationError, to_json

from loom import __version__
from loom.errors import Internal, InvalidText, LoomError, Unavailable

ATTEMPTS_MAX = 4
BACKOFF_S = 0.25
PAUSE_S_MAX = 30.0
UNAVAILABLE_STATUSES = frozenset({429, 503})
OK = 200


class Identity(TypedDict):
    """Who calls, given once for every call of a client; a call's own fields win."""

    org: NotRequired[str | None]
    namespace: NotRequired[str | None]
    agent: NotRequired[str | None]
    user_id: NotRequired[str | None]
    session_id: NotRequired[str | None]
    run_id: NotRequired[str | None]


@dataclass(frozen=True, slots=True)
class Send:
    """Send this request; give back a Reply or a Broken."""

    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait so many seconds; give back None."""

    seconds_s: float


@dataclass(frozen=True, slots=True)
class Reply:
    """What the server answered."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Broken:
    """No whole answer came.

    Attributes:
        reason: a few words for the error.
        sent: whether the server may have seen the request.
        late: whether the time was up; asking a slow server again would make it slower.
    """

    reason: str
    sent: bool
    late: bool = False


Step = Send | Pause
Outcome = Reply | Broken | None
Conversation = Generator[Step, Outcome, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Repeats:
    """What may be sent twice.

    Attributes:
        reads: operations that change nothing.
        secrets: writes that refuse an idempotency key, because they answer with a secret.
    """

    reads: frozenset[str]
    secrets: frozenset[str]


def conversation(op: str, args: Mapping[str, object], token: str | None, repeats: Repeats) -> Conversation:
    """One call of `op`, with its retries.

    A request that surely was not run (429, 503, no connection) is sent again, up
    to 4 times in all. One that may have been run is sent again when that is
    safe: it reads, or it carries an idempotency key. Nothing is sent again after a timeout.

    Raises:
        LoomError: the server's own, of the class that its code has here;
            Unavailable when there is no answer; `extras["request_id"]` names the call in the server's log.
    """
    keyed = op not in repeats.reads and op not in repeats.secrets
    request = Send(f"/v1/{op}", _headers(token, keyed=keyed), _body(args))
    for attempt in range(ATTEMPTS_MAX):
        outcome = yield request
        last = attempt == ATTEMPTS_MAX - 1
        if isinstance(outcome, Reply):
            if outcome.status == OK:
                return _answer(outcome)
            error = error_of(outcome)
            again = outcome.status in UNAVAILABLE_STATUSES and (error.retry_after_s or 0) <= PAUSE_S_MAX
        else:
            broken = outcome or Broken("no outcome", sent=True)
            error = Unavailable(f"no answer from the server: {broken.reason}")
            again = not broken.sent or (op not in repeats.secrets and not broken.late)
        if last or not again:
            raise error
        yield Pause(pause_s(attempt, error.retry_after_s))
    raise AssertionError("the last attempt returns or raises")


def pause_s(attempt: int, retry_after_s: float | None) -> float:
    """How long to wait before the next attempt: as the server says, or doubling with jitter, at most 30 s."""
    own_s = BACKOFF_S * 2**attempt * random.uniform(0.5, 1.5)  # noqa: S311  # jitter, not a secret
    return min(PAUSE_S_MAX, max(own_s, retry_after_s or 0))


def _headers(token: str | None, *, keyed: bool) -> Mapping[str, str]:
    headers = {
        "content-type": "application/json",
        "user-agent": f"loom-client/{__version__}",
        "x-request-id": uuid.uuid4().hex,
    }
    if token:
        headers["authorization"] = f"Bearer {token}"
    if keyed:
        headers["idempotency-key"] = uuid.uuid4().hex
    return headers


def _body(args: Mapping[str, object]) -> bytes:
    try:
        return to_json(args, inf_nan_mode="constants")
    except PydanticSerializationError:
        raise InvalidText("the arguments hold a text that is not valid Unicode, or a value that is not JSON") from None


def _answer(reply: Reply) -> dict[str, Any]:
    found = _object(reply)
    if found is None:
        raise Internal("the server's answer is not a JSON object", request_id=_request_id(reply))
    return found


def _object(reply: Reply) -> dict[str, Any] | None:
    try:
        found = json.loads(reply.body)
    except ValueError:
        return None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None


def _request_id(reply: Reply) -> str | None:
    return reply.headers.get("x-request-id")


def _family(root: type[LoomError]) -> list[type[LoomError]]:
    return [root, *(found for child in root.__subclasses__() for found in _family(child))]


def error_of(reply: Reply) -> LoomError:
    """The error that a refusing reply stands for, of the class that raises it in the server.

    A code that this version does not know becomes the nearest class of the same status.
    """
    extras: dict[str, Any] = {"request_id": _request_id(reply)}
    waits_s = _seconds(reply.headers.get("retry-after"))
    detail = (_object(reply) or {}).get("detail")
    if not isinstance(detail, dict):
        kind = _nearest("", reply.status)
        message = f"the server answered with status {reply.status} and no error of Loom's"
        return kind(message, retry_after_s=waits_s, **extras)
    known = cast("dict[str, Any]", detail)
    kind = _nearest(str(known.get("code", "")), reply.status)
    told = {name: value for name, value in known.items() if name not in {"message", "category", "retryable"}}
    retry_after_s = told.pop("retry_after_s", waits_s)
    if told.get("code") == kind.code:
        del told["code"]
    return kind(str(known.get("message", "")), retry_after_s=retry_after_s, **(told | extras))


def _nearest(code: str, status: int) -> type[LoomError]:
    kinds = _family(LoomError)
    same_code = [kind for kind in kinds if kind.code == code and kind is not LoomError]
    same_status = [kind for kind in kinds if kind.status == status and kind is not LoomError]
    return next(iter([*same_code, *same_status]), LoomError)


def _seconds(text: str | None) -> float | None:
    return float(text) if text is not None and text.isdigit() else None
