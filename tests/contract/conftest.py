"""A core of every plane's operations, as a server has them."""

import pytest

from fakes import Core, CoreOf
from loom import federation
from loom.ledger import embedding
from loom.planes import memory, profile
from loom.system import transfer


@pytest.fixture
def core(core_of: CoreOf) -> Core:
    planes = [*memory.OPS, *profile.OPS, *transfer.ops([memory.CARGO])]
    ops = [*planes, *federation.ops([memory.LEG, profile.LEG])]
    return core_of(ops, embedding.JOBS, profile.LATE)
