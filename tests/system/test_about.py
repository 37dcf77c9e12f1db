"""ops.health and ops.capabilities."""

from dataclasses import replace
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from fakes import Core, CoreOf, at_once, standing_s
from loom import __version__, federation, system
from loom.ledger import embedding
from loom.models.breaker import FAILURES_MAX, REST_S
from loom.models.failing_fast import FailFastEmbedder, embedder_breaker
from loom.planes import profile
from writer_kit import KEY, writer_at


def is_valid(schema: dict[str, Any], value: Any) -> bool:
    return Draft202012Validator(schema).is_valid(value)  # pyright: ignore[reportUnknownMemberType]  # untyped library


@pytest.fixture
def core(core_of: CoreOf) -> Core:
    made = core_of([], embedding.JOBS, profile.LATE)
    registry = system.registry([*profile.OPS, *federation.ops([profile.LEG])])
    return replace(made, dispatcher=replace(made.dispatcher, registry=registry))


def test_health_says_how_the_parts_are(core: Core) -> None:
    answer = core.call("ops.health")
    assert answer == {
        "status": "ok",
        "server_version": __version__,
        "embedder_ok": True,
        "embedder": {
            "model": "hashing",
            "source": "loom",
            "dimension": 64,
            "fingerprint": core.embedder.space.fingerprint,
        },
        "writer_configured": False,
        "jobs_waiting": 0,
        "degraded": [],
    }
    core.call("profile.append", label="x", addition="y")
    core.embedder.off.set()
    answer = core.call("ops.health")
    assert (answer["status"], answer["degraded"], answer["jobs_waiting"]) == ("degraded", ["embedder"], 1)


def test_health_says_how_long_the_embedder_is_left_alone(core: Core) -> None:
    breaker = embedder_breaker("questions", standing_s, at_once)
    resting = FailFastEmbedder(core.embedder, breaker, breaker)
    core = replace(core, dispatcher=replace(core.dispatcher, embedder=resting))
    assert "embedder_rest_s" not in core.call("ops.health")
    core.embedder.off.set()
    for _ in range(FAILURES_MAX):
        answer = core.call("ops.health")
        assert (answer["embedder_ok"], "embedder_rest_s" in answer) == (False, False)
    answer = core.call("ops.health")
    assert (answer["status"], answer["degraded"], answer["embedder_ok"]) == ("degraded", ["embedder"], False)
    assert 0.0 < answer["embedder_rest_s"] <= REST_S
    assert core.embedder.texts == 1 + FAILURES_MAX


def test_health_says_whether_there_is_a_language_model_and_no_more(core: Core) -> None:
    with_one = replace(core, dispatcher=replace(core.dispatcher, writer=writer_at("http://127.0.0.1:9/v1")))
    answer = with_one.call("ops.health")
    assert (answer["status"], answer["writer_configured"]) == ("ok", True)
    assert KEY not in str(answer)
    assert "127.0.0.1" not in str(answer)


def test_the_index_lists_every_operation(core: Core) -> None:
    answer = core.call("ops.capabilities")
    assert answer["server_version"] == __version__
    names = [op["name"] for op in answer["ops"]]
    assert names == sorted(names)
    assert {"ops.capabilities", "ops.health", "profile.set", "search.query", "token.mint", "namespace.list"} <= set(
        names
    )
    by_name = {op["name"]: op for op in answer["ops"]}
    assert by_name["search.query"]["mcp_tool"] == "loom_search"
    assert by_name["search.query"]["toolsets"] == ["all", "default"]
    assert by_name["profile.set"]["toolsets"] == []
    assert by_name["profile.set"]["raises"] == ["DENIED", "KIND_CONFLICT", "LOCKED", "SHA_MISMATCH", "TOO_LONG"]
    for op in answer["ops"]:
        for schema in (op["input_schema"], op["output_schema"]):
            Draft202012Validator.check_schema(schema)
            assert schema["type"] == "object"


def test_examples_and_answers_fit_their_schemas(core: Core) -> None:
    for name in ("profile.set", "profile.append", "profile.replace", "profile.render", "search.query", "ops.health"):
        op = core.dispatcher.registry.named(name)
        schemas = next(view for view in core.call("ops.capabilities")["ops"] if view["name"] == name)
        sent: dict[str, Any] = {"org": "dev", "namespace": "local", "agent": "claude", **op.example}
        assert is_valid(schemas["input_schema"], sent)
        assert is_valid(schemas["output_schema"], core.call(name, **sent))


def test_kept_answers_are_forgotten_after_their_time(core: Core) -> None:
    core.call("profile.append", key="k", label="x", addition="y")
    core.clock.step(hours=25)
    for sweep in system.SWEEPS:
        sweep(core.bench, "dev")
    with core.database.transaction("dev", write=False) as tx:
        assert tx.rows("SELECT op FROM idempotency WHERE org = :org") == []
