"""What the container files say, read as text: no container engine is needed to see that they fit Loom."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from loom.config import Settings
from loom.edges.cli.main import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = ROOT / "Dockerfile"
COMPOSE = ROOT / "compose.yaml"
EXAMPLES = sorted((ROOT / "deploy").glob("*.env.example"))
LOOM_SERVICES = ("server-1", "server-2", "worker")


def compose() -> dict[str, Any]:
    return cast("dict[str, Any]", yaml.safe_load(COMPOSE.read_text("utf-8")))


def services() -> dict[str, dict[str, Any]]:
    return compose()["services"]


def instructions() -> list[tuple[str, str]]:
    """Each instruction of the Dockerfile with its arguments; lines that go on are joined, comments left out."""
    lines = [line for line in DOCKERFILE.read_text("utf-8").splitlines() if not line.startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [(line.split()[0], line.split(maxsplit=1)[1]) for line in joined.splitlines() if line.strip()]


def last_stage() -> list[tuple[str, str]]:
    found = instructions()
    return found[max(at for at, (word, _) in enumerate(found) if word == "FROM") :]


def images() -> Iterator[str]:
    for word, rest in instructions():
        if word == "FROM":
            yield rest.split()[0]
    for service in services().values():
        if "build" not in service:
            yield service["image"]


def test_every_image_has_a_tag_that_stays() -> None:
    for image in images():
        name, _, tag = image.rpartition(":")
        assert name, image
        assert re.match(r"\d+\.\d+", tag), image


def test_every_setting_that_is_named_exists() -> None:
    texts = [path.read_text("utf-8") for path in (DOCKERFILE, COMPOSE, ROOT / "docs/guides/postgres.md", *EXAMPLES)]
    texts += [path.read_text("utf-8") for path in (ROOT / "deploy").iterdir() if path.suffix != ".env"]
    named = {name for text in texts for name in re.findall(r"\bLOOM_[A-Z_]+", text)}
    assert {"LOOM_DATABASE_URL", "LOOM_ALLOWED_HOSTS", "LOOM_LATER_WORK", "LOOM_HOST", "LOOM_HOME"} <= named
    assert {name.removeprefix("LOOM_").lower() for name in named} <= set(Settings.model_fields)


def test_the_values_that_are_given_are_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, str] = {**services()["server-1"]["environment"]}
    given |= dict(
        line.split("=", 1) for line in (ROOT / "deploy/loom.env.example").read_text("utf-8").splitlines() if "=" in line
    )
    for word, rest in last_stage():
        given |= dict(part.split("=", 1) for part in shlex.split(rest)) if word == "ENV" else {}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    settings = Settings()
    assert settings.later_work == "elsewhere"
    assert settings.database_url.get_secret_value().startswith("postgresql://loom:")
    assert {"server-1", "server-2"} <= set(settings.allowed_hosts)


def test_the_image_is_small_in_rights_and_says_how_it_is() -> None:
    stage = dict(last_stage())
    words = [word for word, _ in instructions()]
    assert words.count("FROM") == 2
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", stage["USER"])
    assert "/readyz" in stage["HEALTHCHECK"]
    for word in ("ENTRYPOINT", "CMD"):
        assert isinstance(yaml.safe_load(stage[word]), list), f"{word} is not in exec form"
    assert isinstance(yaml.safe_load(stage["HEALTHCHECK"].split("CMD", 1)[1]), list)
    for word, rest in instructions():
        if word == "RUN" and "pip" in rest:
            assert "--no-cache-dir" in rest


def test_the_probe_is_a_program() -> None:
    command = yaml.safe_load(dict(last_stage())["HEALTHCHECK"].split("CMD", 1)[1])
    assert command[:2] == ["python", "-c"]
    compile(command[2], "HEALTHCHECK", "exec")


def test_what_the_build_copies_is_there_and_let_in() -> None:
    let_in = {line[1:] for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if line.startswith("!")}
    copied = {name for word, rest in instructions() if word == "COPY" for name in rest.split()[:-1]}
    assert copied == let_in
    assert all((ROOT / name).exists() for name in copied)


def test_the_services_are_all_there_and_wait_for_each_other() -> None:
    found = services()
    assert set(found) == {"database", "proxy", *LOOM_SERVICES}
    for name in LOOM_SERVICES:
        assert found[name]["depends_on"]["database"]["condition"] == "service_healthy"
        assert found[name]["env_file"] == "deploy/loom.env"
        assert found[name].get("command", ["serve"])[0] in COMMANDS
    assert {one["condition"] for one in found["proxy"]["depends_on"].values()} == {"service_healthy"}
    for name in ("database", "proxy"):
        assert found[name]["healthcheck"]["test"][0] == "CMD"
    kept = {volume.split(":")[0] for one in found.values() for volume in one.get("volumes", ())}
    assert set(compose()["volumes"]) <= kept
    assert all((ROOT / place).is_file() for place in kept if place.startswith("./"))


def test_no_secret_stands_in_the_file() -> None:
    for name, service in services().items():
        for variable in service.get("environment", {}):
            assert not re.search(r"PASSWORD|TOKEN|SECRET|DATABASE_URL", variable), name
    ignored = (ROOT / "deploy/.gitignore").read_text("utf-8").splitlines()
    assert "*.env" in ignored
    assert {f"deploy/{path.name.removesuffix('.example')}" for path in EXAMPLES} == {
        service["env_file"] for service in services().values() if "env_file" in service
    }


def test_the_proxy_asks_every_server_by_a_name_it_answers_to() -> None:
    asked = set(re.findall(r"([\w-]+):7777", (ROOT / "deploy/Caddyfile").read_text("utf-8")))
    assert asked == {name for name in services() if name.startswith("server-")}
    for name in asked:
        assert asked <= set(services()[name]["environment"]["LOOM_ALLOWED_HOSTS"].split(","))
