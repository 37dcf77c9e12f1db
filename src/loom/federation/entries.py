"""The sections of a search.query answer as entries of a prompt. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, cast

from pydantic import JsonValue

from loom.canonical import Json, encoded
from loom.federation.pack import Entry
from loom.federation.query import QueryAnswer

TAGS: Final[Mapping[str, str]] = {
    "tracker": "known_defects",
    "profile": "profile",
    "memory": "memories",
    "knowledge": "documents",
    "conversations": "conversations",
}
"""Sections in the order in which they are packed, and their elements."""


def entries_of(name: str, answer: QueryAnswer) -> Sequence[Entry]:
    """A section's hits as entries, best first."""
    if name == "tracker":
        return list(_defects(answer.tracker or {}))
    read = {"profile": _section, "memory": _memory, "knowledge": _passage, "conversations": _turn}[name]
    body: Mapping[str, JsonValue] = getattr(answer, name)
    hits = body.get("sections" if name == "profile" else "results")
    return [read(hit) for hit in hits if isinstance(hit, dict)] if isinstance(hits, list) else []


def _defects(verdict: Mapping[str, JsonValue]) -> Iterator[Entry]:
    """The candidates of a verdict that makes the defect known."""
    if verdict.get("verdict") not in ("duplicate", "related"):
        return
    for one in cast("list[dict[str, JsonValue]]", verdict.get("candidates") or []):
        issue = cast("dict[str, JsonValue]", one["issue"])
        yield Entry(
            "issue",
            (
                ("number", _text(issue.get("number"))),
                ("state", _text(issue.get("state"))),
                ("match", _text(one.get("verdict"))),
                ("url", _text(issue.get("url"))),
            ),
            _text(issue.get("title")),
        )


def _section(hit: Mapping[str, JsonValue]) -> Entry:
    return Entry("section", _named(hit, "label", "agent", "user_id"), _text(hit.get("text")))


def _memory(hit: Mapping[str, JsonValue]) -> Entry:
    value = hit.get("value")
    text = value if value is not None else hit.get("excerpt")
    at = hit.get("valid_at") or hit.get("created_at")
    attributes = (("key", _text(hit.get("memory_key"))), *_named(hit, "agent"), ("time", _text(at)))
    return Entry("memory", attributes, _text(text))


def _passage(hit: Mapping[str, JsonValue]) -> Entry:
    lines = f"{_text(hit.get('first_line'))}-{_text(hit.get('last_line'))}".strip("-")
    headings = hit.get("headings")
    under = " / ".join(map(_text, headings)) if isinstance(headings, list) else ""
    attributes = (*_named(hit, "title", "uri"), ("lines", lines), ("page", _text(hit.get("first_page"))))
    return Entry("passage", (*attributes, ("under", under)), _text(hit.get("text")))


def _turn(hit: Mapping[str, JsonValue]) -> Entry:
    who = _text(hit.get("speaker")) or _text(hit.get("role"))
    attributes = (*_named(hit, "session"), ("said_by", who), ("time", _text(hit.get("said_at"))))
    return Entry("turn", attributes, _text(hit.get("text")))


def _named(hit: Mapping[str, JsonValue], *names: str) -> tuple[tuple[str, str], ...]:
    """Fields as attributes; `-` stands for none."""
    return tuple((name, "" if hit.get(name) == "-" else _text(hit.get(name))) for name in names)


def _text(value: JsonValue) -> str:
    """A value as a person reads it; empty for null."""
    if value is None:
        return ""
    return value if isinstance(value, str) else encoded(cast("Json", value))
