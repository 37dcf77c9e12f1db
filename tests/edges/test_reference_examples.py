"""Every example of the reference pages is answered by an empty store."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from loom import compose, config
from loom.access.caller import LOCAL, Transport
from loom.errors import LoomError
from loom.ops.spec import AnyOp


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[compose.App]:
    monkeypatch.setenv("LOOM_HOME", str(tmp_path))
    monkeypatch.setenv("LOOM_EMBEDDER", "hashing")
    built = compose.build(config.load(tmp_path))
    yield built
    built.close()


@pytest.mark.parametrize("name", [op.name for op in compose.registry()])
def test_an_example_is_answered_or_refused_as_declared(app: compose.App, name: str) -> None:
    op = app.dispatcher.registry.named(name)
    refused = refusal(app, op)
    assert refused is None or issubclass(refused, op.raises), refused


def refusal(app: compose.App, op: AnyOp) -> type[LoomError] | None:
    try:
        app.dispatcher.call(op.name, LOCAL, Transport(agent="example"), op.example)
    except LoomError as error:
        return type(error)
    return None
