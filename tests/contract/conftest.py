"""A core of every plane's operations, as a server has them."""

import pytest

from fakes import Core, CoreOf
from loom import federation
from loom.ledger import embedding
from loom.planes import memory, profile


@pytest.fixture
def core(core_of: CoreOf) -> Core:
    ops = [*memory.OPS, *profile.OPS, *federation.ops([memory.LEG, profile.LEG])]
    return core_of(ops, embedding.JOBS, profile.LATE)
