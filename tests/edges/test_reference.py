"""The reference pages of a small registry."""

from typing import Any

from edge_kit import Kit

from loom.edges import reference
from loom.edges.reference import shown_type


def test_an_operation_shows_its_fields_defaults_errors_and_example(kit: Kit) -> None:
    (page,) = reference.plane_pages(kit.registry).values()
    assert "## note.set" in page
    assert "| `key` | text, at least 1 | required | The note's key. |" in page
    assert '| `mode` | "keep", "replace" | `"replace"` | What to do when it is there. |' in page
    assert "| `tags` | list of text | `[]` | Words it is found by. |" in page
    assert "| `if_match_sha256` | text or null | `null` | Only over this content. |" in page
    assert "Errors: `SHA_MISMATCH`." in page
    assert '"value": "tea"' in page
    assert "| `user_id`" not in page


def test_the_index_links_every_operation(kit: Kit) -> None:
    page = reference.index_page(kit.registry)
    for op in kit.registry:
        assert f"[`{op.name}`](note.md#{op.name.replace('.', '')})" in page


def test_every_error_is_listed_with_its_status() -> None:
    page = reference.errors_page()
    assert "| `SHA_MISMATCH` | 409 | no |" in page
    assert "| `RATE_LIMITED` | 429 | yes |" in page


def test_cells_stay_cells() -> None:
    row = {"name": "a", "variable": "A", "type": "x | y", "default": "", "unit": "", "meaning": "one\ntwo <b>"}
    assert "| x \\| y |  |  | one two &lt;b> |" in reference.settings_page([row])


def test_types_in_a_few_words() -> None:
    whole: dict[str, Any] = {"$defs": {"Hit": {"type": "object", "properties": {"key": {}}}, "Word": {"enum": ["a"]}}}
    assert shown_type({"type": "array", "items": {"$ref": "#/$defs/Hit"}, "maxItems": 3}, whole) == (
        "list of object: `key`, at most 3"
    )
    assert shown_type({"$ref": "#/$defs/Word"}, whole) == '"a"'
    assert shown_type({"type": "integer", "minimum": 1, "maximum": 9}, whole) == "integer, 1 to 9"
    assert shown_type({"type": "string", "format": "date-time"}, whole) == "time"
    assert shown_type({}, whole) == "any JSON"
