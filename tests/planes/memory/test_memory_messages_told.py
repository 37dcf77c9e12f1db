"""What was taken away while a language model was told it does not come back in what the model says."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from memory_kit import found, keys
from messages_kit import BERLIN, actions, claim, claims, set_from

from fakes import Core
from loom.planes.memory import keeping
from writer_kit import Received, Reply, ScriptedEndpoint, always, scripted, writer_at

ROME = "The user lives in Rome since the spring."
LONG = [{"role": "user", "content": f"Message {number}: " + "words of no weight " * 120} for number in range(30)]


@pytest.fixture
def endpoint() -> Iterator[ScriptedEndpoint]:
    with scripted() as made:
        yield made


@pytest.fixture(name="core")
def _core(core: Core, endpoint: ScriptedEndpoint) -> Core:
    return replace(core, dispatcher=replace(core.dispatcher, writer=writer_at(endpoint.url)))


def redacted(core: Core) -> None:
    core.call("memory.redact", memory_key="home")


def deleted(core: Core) -> None:
    core.call("memory.delete", memory_key="home")


def live_version_deleted(core: Core) -> None:
    core.call(
        "memory.delete_version",
        memory_key="home",
        version_text=core.call("memory.get", memory_key="home")["version_text"],
    )


def older_version_deleted(core: Core) -> None:
    told = core.call("memory.get", memory_key="home")["version_text"]
    core.call("memory.set", memory_key="home", value="The user lives in Oslo.")
    core.call("memory.delete_version", memory_key="home", version_text=told)


def made_high(core: Core) -> None:
    core.call("memory.update", memory_key="home", sensitivity="high")


def replaced_by_high(core: Core) -> None:
    core.call("memory.set", memory_key="home", value="Hidden.", sensitivity="high")


def expired(core: Core) -> None:
    core.call("memory.touch", memory_key="home", ttl_seconds=60)
    core.clock.step(seconds=61)


def redacted_and_set(core: Core) -> None:
    redacted(core)
    core.call("memory.set", memory_key="home", value="The user lives in Oslo.")


TAKEN = (
    redacted,
    deleted,
    live_version_deleted,
    older_version_deleted,
    made_high,
    replaced_by_high,
    expired,
    redacted_and_set,
)


@pytest.mark.parametrize("taken", TAKEN)
def test_an_echo_of_what_is_gone_is_not_kept(
    core: Core, endpoint: ScriptedEndpoint, taken: Callable[[Core], None]
) -> None:
    core.call("memory.set", memory_key="home", value="The user lives in Turin.")
    core.call("memory.set", memory_key="home", value=ROME)

    def say(got: Received) -> Reply:
        assert got.data["known"] == [{"key": "home", "value": ROME}]
        taken(core)
        return claims(claim("echo", ROME), BERLIN)

    endpoint.say = say
    answer = set_from(core)
    assert actions(answer) == {"echo": "skipped", "user/home": "skipped"}
    assert {one["reason"] for one in answer["items"]} == {keeping.GONE}
    assert ROME not in str(core.call("memory.list", include_values=True) | answer)
    assert "echo" not in found(core, ROME)
    endpoint.say = always(claims(BERLIN))
    assert actions(set_from(core)) == {"user/home": "created"}


def test_what_was_merely_changed_may_be_told(core: Core, endpoint: ScriptedEndpoint) -> None:
    core.call("memory.set", memory_key="home", value=ROME)

    def say(_got: Received) -> Reply:
        core.call("memory.set", memory_key="home", value="The user lives in Oslo.")
        core.call("memory.set", memory_key="other", value="Written and gone, and never told.")
        core.call("memory.redact", memory_key="other")
        return claims(claim("trip", "The user went by train."))

    endpoint.say = say
    assert actions(set_from(core)) == {"trip": "created"}


def test_an_echo_of_an_echo_is_not_kept(core: Core, endpoint: ScriptedEndpoint) -> None:
    """A later window is told what was read in an earlier one, and of it what it may repeat."""
    core.call("memory.set", memory_key="home", value=ROME)
    turns: list[dict[str, Any]] = []

    def say(got: Received) -> Reply:
        turns.append(got.data)
        if len(turns) == 1:
            return claims(claim("first", ROME))
        if len(turns) == 2:
            redacted(core)
        return claims(claim(f"window{len(turns)}", f"Again: {ROME}"))

    endpoint.say = say
    answer = set_from(core, messages=LONG)
    assert len(turns) > 2
    assert set(actions(answer).values()) == {"skipped"}
    assert keys(core.call("memory.list")) == []


def test_a_redaction_at_the_same_moment_leaves_no_echo(core: Core, endpoint: ScriptedEndpoint) -> None:
    """Whoever comes first: either the claim is not written, or it was there before the redaction was answered."""
    for turn in range(6):
        core.call("memory.set", memory_key="home", value=ROME)
        together = threading.Barrier(2)

        def say(_got: Received, together: threading.Barrier = together, turn: int = turn) -> Reply:
            together.wait(60)
            return claims(claim(f"echo{turn}", ROME))

        def redact(together: threading.Barrier = together, key: str = f"echo{turn}") -> int:
            together.wait(60)
            redacted(core)
            return int(core.call("memory.get", memory_key=key)["found"])

        endpoint.say = say
        with ThreadPoolExecutor(2) as pool:
            asked, redaction = pool.submit(set_from, core), pool.submit(redact)
            answer, there = asked.result(30), redaction.result(30)
        kept = sum(one["action"] == "created" for one in answer["items"])
        assert kept <= there, "an echo was written after the redaction was answered"
