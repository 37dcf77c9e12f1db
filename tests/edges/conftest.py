from collections.abc import Iterator
from pathlib import Path

import pytest
from edge_kit import Kit, token_only
from starlette.testclient import TestClient

from loom import config

HERE = "http://localhost:7777"


@pytest.fixture
def kit() -> Iterator[Kit]:
    made = Kit()
    yield made
    made.trap.release.set()
    made.pool.shutdown()


@pytest.fixture
def http(kit: Kit) -> Iterator[TestClient]:
    with TestClient(kit.app(), base_url=HERE) as client:
        yield client


@pytest.fixture
def guarded(kit: Kit) -> Iterator[TestClient]:
    """The same server, with tokens."""
    with TestClient(kit.app(token_only), base_url=HERE) as client:
        yield client


@pytest.fixture
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command line finds an empty home folder, and no settings but this one's."""
    for field in config.Settings.model_fields:
        for name in config.env_names(field):
            monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LOOM_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("LOOM_EMBEDDER", "hashing")
    monkeypatch.chdir(tmp_path)
