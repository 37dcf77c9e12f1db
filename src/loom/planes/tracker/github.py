"""Reads issues as GitHub gives them: the REST API's JSON, and that of `gh issue list --json ...`. Pure."""

import re
from collections.abc import Mapping, Sequence
from typing import Final, cast

from pydantic import JsonValue

from loom.errors import Rejected
from loom.planes.tracker.fields import (
    BODY_LENGTH_MAX,
    LIST_MAX,
    NAME_LENGTH_MAX,
    TITLE_LENGTH_MAX,
    URL_LENGTH_MAX,
    IssueFields,
)

ADDRESS_PARTS: Final = re.compile(r"https?://[^/\s]+/([^\s?#]+?)/(?:-/)?(?:issues|pull|pulls|browse)/[^/\s]+\Z")
DUPLICATE: Final = re.compile(r"(?:^|\b)duplicate of\s+(?:[\w.-]+/[\w.-]+)?#(\d{1,15})\b", re.IGNORECASE)
COMPONENT_LABEL: Final = re.compile(r"(?:components?|area|module|pkg|package|subsystem)\s*[:/=-]\s*(.+)", re.IGNORECASE)
VERSION_LABEL: Final = re.compile(r"(?:affects|version|v)\s*[:/=-]?\s*(\d[\w.-]*)", re.IGNORECASE)
PULLS: Final = re.compile(r"/pulls?/\d+\Z")


def is_pull_request(raw: Mapping[str, JsonValue]) -> bool:
    """Whether the item is a pull request, which GitHub lists among the issues."""
    address = raw.get("html_url") or raw.get("url")
    return (
        raw.get("pull_request") is not None
        or raw.get("isPullRequest") is True
        or (isinstance(address, str) and PULLS.search(address) is not None)
    )


def repository_of(raw: Mapping[str, JsonValue]) -> str:
    """The repository that the issue's address names, as `owner/name`; empty when it names none."""
    for field in ("html_url", "url"):
        address = raw.get(field)
        match = ADDRESS_PARTS.fullmatch(address) if isinstance(address, str) else None
        if match:
            return match[1].removeprefix("repos/")
    return ""


def fields_of(raw: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    """An item's fields by the names of tracker.add.

    What GitHub allows and Loom does not keep in full is cut: a long title, many labels. Fields of
    tracker.add itself are taken as they are.

    Raises:
        Rejected: the item's state is no state.
    """
    known: dict[str, JsonValue] = {name: raw[name] for name in IssueFields.model_fields if name in raw}
    known["title"] = _cut(raw.get("title"), TITLE_LENGTH_MAX)
    body = raw.get("body")
    known["body"] = _cut("" if body is None else body, BODY_LENGTH_MAX)
    known["state"] = _state(raw.get("state"))
    labels = _labels(raw.get("labels"))
    known["labels"] = cast("list[JsonValue]", labels)
    for field, other in (("created_at", "createdAt"), ("updated_at", "updatedAt")):
        known[field] = raw.get(field) or raw.get(other)
    known["url"] = _cut(raw.get("html_url") or raw.get("url") or "", URL_LENGTH_MAX)
    known.setdefault("component", _labelled(COMPONENT_LABEL, labels))
    known.setdefault("version", _labelled(VERSION_LABEL, labels))
    if known.get("duplicate_of") is None and isinstance(known["body"], str):
        match = DUPLICATE.search(known["body"])
        known["duplicate_of"] = int(match[1]) if match and int(match[1]) else None
    return known


def _cut(value: JsonValue, most: int) -> JsonValue:
    """A text of bounded length; what is no text stays, to be refused as such."""
    return value[:most] if isinstance(value, str) else value


def _state(value: JsonValue) -> str:
    if value is None:
        return "open"
    if isinstance(value, str) and value.lower() in ("open", "closed", "reopened"):
        return "closed" if value.lower() == "closed" else "open"
    raise Rejected("state: should be open or closed", field="state")


def _labels(value: JsonValue) -> list[str]:
    """The names of labels: each a text, or an object with a name."""
    if not isinstance(value, list):
        return []
    named = [one.get("name") if isinstance(one, dict) else one for one in value]
    return list(dict.fromkeys(one[:NAME_LENGTH_MAX] for one in named if isinstance(one, str) and one))[:LIST_MAX]


def _labelled(pattern: re.Pattern[str], labels: Sequence[str]) -> str:
    """What the first label of this form names."""
    found = (pattern.fullmatch(label.strip()) for label in labels)
    return next((match[1].strip() for match in found if match), "")
