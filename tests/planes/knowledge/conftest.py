"""A core of the knowledge plane's operations."""

import pytest

from fakes import Core, CoreOf
from loom.planes import knowledge


@pytest.fixture
def core(core_of: CoreOf) -> Core:
    return core_of(knowledge.OPS, knowledge.JOBS)
