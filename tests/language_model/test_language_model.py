"""Loom with a real, if very small, language model: that all parts meet. What it says is not judged.

Calls pass through a relay that counts them, so that the tests know that the model was asked and that it answered;
Loom may then take the answer or refuse it. On a machine that is too busy for the model they are skipped.
"""

import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from running import Server, free_port, running, wait_until
from writer_kit import Received, Reply, ScriptedEndpoint, refuses, scripted

HERE = Path(__file__).parent
PLACE = HERE.parents[1] / ".venvs" / "language_model"
START_TIMEOUT_S = 60.0
ANSWER_TIMEOUT_S = 60.0
SETTLE_TIMEOUT_S = 20.0
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"drink": {"enum": ["tea", "coffee"]}}}

pytestmark = [pytest.mark.clients, pytest.mark.timeout(400)]


@dataclass
class Model:
    """The model's server, behind the relay.

    Attributes:
        relay: where Loom is sent.
        replies: what the model answered, in order.
    """

    relay: ScriptedEndpoint
    replies: list[Reply]

    def await_reply(self, count: int) -> None:
        """Until the model has answered so often; skips the test where it is too slow."""
        try:
            wait_until(lambda: len(self.replies) >= count, ANSWER_TIMEOUT_S)
        except AssertionError:
            pytest.skip(f"this machine is too busy for the model to answer within {ANSWER_TIMEOUT_S:.0f} s")


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """The port of a server with the model."""
    if not (PLACE / ".installed").exists():
        pytest.fail("the model is not installed; run tests/language_model/setup.py")
    port = free_port()
    command = [str(PLACE / "bin" / "python"), str(HERE / "serve_model.py"), str(port)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            wait_until(lambda: is_up(port), START_TIMEOUT_S)
            yield port
        finally:
            process.kill()


def is_up(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/health").status_code == 200
    except httpx.TransportError:
        return False


@pytest.fixture(scope="module")
def model(port: int) -> Iterator[Model]:
    """The relay to the model."""
    replies: list[Reply] = []

    def say(got: Received) -> Reply:
        url = f"http://127.0.0.1:{port}{got.path}"
        try:
            answer = httpx.post(url, json=got.body, timeout=ANSWER_TIMEOUT_S)
        except httpx.TransportError:
            return refuses(503)
        replies.append(Reply(answer.status_code, answer.content, {"Content-Type": "application/json"}))
        return replies[-1]

    with scripted(say=say) as relay:
        yield Model(relay, replies)


@pytest.fixture(scope="module")
def server(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A Loom that uses it."""
    settings = {
        "embedder": "hashing",
        "writer_url": model.relay.url,
        "writer_model": "smollm2",
        "writer_timeout_s": str(int(ANSWER_TIMEOUT_S)),
        "writer_output_tokens_max": "64",
    }
    with running(tmp_path_factory.mktemp("model") / "home", **settings) as started:
        yield started


def answered(model: Model, before: int, shape: Callable[[dict[str, Any]], bool]) -> None:
    """The model was asked for JSON of a strict shape, and gave an answer of the protocol."""
    asked, reply = model.relay.received[before].body, model.replies[before]
    assert asked["response_format"]["type"] == "json_schema"
    assert shape(asked["response_format"]["json_schema"]["schema"])
    assert asked["temperature"] == 0
    assert reply.status == 200, reply.body[:300]


def test_a_profile_is_built_by_a_job(model: Model, server: Server) -> None:
    assert server.call("ops.health")["writer_configured"]
    server.call("profile.schema_set", json_schema=SCHEMA)
    before = len(model.replies)
    server.call("memory.set", memory_key="drink", value="Drinks tea.", user_id="ann")
    model.await_reply(before + 1)
    answered(model, before, lambda schema: set(schema["properties"]) == {"drink"})

    def settled() -> bool:
        """The answer was taken, or refused and asked for again: a second one, and then the job's next try."""
        status = server.call("profile.structured", user_id="ann")["status"]
        return status == "ready" or len(model.relay.received) > before + 1

    wait_until(settled, SETTLE_TIMEOUT_S)
    built = server.call("profile.structured", user_id="ann")
    assert built["status"] in ("ready", "pending")
    assert set(built["profile"]) == {"drink"}
    assert built["profile"]["drink"] in ("tea", "coffee", None)
    assert server.call("memory.get", memory_key="drink", user_id="ann")["value"] == "Drinks tea."


def test_messages_are_read(model: Model, server: Server) -> None:
    before = len(model.replies)
    said = {"role": "user", "content": "I drink tea."}
    with server.client() as client:
        answer = client.post("/v1/memory.set_from_messages", json={"messages": [said]}, timeout=2 * ANSWER_TIMEOUT_S)
    if len(model.replies) == before:
        pytest.skip("this machine is too busy for the model to answer in time")
    # So small a model may go on and on; that it was asked, and its answer read, is what counts here.
    if answer.status_code == 200:
        assert {one["action"] for one in answer.json()["items"]} <= {"created", "updated", "unchanged", "skipped"}
    else:
        assert answer.status_code in (502, 503), answer.text
        assert answer.json()["detail"]["code"] != "INTERNAL"
