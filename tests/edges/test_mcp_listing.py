"""What a model is told about the tools, over the real operations."""

import json
import re

import pytest

from loom import compose
from loom.access.caller import Role
from loom.edges.mcp.listing import ANY_DESCRIPTION, INSTRUCTIONS, help_for, tools_of
from loom.errors import UnknownOp
from loom.ops.spec import IDENTITY_FIELDS, Toolset

INSTRUCTIONS_LENGTH_MAX = 2048
"""What known clients keep of a server's instructions."""


def test_the_instructions_name_listed_tools_and_existing_operations() -> None:
    registry = compose.registry()
    listed = {tool.name for tool in tools_of(registry, Toolset.DEFAULT, Role.WRITER)}
    assert set(re.findall(r"loom_[a-z_]+", INSTRUCTIONS)) <= listed
    named = re.findall(r'"op": "([a-z_.]+)"', INSTRUCTIONS) + re.findall(r"[a-z]+\.[a-z_]+(?=[,;)\"])", ANY_DESCRIPTION)
    assert len(named) > 4
    assert {name for name in named if name != "help"} <= {op.name for op in registry}
    assert len(INSTRUCTIONS) < INSTRUCTIONS_LENGTH_MAX


def test_help_shows_identity_and_requires_none() -> None:
    registry = compose.registry()
    shown = help_for(registry, Role.WRITER, {"op": "profile.append"})
    assert shown["input_schema"]["required"] == ["label", "addition"]
    assert set(IDENTITY_FIELDS) <= set(shown["input_schema"]["properties"])
    assert help_for(registry, Role.WRITER, {"op": "loom_profile_append"}) == shown
    assert json.dumps(shown)


def test_a_name_that_is_nearly_right_is_answered_with_the_right_one() -> None:
    with pytest.raises(UnknownOp, match=r'did you mean profile\.append\? loom_op with op="help" lists them'):
        help_for(compose.registry(), Role.WRITER, {"op": "profile_append"})
