"""A core of the memory plane's operations, and of what moves memories to another store."""

import pytest

from fakes import Core, CoreOf
from loom.ledger import embedding
from loom.planes import memory
from loom.system import transfer


@pytest.fixture
def core(core_of: CoreOf) -> Core:
    return core_of([*memory.OPS, *transfer.ops([memory.CARGO])], {**embedding.JOBS, **memory.JOBS})
