from collections.abc import Iterator

import pytest
from edge_kit import Kit, token_only
from starlette.testclient import TestClient

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
