"""The client's decisions: what is sent, what is sent again, and what an error becomes."""

import json
from collections.abc import Sequence

import pytest

from loom.edges.client.core import (
    ATTEMPTS_MAX,
    PAUSE_S_MAX,
    Broken,
    Outcome,
    Pause,
    Repeats,
    Reply,
    Send,
    Step,
    conversation,
    error_of,
    pause_s,
)
from loom.errors import Internal, InvalidText, LoomError, RateLimited, Rejected, ShaMismatch, Unavailable

REPEATS = Repeats(reads=frozenset({"note.get"}), secrets=frozenset({"token.mint"}))
GOOD = Reply(200, {}, b'{"key": "a"}')


def refusal(status: int, code: str, **extras: object) -> Reply:
    detail = {"code": code, "message": "no", "category": "c", "retryable": False, **extras}
    return Reply(status, {"x-request-id": "r1"}, json.dumps({"detail": detail}).encode())


def talk(op: str, outcomes: Sequence[Outcome], token: str | None = None) -> tuple[object, list[Step]]:
    """The answer or the error, and every step, when the requests come out like this."""
    steps: list[Step] = []
    left = list(outcomes)
    running = conversation(op, {"key": "a"}, token, REPEATS)
    outcome: Outcome = None
    while True:
        try:
            step = running.send(outcome)
        except StopIteration as done:
            assert left == [], "not everything was asked for"
            return done.value, steps
        except LoomError as error:
            assert left == [], "not everything was asked for"
            return error, steps
        steps.append(step)
        outcome = left.pop(0) if isinstance(step, Send) else None


def sent(steps: Sequence[Step]) -> list[Send]:
    return [step for step in steps if isinstance(step, Send)]


def test_a_call_is_one_post() -> None:
    answer, steps = talk("note.set", [GOOD], token="hush")
    assert answer == {"key": "a"}
    (request,) = sent(steps)
    assert (request.path, json.loads(request.body)) == ("/v1/note.set", {"key": "a"})
    assert request.headers["authorization"] == "Bearer hush"


def test_a_write_is_sent_again_under_one_key() -> None:
    lost = Broken("ReadError", sent=True)
    answer, steps = talk("note.set", [lost, Broken("cannot connect", sent=False), GOOD])
    assert answer == {"key": "a"}
    keys = {request.headers["idempotency-key"] for request in sent(steps)}
    assert len(keys) == 1


def test_two_writes_have_two_keys() -> None:
    keys = {sent(talk("note.set", [GOOD])[1])[0].headers["idempotency-key"] for _ in range(2)}
    assert len(keys) == 2


@pytest.mark.parametrize("op", ["note.get", "token.mint"])
def test_reads_and_secrets_carry_no_key(op: str) -> None:
    assert "idempotency-key" not in sent(talk(op, [GOOD])[1])[0].headers


def test_a_secret_that_may_have_been_made_is_not_asked_for_again() -> None:
    error, steps = talk("token.mint", [Broken("ReadError", sent=True)])
    assert isinstance(error, Unavailable)
    assert len(sent(steps)) == 1
    assert talk("token.mint", [Broken("cannot connect", sent=False), GOOD])[0] == {"key": "a"}


def test_a_timeout_is_final() -> None:
    error, steps = talk("note.get", [Broken("ReadTimeout", sent=True, late=True)])
    assert isinstance(error, Unavailable)
    assert len(sent(steps)) == 1


def test_attempts_are_bounded() -> None:
    error, steps = talk("note.get", [refusal(503, "UNAVAILABLE")] * ATTEMPTS_MAX)
    assert isinstance(error, Unavailable)
    assert len(sent(steps)) == ATTEMPTS_MAX


@pytest.mark.parametrize(
    "reply",
    [refusal(429, "RATE_LIMITED", retry_after_s=7), Reply(429, {"retry-after": "7"}, b"")],
)
def test_the_servers_wait_is_kept(reply: Reply) -> None:
    _, steps = talk("note.get", [reply, GOOD])
    assert [step.seconds_s for step in steps if isinstance(step, Pause)] == [7]


def test_a_wait_that_is_too_long_is_the_callers() -> None:
    error, _ = talk("note.get", [refusal(429, "RATE_LIMITED", retry_after_s=PAUSE_S_MAX + 1)])
    assert isinstance(error, RateLimited)
    assert error.retry_after_s == PAUSE_S_MAX + 1


def test_pauses_grow_and_are_bounded() -> None:
    assert pause_s(0, None) < 0.5
    assert pause_s(20, None) == PAUSE_S_MAX


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413, 422, 423, 500])
def test_a_refusal_is_not_repeated(status: int) -> None:
    error, steps = talk("note.set", [refusal(status, "")])
    assert isinstance(error, LoomError)
    assert len(sent(steps)) == 1


def test_an_error_has_the_servers_class_and_extras() -> None:
    error = error_of(refusal(409, "SHA_MISMATCH", current_sha256="00"))
    assert type(error) is ShaMismatch
    assert error.message == "no"
    assert error.extras == {"current_sha256": "00", "request_id": "r1"}


def test_every_code_comes_back_as_its_class() -> None:
    def family(kind: type[LoomError]) -> list[type[LoomError]]:
        return [kind, *(found for child in kind.__subclasses__() for found in family(child))]

    for kind in family(LoomError)[1:]:
        if kind.__module__ == "loom.errors":
            assert type(error_of(refusal(kind.status, kind.code))) is kind


def test_a_code_of_a_newer_server_becomes_the_nearest_class() -> None:
    error = error_of(refusal(422, "TOO_GREEN"))
    assert type(error) is Rejected
    assert error.extras["code"] == "TOO_GREEN"


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"detail": "no"}', b"\xff"])
def test_a_refusal_of_something_else_is_told(body: bytes) -> None:
    assert "502" in error_of(Reply(502, {}, body)).message


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"\xff"])
def test_an_answer_that_is_no_object_is_an_error(body: bytes) -> None:
    assert isinstance(talk("note.get", [Reply(200, {}, body)])[0], Internal)


def test_half_a_surrogate_is_refused_before_it_is_sent() -> None:
    with pytest.raises(InvalidText):
        next(conversation("note.set", {"key": "\ud800"}, None, REPEATS))
