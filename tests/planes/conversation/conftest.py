"""A core of the conversation plane's operations."""

import pytest

from fakes import Core, CoreOf
from loom.planes import conversation


@pytest.fixture
def core(core_of: CoreOf) -> Core:
    return core_of(conversation.OPS, conversation.JOBS)
