"""The project a client works in is the namespace of code operations that name none."""

from collections.abc import Mapping
from typing import Any

import pytest

from loom.access.caller import LOCAL, Caller, Install, Role, Transport
from loom.ops import identity
from loom.ops.spec import AnyOp
from loom.planes import code, memory

SEARCH = next(op for op in code.OPS if op.name == "code.search")
SET = next(op for op in memory.OPS if op.name == "memory.set")
APP = Transport(project="app")


def namespace_of(op: AnyOp, caller: Caller, args: Mapping[str, Any], transport: Transport = APP) -> str:
    return identity.filled(op, caller, transport, Install(), args)["namespace"]


def token(**given: Any) -> Caller:
    return Caller("t", Role.WRITER, {"org": "acme", **given.pop("pins", {})}, **given)


def test_code_is_looked_for_in_the_project() -> None:
    assert namespace_of(SEARCH, LOCAL, {}) == "app"
    assert namespace_of(SEARCH, LOCAL, {"namespace": "other"}) == "other"
    assert namespace_of(SEARCH, token(), {}) == "app"
    assert namespace_of(SEARCH, token(namespaces=frozenset({"app", "b"})), {}) == "app"


def test_a_project_opens_nothing_that_a_token_does_not_reach() -> None:
    assert namespace_of(SEARCH, token(namespaces=frozenset({"b"})), {}) == "b"
    assert namespace_of(SEARCH, token(pins={"namespace": "c"}), {}) == "c"


@pytest.mark.parametrize("odd", ["", "a\nb", "x" * 257])
def test_what_no_namespace_is_called_is_no_project(odd: str) -> None:
    assert namespace_of(SEARCH, LOCAL, {}, Transport(project=odd)) == Install().namespace


def test_what_is_remembered_stays_where_it_was() -> None:
    assert namespace_of(SET, LOCAL, {}) == Install().namespace
