# Generated from the registry by `make docs`. Do not edit.
"""Fields of the operations of `tracker`."""

from datetime import datetime
from typing import Literal, NotRequired, Required

from loom.canonical import Json
from loom.edges.client.core import Identity


class TrackerAddFields(Identity):
    """What `tracker.add` takes."""

    number: Required[int]
    """The issue's number in its tracker."""
    title: Required[str]
    """Its title."""
    body: NotRequired[str]
    """The report, at most 262,144 characters."""
    state: NotRequired[Literal["open", "closed"]]
    """open or closed."""
    component: NotRequired[str]
    """The part of the program it is about; empty when unknown."""
    version: NotRequired[str]
    """The version it was seen in; empty when unknown."""
    frames: NotRequired[list[str] | None]
    """Stack frames, the failing one first: lines of a trace, or `function (file)`; read from the..."""
    labels: NotRequired[list[str]]
    """The tracker's labels."""
    url: NotRequired[str]
    """Where it can be read."""
    duplicate_of: NotRequired[int | None]
    """The issue that it is known to repeat."""
    created_at: NotRequired[datetime | None]
    """When it was reported; left out: when it was first added here."""
    updated_at: NotRequired[datetime | None]
    """When the tracker last changed it; a write that is older than what is here changes nothing."""


class TrackerDeleteFields(Identity):
    """What `tracker.delete` takes."""

    number: Required[int]
    """The issue to delete."""


class TrackerDuplicateCheckFields(Identity):
    """What `tracker.duplicate_check` takes."""

    title: Required[str]
    """The new report's title."""
    body: NotRequired[str]
    """The report, with its stack trace as it is."""
    frames: NotRequired[list[str] | None]
    """Stack frames, the failing one first: lines of a trace, or `function (file)`; read from the..."""
    component: NotRequired[str]
    """The part of the program it is about."""
    version: NotRequired[str]
    """The version it was seen in."""
    paths: NotRequired[list[str] | None]
    """Files it is about; read from the body when left out."""
    symbols: NotRequired[list[str] | None]
    """Functions and classes it is about; read from the body when left out."""
    mentions: NotRequired[list[str] | None]
    """Issues it mentions: 12, #12, ABC-12; read from the body when left out."""
    number: NotRequired[int | None]
    """Its own number when it is in the tracker already: left out of its candidates."""
    as_of: NotRequired[datetime | None]
    """Leave out issues that were reported later."""
    top_k: NotRequired[int]
    """At most this many candidates."""
    read_scope: NotRequired[Literal["namespace", "own_user", "own_session"]]
    """Whose issues: every user's, or this user_id's or session's beside those of no user."""


class TrackerGetFields(Identity):
    """What `tracker.get` takes."""

    number: Required[int]
    """The issue's number in its tracker."""
    read_scope: NotRequired[Literal["namespace", "own_user", "own_session"]]
    """Whose issues: every user's, or this user_id's or session's beside those of no user."""


class TrackerImportFields(Identity):
    """What `tracker.import` takes."""

    items: Required[list[Json]]
    """Issues as GitHub's REST API or `gh issue list --json..."""
    repository: NotRequired[str]
    """The repository they are of, as owner/name; read from their addresses when left out."""


class TrackerListFields(Identity):
    """What `tracker.list` takes."""

    state: NotRequired[Literal["", "open", "closed"]]
    """Only open or closed ones; empty for both."""
    component: NotRequired[str]
    """Only of this component; empty for any."""
    limit: NotRequired[int]
    """At most this many issues."""
    cursor: NotRequired[str]
    """next_cursor of the answer before; empty to begin."""
    read_scope: NotRequired[Literal["namespace", "own_user", "own_session"]]
    """Whose issues: every user's, or this user_id's or session's beside those of no user."""


class TrackerSearchFields(Identity):
    """What `tracker.search` takes."""

    query: Required[str]
    """Words, an error message, a stack trace or #number; its first 10,000 characters count."""
    top_k: NotRequired[int]
    """At most this many issues."""
    state: NotRequired[Literal["", "open", "closed"]]
    """Only of this state; empty for either."""
    component: NotRequired[str]
    """Only of this component; empty for any."""
    as_of: NotRequired[datetime | None]
    """Leave out issues that were reported later."""
    read_scope: NotRequired[Literal["namespace", "own_user", "own_session"]]
    """Whose issues: every user's, or this user_id's or session's beside those of no user."""
