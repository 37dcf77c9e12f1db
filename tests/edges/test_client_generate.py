"""The generated client: what is written for a small registry compiles and says what the fields are."""

import ast
from typing import Annotated, Any, Literal

import pytest
from edge_kit import Kit
from pydantic import JsonValue

from loom.canonical import Json
from loom.edges.client import generate
from loom.edges.client.annotations import Source
from loom.edges.client.planes import REPEATS


def test_a_plane_has_fields_and_methods(kit: Kit) -> None:
    files = generate.files(kit.registry)
    assert set(files) == {"__init__.py", "note.py", "note_fields.py"}
    for text in files.values():
        ast.parse(text)
    assert "class NoteSetFields(Identity):" in files["note_fields.py"]
    assert "key: Required[str]" in files["note_fields.py"]
    assert 'mode: NotRequired[Literal["keep", "replace"]]' in files["note_fields.py"]
    assert "def set(self, **fields: Unpack[NoteSetFields]) -> SetAnswer:" in files["note.py"]
    assert "async def set(self, **fields: Unpack[NoteSetFields]) -> SetAnswer:" in files["note.py"]
    assert 'reads=frozenset({"note.get", "note.trap"})' in files["__init__.py"]


def test_what_is_committed_knows_the_reads() -> None:
    assert "profile.render" in REPEATS.reads
    assert "profile.set" not in REPEATS.reads | REPEATS.secrets


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (str, "str"),
        (str | None, "str | None"),
        (list[Annotated[str, "short"]], "list[str]"),
        (dict[str, int], "dict[str, int]"),
        (tuple[str, ...], "tuple[str, ...]"),
        (Literal["a", 'b"c'], 'Literal["a", "b\\"c"]'),
        (Json, "Json"),
        (JsonValue, "Json"),
        (dict[str, Json], "dict[str, Json]"),
        (Any, "object"),
        (Kit, "Kit"),
    ],
)
def test_types_are_written_as_source(annotation: Any, text: str) -> None:
    assert Source().of(annotation) == text
