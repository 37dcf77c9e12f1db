"""Fields and answers that the tracker's operations share."""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from loom.ledger.rules import Reader
from loom.ops.fields import Instant, ScopeWord, instant, instant_or_none
from loom.ops.spec import Context, Prepare, Request
from loom.planes.tracker.rules import Issue
from loom.planes.tracker.traces import NAME_CHARACTERS_MAX

NUMBER_MAX = 2**53
TITLE_LENGTH_MAX = 1_024
BODY_LENGTH_MAX = 262_144
NAME_LENGTH_MAX = 256
URL_LENGTH_MAX = 2_048
LIST_MAX = 64
FRAME_LENGTH_MAX = 1_000
BODY_SHOWN_CHARACTERS = 300

Number = Annotated[int, Field(ge=1, le=NUMBER_MAX)]
"""An issue's number in its tracker."""

Title = Annotated[str, Field(min_length=1, max_length=TITLE_LENGTH_MAX)]
Body = Annotated[str, Field(max_length=BODY_LENGTH_MAX)]
Name = Annotated[str, Field(max_length=NAME_LENGTH_MAX)]
State = Literal["open", "closed"]
Names = Annotated[list[Annotated[str, Field(min_length=1, max_length=NAME_LENGTH_MAX)]], Field(max_length=LIST_MAX)]
Frames = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=FRAME_LENGTH_MAX)]],
    Field(max_length=LIST_MAX),
]
Url = Annotated[str, Field(max_length=URL_LENGTH_MAX)]

FRAMES_TOLD = (
    "Stack frames, the failing one first: lines of a trace, or `function (file)`; read from the body when left out."
)

ReadScopeField = Annotated[
    ScopeWord,
    Field(description="Whose issues: every user's, or this user_id's or session's beside those of no user."),
]


class IssueFields(BaseModel):
    """One issue to write; what tracker.add takes."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    number: Annotated[Number, Field(description="The issue's number in its tracker.")]
    title: Annotated[Title, Field(description="Its title.")]
    body: Annotated[Body, Field(description="The report, at most 262,144 characters.")] = ""
    state: Annotated[State, Field(description="open or closed.")] = "open"
    component: Annotated[Name, Field(description="The part of the program it is about; empty when unknown.")] = ""
    version: Annotated[Name, Field(description="The version it was seen in; empty when unknown.")] = ""
    frames: Annotated[Frames | None, Field(description=FRAMES_TOLD)] = None
    labels: Annotated[Names, Field(description="The tracker's labels.")] = Field(default_factory=list[str])
    url: Annotated[Url, Field(description="Where it can be read.")] = ""
    duplicate_of: Annotated[Number | None, Field(description="The issue that it is known to repeat.")] = None
    created_at: Annotated[
        Instant | None, Field(description="When it was reported; left out: when it was first added here.")
    ] = None
    updated_at: Annotated[
        Instant | None,
        Field(description="When the tracker last changed it; a write that is older than what is here changes nothing."),
    ] = None


class ShownIssue(BaseModel):
    """One issue as answers show it, without its body."""

    model_config = ConfigDict(frozen=True)

    issue_id: Annotated[str, Field(description="The row's id.")]
    number: Annotated[int, Field(description="Its number in its tracker.")]
    title: Annotated[str, Field(description="Its title.")]
    state: Annotated[State, Field(description="open or closed.")]
    component: Annotated[str, Field(description="The part of the program it is about.")]
    version: Annotated[str, Field(description="The version it was seen in.")]
    labels: Annotated[list[str], Field(description="The tracker's labels.")]
    url: Annotated[str, Field(description="Where it can be read.")]
    duplicate_of: Annotated[int | None, Field(description="The issue that it is known to repeat.")]
    created_at: Annotated[Instant, Field(description="When it was reported.")]
    updated_at: Annotated[Instant | None, Field(description="When the tracker last changed it; null when unknown.")]


def shown(issue: Issue) -> ShownIssue:
    """An issue as answers show it."""
    content = issue.content
    return ShownIssue(
        issue_id=issue.issue_id,
        number=content.number,
        title=content.title,
        state="closed" if content.state == "closed" else "open",
        component=content.component,
        version=content.version,
        labels=list(content.labels),
        url=content.url,
        duplicate_of=content.duplicate_of,
        created_at=instant(content.created_at),
        updated_at=instant_or_none(content.updated_at),
    )


def reader_of(bench: Context | Prepare, request: Request) -> Reader:
    """How far this call reaches; for a write, how far its token does."""
    return Reader(bench.scope, request.user_id, request.session_id)


def clipped(names: Sequence[object]) -> list[str]:
    """Names for an answer, each of bounded length."""
    return [str(name)[:NAME_CHARACTERS_MAX] for name in names]
