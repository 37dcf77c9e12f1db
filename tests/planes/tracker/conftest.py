"""A core of the tracker's operations."""

import pytest

from fakes import Core, CoreOf
from loom.planes import tracker


@pytest.fixture
def core(core_of: CoreOf) -> Core:
    return core_of(tracker.OPS, tracker.JOBS)
