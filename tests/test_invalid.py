"""What a caller is told about a field that does not fit."""

from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from loom import compose
from loom.access.caller import Caller, Install, Role, Transport
from loom.errors import Rejected
from loom.ops import identity
from loom.ops.invalid import rejected


class _Taken(BaseModel):
    model_config = ConfigDict(strict=True)

    name: Annotated[str, Field(min_length=1, max_length=5)]
    count: Annotated[int, Field(ge=1, le=9)] = 1
    share: float = 0.5
    dry: bool = False
    tags: Annotated[list[str], Field(max_length=2)] = Field(default_factory=list[str])
    order: Literal["newest", "oldest"] = "newest"
    kind: Annotated[str, Field(min_length=1)] = "plain"


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({}, "name: is required"),
        ({"name": None}, "name: should be a text, not null"),
        ({"name": 5}, "name: should be a text, not a number"),
        ({"name": {}}, "name: should be a text, not an object"),
        ({"name": ""}, "name: may not be empty"),
        ({"name": "longer"}, "name: at most 5 characters"),
        ({"count": "5"}, "count: should be a whole number, not a text; send it without quotes"),
        ({"count": 5.5}, "count: should be a whole number, without a fraction"),
        ({"count": True}, "count: should be a whole number, not true or false"),
        ({"count": 0}, "count: should be 1 or more"),
        ({"count": 10**30}, "count: should be 9 or less"),
        ({"share": "0.9"}, "share: should be a number, not a text; send it without quotes"),
        ({"dry": "true"}, "dry: should be true or false, not a text; send it without quotes"),
        ({"dry": 1}, "dry: should be true or false, not a number"),
        ({"tags": "a,b"}, 'tags: should be a list, not a text; send it as JSON, like ["a", "b"]'),
        ({"tags": ["a", 1]}, "tags.1: should be a text, not a number"),
        ({"tags": ["a", "b", "c"]}, "tags: at most 2 in the list"),
        ({"order": "up"}, "order: should be 'newest' or 'oldest'"),
        ({"order": "-"}, "order: should be 'newest' or 'oldest'; leave it out for its default"),
        ({"kind": ""}, "kind: may not be empty; leave it out for its default"),
    ],
)
def test_a_message_names_the_field_and_the_way_out(sent: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError) as found:
        _Taken.model_validate({"name": "a", **sent} if sent else sent)

    assert rejected(found.value, _Taken, "request").message == said


def test_a_missing_field_is_told_with_the_names_that_do_not_exist() -> None:
    with pytest.raises(ValidationError) as found:
        _Taken.model_validate({"title": "a"})

    told = rejected(found.value, _Taken, "request", ["title", "body"])

    assert told.message == "name: is required; there is no field body, title"


@pytest.mark.parametrize(
    ("namespaces", "said"),
    [(frozenset({"shop", "docs"}), "the token reaches: docs, shop"), (None, "namespace.list shows them")],
)
def test_a_missing_namespace_is_told_with_those_there_are(namespaces: frozenset[str] | None, said: str) -> None:
    caller = Caller("token", Role.WRITER, {"org": "dev"}, namespaces)
    op = compose.registry().named("memory.get")
    with pytest.raises(Rejected, match=said):
        identity.filled(op, caller, Transport(), Install(), {"memory_key": "a"})
