from collections.abc import Iterator
from pathlib import Path

import pytest
from dashboard_kit import Browser

from loom import compose, config


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[compose.App]:
    monkeypatch.setenv("LOOM_HOME", str(tmp_path))
    monkeypatch.setenv("LOOM_EMBEDDER", "hashing")
    built = compose.build(config.load(tmp_path))
    yield built
    built.close()


@pytest.fixture
def browser(app: compose.App) -> Browser:
    return Browser(app)
