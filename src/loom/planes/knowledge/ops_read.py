"""knowledge.get: a document, one of its revisions, or a range of its lines."""

from collections.abc import Sequence
from typing import Annotated, Final

from pydantic import BaseModel, Field

from loom.access.caller import Role
from loom.errors import NotFound
from loom.ledger.rules import Reader, visible
from loom.ops.fields import Instant, instant
from loom.ops.spec import Context, Kind, Op, OpenRequest, Toolset
from loom.planes.knowledge import store, text
from loom.planes.knowledge.fields import (
    DocumentAnswer,
    DocumentId,
    ReadScopeField,
    Uri,
    named_document,
    reader_of,
    shown,
)
from loom.planes.knowledge.rules import Document, Revision
from loom.planes.knowledge.text import Line
from loom.storage.interface import Transaction

LINES: Final = 200
LINES_MAX: Final = 5_000
TEXT_CHARACTERS: Final = 20_000
TEXT_CHARACTERS_MAX: Final = 200_000
REVISIONS_MAX: Final = 50
PARTS_AT_ONCE: Final = 8
NUMBER_MAX: Final = (1 << 31) - 1


class GetRequest(OpenRequest):
    """What knowledge.get takes."""

    document_id: Annotated[DocumentId, Field(description="The document; or name its uri.")] = ""
    uri: Annotated[Uri, Field(description="The document's uri, when document_id is empty.")] = ""
    revision: Annotated[int, Field(ge=0, le=NUMBER_MAX, description="Which revision; 0 for the latest.")] = 0
    first_line: Annotated[
        int, Field(ge=1, le=NUMBER_MAX, description="Read from this line on; next_line of an answer goes on.")
    ] = 1
    first_character: Annotated[
        int, Field(ge=0, le=NUMBER_MAX, description="Begin so far into that line; next_character of an answer.")
    ] = 0
    line_count: Annotated[int, Field(ge=1, le=LINES_MAX, description="At most this many lines.")] = LINES
    page: Annotated[int, Field(ge=0, le=NUMBER_MAX, description="Read this page alone; 0 for no page.")] = 0
    characters_max: Annotated[
        int, Field(ge=1, le=TEXT_CHARACTERS_MAX, description="At most this many characters of text.")
    ] = TEXT_CHARACTERS
    read_scope: ReadScopeField = "namespace"


class OneRevision(BaseModel):
    """A revision in the list of them."""

    revision: Annotated[int, Field(description="Its number, from 1.")]
    title: Annotated[str, Field(description="What the document was called.")]
    agent: Annotated[str, Field(description="The agent that added it.")]
    content_sha256: Annotated[str, Field(description="Hash of the bytes that were added.")]
    created_at: Annotated[Instant, Field(description="When it was added.")]


class GetAnswer(DocumentAnswer):
    """What knowledge.get answers."""

    text: Annotated[str, Field(description="The lines that were asked for; of a PDF, HTML or Word file, its text.")]
    first_line: Annotated[int, Field(description="The line that text begins in.")]
    last_line: Annotated[int, Field(description="The line that text ends in.")]
    next_line: Annotated[int, Field(description="Send as first_line to read on; 0 at the end.")]
    next_character: Annotated[int, Field(description="Send as first_character with next_line; mostly 0.")]
    is_latest: Annotated[bool, Field(description="Whether this is the revision that search finds.")]
    revisions: Annotated[list[OneRevision], Field(description="The latest 50 revisions, the newest first.")]


class Excerpt(BaseModel):
    """A range of a text, and where it ends."""

    text: str
    first_line: int
    last_line: int
    next_line: int
    next_character: int


def get(ctx: Context, request: GetRequest) -> GetAnswer:
    """Read."""
    reader = reader_of(ctx, request)
    document = named_document(ctx.tx, request, reader, request.document_id, request.uri)
    number = request.revision or document.revision
    revision = store.revision(ctx.tx, document.document_id, number)
    if revision is None or not _may_see(document, revision, reader):
        raise NotFound(f"revision: the document has {document.revision} revisions, from 1", field="revision")
    excerpt = read(ctx.tx, revision, request)
    known = store.revisions(ctx.tx, document.document_id, REVISIONS_MAX)
    return GetAnswer.model_validate(
        {
            **shown(document, revision),
            **excerpt.model_dump(),
            "is_latest": number == document.revision,
            "revisions": [_listed(one) for one in known if _may_see(document, one, reader)],
        }
    )


def read(tx: Transaction, revision: Revision, request: GetRequest) -> Excerpt:
    """The lines that are asked for, as far as the answer's bounds go."""
    taken: list[Line] = []
    room = request.characters_max
    line, part = request.first_line, 0
    until = 0
    while True:
        found = store.parts(tx, (revision.document_id, revision.revision), PARTS_AT_ONCE, (part, line, request.page))
        on_page = [one for one in found if not request.page or one.page == request.page]
        for one in text.lines(on_page, request.first_line, request.first_character):
            until = until or one.number + request.line_count
            if one.number >= until:
                return _excerpt(taken, one.number, one.character)
            size = len(one.text) + (1 if taken and taken[-1].number < one.number else 0)
            if size > room:
                return _cut(taken, one, room)
            room -= size
            taken.append(one)
        if len(found) < PARTS_AT_ONCE or len(on_page) < len(found):
            return _excerpt(taken, 0, 0) if taken else _nothing(line)
        part = found[-1].number + 1


def _cut(taken: Sequence[Line], line: Line, room: int) -> Excerpt:
    """What fits of a line that does not fit: nothing, unless it is the first."""
    if taken and taken[-1].number < line.number:
        return _excerpt(taken, line.number, line.character)
    piece = Line(line.number, line.character, line.page, line.text[:room])
    return _excerpt([*taken, piece], line.number, line.character + room)


def _excerpt(taken: Sequence[Line], next_line: int, next_character: int) -> Excerpt:
    written: list[str] = []
    for place, line in enumerate(taken):
        feeds = line.number - taken[place - 1].number if place else 0
        written.append("\n" * feeds + line.text)
    return Excerpt(
        text="".join(written),
        first_line=taken[0].number,
        last_line=taken[-1].number,
        next_line=next_line,
        next_character=next_character,
    )


def _nothing(line: int) -> Excerpt:
    return Excerpt(text="", first_line=line, last_line=line, next_line=0, next_character=0)


def _may_see(document: Document, revision: Revision, reader: Reader) -> bool:
    """Whether the reader's scope reaches the revision: it may come from another session than the latest."""
    return visible(document.user_id, revision.session_id, reader)


def _listed(revision: Revision) -> OneRevision:
    return OneRevision(
        revision=revision.revision,
        title=revision.title,
        agent=revision.agent,
        content_sha256=revision.content_sha256,
        created_at=instant(revision.created_at),
    )


GET = Op(
    name="knowledge.get",
    summary="Read a document's text by lines or page, the latest revision or an older one.",
    takes=GetRequest,
    gives=GetAnswer,
    role=Role.VIEWER,
    kind=Kind.READ,
    run=get,
    example={"uri": "docs/guide.md", "first_line": 1, "line_count": 50},
    raises=(NotFound,),
    toolsets=frozenset({Toolset.ALL}),
)
