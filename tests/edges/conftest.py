from collections.abc import Iterator

import pytest
from edge_kit import Kit, anyone
from starlette.testclient import TestClient

from loom.edges.http import Http, http_app


@pytest.fixture
def kit() -> Iterator[Kit]:
    made = Kit()
    yield made
    made.trap.release.set()


@pytest.fixture
def http(kit: Kit) -> Iterator[TestClient]:
    app = http_app(Http(kit.registry, kit.dispatcher.call, anyone, "1.2.3"))
    with TestClient(app, base_url="http://localhost:7777") as client:
        yield client
