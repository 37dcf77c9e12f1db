"""memory.set_from_messages while the language model is left alone: callers hear it at once, no try is lost."""

import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from memory_kit import refused
from messages_kit import BERLIN, claims, set_from, waiting_rows

from fakes import ORG, Core, at_once, standing_s
from loom.errors import Unavailable
from loom.jobs.handlers import PutOff
from loom.models.breaker import FAILURES_MAX, REST_S
from loom.models.failing_fast import FailFastWriter, writer_breaker
from loom.planes.memory import extractions
from writer_kit import ScriptedEndpoint, always, refuses, scripted, writer_at

AT_ONCE_S = 30.0
"""Less than what a call of the model may take."""


@pytest.fixture
def endpoint() -> Iterator[ScriptedEndpoint]:
    with scripted(say=always(refuses(503, retry_after="3600"))) as made:
        yield made


@pytest.fixture(name="core")
def _core(core: Core, endpoint: ScriptedEndpoint) -> Core:
    writer = FailFastWriter(writer_at(endpoint.url), writer_breaker(standing_s, at_once))
    return replace(core, dispatcher=replace(core.dispatcher, writer=writer))


def test_a_caller_is_told_at_once_and_when_to_come_again(core: Core, endpoint: ScriptedEndpoint) -> None:
    for _ in range(FAILURES_MAX):
        refused(Unavailable, set_from, core)
    sent, began_s = len(endpoint.received), time.monotonic()
    caught = refused(Unavailable, set_from, core)
    assert time.monotonic() - began_s < AT_ONCE_S
    assert "asked again in" in caught.message
    assert caught.retry_after_s is not None
    assert caught.retry_after_s >= REST_S / 2
    assert len(endpoint.received) == sent


def test_a_job_waits_and_loses_no_try(core: Core, endpoint: ScriptedEndpoint) -> None:
    set_from(core, deferred=True)
    with core.database.transaction(ORG, write=False) as tx:
        (row,) = tx.rows("SELECT extraction_id FROM memory_extraction WHERE org = :org")
    subject = str(row["extraction_id"])
    for _ in range(FAILURES_MAX):
        with pytest.raises(extractions.NotRead):
            extractions.extract(core.bench, ORG, [subject])
    for _ in range(extractions.TRIES_MAX + 1):
        with pytest.raises(PutOff) as put_off:
            extractions.extract(core.bench, ORG, [subject])
        assert 0.0 < put_off.value.rest_s <= REST_S
    with core.database.transaction(ORG, write=False) as tx:
        (row,) = tx.rows("SELECT attempts, failures, taken_until FROM memory_extraction WHERE org = :org")
    assert (row["attempts"], row["failures"], row["taken_until"]) == (FAILURES_MAX, 0, 0)
    assert len(endpoint.received) == FAILURES_MAX + 1  # the last one is the breaker's own
    answering = replace(core.bench, writer=writer_at(endpoint.url))
    endpoint.say = always(claims(BERLIN))
    extractions.extract(answering, ORG, [subject])
    assert waiting_rows(core) == 0
    assert core.call("memory.get", memory_key="user/home")["found"]
