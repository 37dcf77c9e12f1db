"""A core of the memory plane's operations."""

import pytest

from fakes import Core, CoreOf
from loom.ledger import embedding
from loom.planes import memory


@pytest.fixture
def core(core_of: CoreOf) -> Core:
    return core_of(memory.OPS, {**embedding.JOBS, **memory.JOBS})
