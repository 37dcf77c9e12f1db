"""memory.set_from_messages with deferred=true: messages that wait, are read by a job, and are forgotten."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from memory_kit import of_session, of_user, refused, sweep
from messages_kit import ASKED, BERLIN, claim, claims, set_from, waiting_rows

from fakes import AGENT, ORG, Core
from loom import system
from loom.access.caller import LOCAL
from loom.errors import Conflict
from loom.jobs.handlers import Bench
from loom.planes import memory
from loom.planes.memory import extractions
from writer_kit import Received, Reply, ScriptedEndpoint, always, completion, refuses, scripted, writer_at


@pytest.fixture
def endpoint() -> Iterator[ScriptedEndpoint]:
    with scripted() as made:
        yield made


@pytest.fixture(name="core")
def _core(core: Core, endpoint: ScriptedEndpoint) -> Core:
    return replace(core, dispatcher=replace(core.dispatcher, writer=writer_at(endpoint.url)))


def test_deferred_messages_are_read_by_a_job_and_forgotten(core: Core, endpoint: ScriptedEndpoint) -> None:
    endpoint.say = always(claims(BERLIN, claim("now", "Said without a time.", "t2")))
    said = [ASKED["messages"][0], {"role": "user", "content": "And this."}]
    answer = set_from(core, deferred=True, tags=["chat"], user_id="ann", messages=said)
    assert (answer["deferred"], answer["items"]) == (True, [])
    assert endpoint.received == []
    assert waiting_rows(core) == 1
    with core.database.transaction(ORG, write=False) as tx:
        (job,) = tx.rows("SELECT kind, subject FROM job WHERE org = :org")
    assert job["kind"] == "memory.extract"
    assert str(job["subject"]).isdigit()
    core.clock.step(hours=5)
    core.drain()
    got = core.call("memory.get", memory_key="user/home", user_id="ann")
    assert (got["value"], got["tags"], got["agent"]) == ("The user lives in Berlin.", ["chat"], AGENT)
    assert got["source_trace"] == "conversation:monday/m1"
    assert core.call("memory.get", memory_key="now", user_id="ann")["valid_at"] == "2026-03-01T12:00:00Z"
    assert waiting_rows(core) == 0


def test_a_job_reaches_as_far_as_its_caller_did(core: Core, endpoint: ScriptedEndpoint) -> None:
    core.call("memory.set", memory_key="user/home", value="Other.", user_id="u1", session_id="s2")
    endpoint.say = always(claims(BERLIN))
    core.call("memory.set_from_messages", caller=of_session("u1", "s1"), deferred=True, **ASKED)
    core.drain()
    assert waiting_rows(core) == 0
    assert core.call("memory.get", memory_key="user/home", user_id="u1")["value"] == "Other."


def subjects(core: Core) -> list[str]:
    with core.database.transaction(ORG, write=False) as tx:
        return [
            str(row["extraction_id"]) for row in tx.rows("SELECT extraction_id FROM memory_extraction WHERE org = :org")
        ]


def not_read(bench: Bench, subject: str) -> None:
    """Run the job, which fails as other jobs do."""
    with pytest.raises(extractions.NotRead, match="1 calls' messages were not read"):
        extractions.extract(bench, ORG, [subject])


def audited(core: Core) -> list[dict[str, Any]]:
    """What the audit has of messages, the newest first."""
    registry = system.registry(memory.OPS)
    whole = replace(core, dispatcher=replace(core.dispatcher, registry=registry))
    return whole.call("audit.list", op="memory.set_from_messages")["records"]


def run_at(core: Core) -> datetime:
    """When the only job is due."""
    with core.database.transaction(ORG, write=False) as tx:
        (job,) = tx.rows("SELECT run_at FROM job WHERE org = :org")
    return datetime.fromtimestamp(cast("int", job["run_at"]) / 1_000_000, UTC)


def test_a_job_waits_for_a_model_that_fails_and_tells_no_text(
    core: Core, endpoint: ScriptedEndpoint, caplog: pytest.LogCaptureFixture
) -> None:
    set_from(core, deferred=True)
    (subject,) = subjects(core)
    endpoint.script += [refuses(401, message="Berlin"), completion("Berlin"), completion("Berlin")]
    not_read(core.bench, subject)
    not_read(replace(core.bench, writer=None), subject)
    not_read(core.bench, subject)
    assert waiting_rows(core) == 1
    assert "waits" not in caplog.text
    assert "Berlin" not in caplog.text
    assert "no language model is configured" in caplog.text
    endpoint.script.clear()
    endpoint.say = always(claims(BERLIN))
    extractions.extract(core.bench, ORG, [subject])
    assert waiting_rows(core) == 0
    assert core.call("memory.get", memory_key="user/home")["found"]
    extractions.extract(core.bench, ORG, [subject])  # a second run finds nothing to do
    assert len(core.call("memory.history", memory_key="user/home")["versions"]) == 1


def test_two_workers_do_not_read_the_same_messages(core: Core, endpoint: ScriptedEndpoint) -> None:
    set_from(core, deferred=True)
    (subject,) = subjects(core)
    asked, let_go = threading.Event(), threading.Event()

    def say(_got: Received) -> Reply:
        asked.set()
        return Reply(body=claims(BERLIN).body, until=let_go)

    endpoint.say = say
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(extractions.extract, core.bench, ORG, [subject])
        assert asked.wait(60)
        extractions.extract(core.bench, ORG, [subject])
        assert len(endpoint.received) == 1
        let_go.set()
        first.result(30)
    assert waiting_rows(core) == 0
    assert core.call("memory.get", memory_key="user/home")["found"]


def test_a_dead_workers_messages_are_read_by_another(core: Core, endpoint: ScriptedEndpoint) -> None:
    set_from(core, deferred=True)
    (subject,) = subjects(core)
    assert extractions._taken(core.bench, ORG, int(subject)) is not None
    endpoint.say = always(claims(BERLIN))
    extractions.extract(core.bench, ORG, [subject])
    assert waiting_rows(core) == 1
    core.clock.step(seconds=421)
    extractions.extract(core.bench, ORG, [subject])
    assert waiting_rows(core) == 0


def test_what_is_purged_while_it_is_read_is_not_written(core: Core, endpoint: ScriptedEndpoint) -> None:
    registry = system.registry(memory.OPS, (memory.purge_namespace,))
    core = replace(core, dispatcher=replace(core.dispatcher, registry=registry))
    core.call("memory.set", memory_key="one", value="here")
    set_from(core, deferred=True)
    (subject,) = subjects(core)

    def say(_got: Received) -> Reply:
        core.call("namespace.delete", name="local", confirm="local")
        return claims(BERLIN)

    endpoint.say = say
    extractions.extract(core.bench, ORG, [subject])
    assert waiting_rows(core) == 0
    assert core.call("memory.list")["items"] == []


def test_messages_that_nobody_reads_are_forgotten_in_a_week(core: Core) -> None:
    set_from(core, deferred=True)
    core.clock.step(days=6)
    sweep(core)
    assert waiting_rows(core) == 1
    core.clock.step(days=2)
    sweep(core)
    assert waiting_rows(core) == 0
    (record,) = audited(core)
    assert record["outcome"] == {"messages_forgotten": 2, "tries": 0}
    core.drain()


def test_messages_without_a_usable_answer_are_given_up(
    core: Core, endpoint: ScriptedEndpoint, caplog: pytest.LogCaptureFixture
) -> None:
    endpoint.say = always(completion("Berlin"))
    caller = of_user("u1")
    core.call("memory.set_from_messages", caller=caller, deferred=True, **ASKED)
    (subject,) = subjects(core)
    waits: list[datetime] = []
    for _ in range(extractions.FAILURES_MAX - 1):
        not_read(core.bench, subject)
        waits.append(run_at(core))
    assert waits == sorted(set(waits))
    assert waiting_rows(core) == 1
    not_read(core.bench, subject)
    assert waiting_rows(core) == 0
    assert f"are forgotten unread after {extractions.FAILURES_MAX} tries" in caplog.text
    assert "Berlin" not in caplog.text
    (record,) = audited(core)
    assert (record["namespace"], record["principal"], record["agent"]) == ("local", caller.principal, AGENT)
    assert (record["about"], record["outcome"]) == ({}, {"messages_forgotten": 2, "tries": 5})
    extractions.extract(core.bench, ORG, [subject])
    assert len(audited(core)) == 1


def test_a_model_that_is_away_costs_no_messages_for_days(core: Core, endpoint: ScriptedEndpoint) -> None:
    set_from(core, deferred=True)
    (subject,) = subjects(core)
    begun = core.clock.now
    for _ in range(extractions.TRIES_MAX - 1):
        endpoint.say = always(refuses(401))
        not_read(core.bench, subject)
        not_read(replace(core.bench, writer=None), subject)  # no try at all
        core.clock.now = max(core.clock.now, run_at(core))
    assert (core.clock.now - begun).days >= 2
    assert waiting_rows(core) == 1
    not_read(core.bench, subject)
    assert waiting_rows(core) == 0
    assert audited(core)[0]["outcome"]["tries"] == extractions.TRIES_MAX


def test_messages_that_bring_every_worker_down_are_given_up(core: Core, endpoint: ScriptedEndpoint) -> None:
    set_from(core, deferred=True)
    (subject,) = subjects(core)
    for _ in range(extractions.TRIES_MAX):
        assert extractions._taken(core.bench, ORG, int(subject)) is not None
        core.clock.step(seconds=421)
    not_read(core.bench, subject)
    assert (waiting_rows(core), endpoint.received) == (0, [])


def test_of_several_calls_one_that_fails_stops_no_other(core: Core, endpoint: ScriptedEndpoint) -> None:
    for _ in range(3):
        set_from(core, deferred=True)
    endpoint.script += [claims(BERLIN), refuses(401), claims(BERLIN)]
    with pytest.raises(extractions.NotRead):
        extractions.extract(core.bench, ORG, subjects(core))
    assert waiting_rows(core) == 1


def test_what_is_taken_away_while_a_job_reads_is_read_again(core: Core, endpoint: ScriptedEndpoint) -> None:
    core.call("memory.set", memory_key="home", value="The user lives in Rome.")
    set_from(core, deferred=True)

    def say(got: Received) -> Reply:
        told = [one["value"] for one in got.data["known"]]
        if told:
            core.call("memory.redact", memory_key="home")
        return claims(claim("echo", f"Told was {told}."))

    endpoint.say = say
    core.drain()
    assert len(endpoint.received) == 2
    assert core.call("memory.get", memory_key="echo")["value"] == "Told was []."
    assert waiting_rows(core) == 0


def test_what_is_taken_away_each_time_is_not_written(core: Core, endpoint: ScriptedEndpoint) -> None:
    """After some tries the claims that may repeat it are left, and the others are kept."""
    core.call("memory.set", memory_key="home", value="The user lives in Rome.")
    set_from(core, deferred=True)

    def say(_got: Received) -> Reply:
        core.call("memory.redact", memory_key="home")
        core.call("memory.set", memory_key="home", value="The user lives in Rome.")
        return claims(claim("echo", "The user lives in Rome."))

    endpoint.say = say
    core.drain()
    assert len(endpoint.received) == extractions.RETOLD_MAX + 1
    assert not core.call("memory.get", memory_key="echo")["found"]
    assert waiting_rows(core) == 0


def test_waiting_calls_are_bounded_for_each_caller(core: Core) -> None:
    for _ in range(extractions.OPEN_MAX):
        set_from(core, deferred=True)
    refused(Conflict, set_from, core, deferred=True)
    assert set_from(core, deferred=True, caller=of_user("u1"))["deferred"]
    assert waiting_rows(core) == extractions.OPEN_MAX + 1
    assert LOCAL.tokenless
