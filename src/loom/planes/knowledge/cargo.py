"""Documents as lines of an export: each with one of its revisions and some of that one's text.

The latest revision comes first, so that a document never stands without it. Its passages are cut again
once its text is whole.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Annotated, ClassVar, Final, Literal, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue

from loom.access import namespaces
from loom.errors import Rejected
from loom.extraction.formats import Format
from loom.ops.fields import Tags
from loom.ops.spec import Context
from loom.planes import cargo
from loom.planes.cargo import Cargo, Carried, Count, IdentityText, Key, Line, Moment, Reach, Sha256, Stamp
from loom.planes.knowledge import fields, indexing, rules, store
from loom.planes.knowledge.rules import Document, Revision
from loom.planes.knowledge.text import PART_CHARACTERS_MAX, Part
from loom.storage.interface import Transaction

PARTS_MAX: Final = 16
"""Parts of a text in one line, about half a million characters; a longer text has several lines."""

REVISION_MAX: Final = 2**31 - 1
OUTLINE_MAX: Final = 100_000
OUTLINE_TITLE_LENGTH_MAX: Final = 10_000
FIRST_LEVEL, LAST_LEVEL = 0, 64

FROM = (
    store.COLUMNS
    + """
WHERE d.org = :org AND (:every = 1 OR d.namespace IN (:namespaces)) AND d.document_id >= :least
ORDER BY d.document_id LIMIT :most
"""
)

COUNT = """
SELECT count(*) AS total FROM knowledge_document WHERE org = :org AND (:every = 1 OR namespace IN (:namespaces))
"""

NEXT_REVISION = store.REVISIONS + " AND revision <= :revision ORDER BY revision DESC LIMIT 1"

LAST_LINE = """
SELECT COALESCE(max(last_line), 0) AS last_line FROM knowledge_text
WHERE org = :org AND document_id = :document_id AND revision = :revision
"""

CONTENTS = """
SELECT part, content FROM knowledge_text
WHERE org = :org AND document_id = :document_id AND revision = :revision AND part > :after
ORDER BY part LIMIT :most
"""

PART_NUMBERS = """
SELECT part FROM knowledge_text
WHERE org = :org AND document_id = :document_id AND revision = :revision AND part >= :first AND part <= :last
"""


def _outline(outline: JsonValue) -> JsonValue:
    """Headings of a text, each its line, level and title."""
    if not isinstance(outline, list) or len(outline) > OUTLINE_MAX:
        raise ValueError(f"should be at most {OUTLINE_MAX} lists of a line, a level and a title")
    for entry in outline:
        match entry:
            case [int(line), int(level), str(title)] if (
                1 <= line <= cargo.COUNT_MAX
                and FIRST_LEVEL <= level <= LAST_LEVEL
                and len(title) <= OUTLINE_TITLE_LENGTH_MAX
            ):
                continue
            case _:
                raise ValueError("should be lists of a line, a level and a title")
    return outline


class RevisionPart(BaseModel):
    """One revision of a document, without its text."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    revision: Annotated[int, Field(ge=1, le=REVISION_MAX)]
    agent: IdentityText
    session_id: IdentityText = "-"
    run_id: IdentityText = "-"
    title: Annotated[str, Field(max_length=rules.TITLE_LENGTH_MAX)] = ""
    format: Format
    file_name: Annotated[str, Field(max_length=rules.NAME_LENGTH_MAX)] = ""
    content_sha256: Sha256
    byte_count: Count
    character_count: Count
    line_count: Count
    page_count: Count
    markdown: bool
    outline: Annotated[JsonValue, AfterValidator(_outline)]
    created_at: Moment


class TextPart(BaseModel):
    """A part of a revision's text; see `text.Part`."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    number: Count
    page: Count
    line: Annotated[int, Field(ge=1, le=cargo.COUNT_MAX)]
    character: Count
    text: Annotated[str, Field(min_length=1, max_length=PART_CHARACTERS_MAX)]


class DocumentLine(Line):
    """A document, one of its revisions, and some of that one's text."""

    KIND: ClassVar[str] = "document"

    kind: Literal["document"]
    document_id: Stamp
    namespace: IdentityText
    agent: IdentityText
    user_id: IdentityText
    session_id: IdentityText = "-"
    uri: Annotated[fields.Uri, Field(min_length=1)]
    latest: Annotated[int, Field(ge=1, le=REVISION_MAX)]
    version: Stamp
    title: Annotated[str, Field(max_length=rules.TITLE_LENGTH_MAX)] = ""
    tags: Tags = Field(default_factory=list[str])
    revision: RevisionPart
    parts: Annotated[list[TextPart], Field(max_length=PARTS_MAX)]


@dataclass(frozen=True, slots=True)
class Made:
    """A line as rows."""

    document: Document
    revision: Revision
    parts: Sequence[Part]


def read(tx: Transaction, reach: Reach, after: Key) -> Iterator[Carried]:
    """Lines after a place: a document, a revision and the number of its next part; revision 0 for after the last."""
    first, revision, part = (int(one) for one in after)

    def fetch(before: int) -> Sequence[Document]:
        rows = tx.rows(FROM, least=before + 1, most=cargo.AT_ONCE, **reach.params())
        return [store.document_of(row) for row in rows]

    for document in cargo.in_order(fetch, lambda one: one.document_id, first - 1 if revision else first):
        again = document.document_id == first and revision
        yield from lines_of(tx, document, (revision, part) if again else (document.revision, 0))


def lines_of(tx: Transaction, document: Document, place: tuple[int, int]) -> Iterator[Carried]:
    """A document's lines from a revision and part on, the latest revision first."""
    number, part = place
    while True:
        row = tx.row(NEXT_REVISION, document_id=document.document_id, revision=number)
        if row is None:
            return
        revision = store.revision_of(row)
        part = part if revision.revision == number else 0
        while part >= 0:
            found = store.parts(tx, (document.document_id, revision.revision), PARTS_MAX, (part, 0, 0))
            part = found[-1].number + 1 if len(found) == PARTS_MAX else -1
            going_on = (revision.revision, part) if part >= 0 else (revision.revision - 1, 0)
            length = sum(len(one.text) for one in found)
            yield Carried(line_of(document, revision, found), (document.document_id, *going_on), length)
        number, part = revision.revision - 1, 0


def line_of(document: Document, revision: Revision, parts: Sequence[Part]) -> DocumentLine:
    """A document, a revision and parts of its text as a line."""
    outline = json.loads(rules.outline_text(revision.outline))
    return DocumentLine.model_validate(
        cargo.fields_of(DocumentLine, document)
        | {
            "kind": "document",
            "latest": document.revision,
            "tags": list(document.tags),
            "revision": cargo.fields_of(RevisionPart, revision) | {"outline": outline},
            "parts": [cargo.fields_of(TextPart, part) for part in parts],
        }
    )


def ready(line: DocumentLine) -> Made:
    """The line as rows.

    Raises:
        Rejected: its revision is later than the document's latest, or its parts do not follow each other.
    """
    if line.revision.revision > line.latest:
        raise Rejected("revision: is later than the document's latest", field="revision")
    if line.document_id > line.version:
        raise Rejected("version: lies before the document's own id", field="version")
    parts = [Part(one.number, one.page, one.line, one.character, one.text) for one in line.parts]
    for before, part in pairwise(parts):
        if part.number != before.number + 1 or part.page < before.page or part.line < before.last_line:
            raise Rejected("parts: should follow each other", field="parts")
    document = Document(
        document_id=line.document_id,
        namespace=line.namespace,
        agent=line.agent,
        user_id=line.user_id,
        session_id=line.session_id,
        uri=line.uri,
        revision=line.latest,
        version=line.version,
        title=line.title,
        tags=tuple(sorted(set(line.tags))),
        state=rules.PENDING,
        reason="",
        cut_until=None,
        chunk_count=0,
        space="",
    )
    return Made(document, revision_of(line), parts)


def revision_of(line: DocumentLine) -> Revision:
    """The line's revision."""
    made = line.revision
    return Revision(
        document_id=line.document_id,
        revision=made.revision,
        agent=made.agent,
        session_id=made.session_id,
        run_id=made.run_id,
        title=made.title,
        format=made.format,
        file_name=made.file_name,
        content_sha256=made.content_sha256,
        byte_count=made.byte_count,
        character_count=made.character_count,
        line_count=made.line_count,
        page_count=made.page_count,
        markdown=made.markdown,
        outline=rules.outline_in(json.dumps(made.outline)),
        created_at=made.created_at,
    )


def take(ctx: Context, made: Made) -> bool:
    """Add what is missing of the document; what is here stays, unless the line's document is a later one."""
    document, revision = made.document, made.revision
    cargo.check_reached(ctx, document.namespace)
    cargo.check_not_ahead(ctx, document.version, field="version")
    store.lock(ctx.tx, document.namespace, document.user_id, document.uri)
    there = same_document(ctx.tx, document)
    head = later_head(there, made)
    latest = (head or there or document).revision
    if revision.revision > latest:
        raise Rejected("revision: is later than the document's latest here", field="revision")
    known = store.revision(ctx.tx, document.document_id, revision.revision)
    if known is not None and (known.content_sha256, known.created_at) != (revision.content_sha256, revision.created_at):
        raise Rejected("revision: is here with another content; this is another document", field="revision")
    new = missing(ctx.tx, made)
    if known is not None and not new and head is None:
        return False
    ctx.tx.outstrip(document.version)
    if head is not None:
        put_document(ctx.tx, there, head)
    if known is None:
        store.put_revision(ctx.tx, revision, new)
    else:
        store.put_parts(ctx.tx, revision, new)
    if revision.revision == latest:
        begin_when_whole(ctx.tx, revision)
    return True


def later_head(there: Document | None, made: Made) -> Document | None:
    """The line's document where it is later than the one here; None where that one stays.

    It stays, too, where the latest revision came to be while the export was written: this line does not have it.

    Raises:
        Rejected: the latest revision has to come first, or the document here has later ones.
    """
    document, brought = made.document, made.revision.revision
    if there is None:
        if brought != document.revision:
            raise Rejected("revision: the latest one is not here; import the lines in their order", field="revision")
        return document
    if document.version <= there.version:
        return None
    if document.revision < there.revision:
        raise Rejected("latest: the document here has later revisions; this is another document", field="latest")
    return document if document.revision in (there.revision, brought) else None


def same_document(tx: Transaction, document: Document) -> Document | None:
    """The document that the line is about, None when it is not here yet.

    Raises:
        Rejected: the uri is another document's, or the id another uri's.
    """
    there = store.exact(tx, document.namespace, document.user_id, document.uri)
    if there is not None and there.document_id != document.document_id:
        raise Rejected("uri: another document has this uri here", field="uri")
    if there is None and store.by_id(tx, document.document_id) is not None:
        raise Rejected("document_id: another uri has this id here", field="document_id")
    left = {"document_id": document.document_id, "revision": indexing.NO_REVISION, "most": 1}
    if there is None and tx.rows(store.GONE, **left):
        raise Rejected("document_id: it was deleted here and is still on its way out; try later", field="document_id")
    return there


def missing(tx: Transaction, made: Made) -> Sequence[Part]:
    """The parts that are not here yet."""
    if not made.parts:
        return ()
    rows = tx.rows(
        PART_NUMBERS,
        document_id=made.document.document_id,
        revision=made.revision.revision,
        first=made.parts[0].number,
        last=made.parts[-1].number,
    )
    there = {cast("int", row["part"]) for row in rows}
    return [part for part in made.parts if part.number not in there]


def put_document(tx: Transaction, there: Document | None, document: Document) -> None:
    """Write the document's row. Passages of the revision that was the latest are forgotten, if there is a later one."""
    if there is not None and there.revision == document.revision:
        document = replace(
            document,
            state=there.state,
            reason=there.reason,
            cut_until=there.cut_until,
            chunk_count=there.chunk_count,
            space=there.space,
        )
    elif there is not None:
        indexing.forget(tx, document.document_id, document.revision)
    store.put(tx, document)
    namespaces.touch(tx, document.namespace, document.version)


def begin_when_whole(tx: Transaction, revision: Revision) -> None:
    """Have the latest revision cut into passages, once all its text is here and that is not under way."""
    of = {"document_id": revision.document_id, "revision": revision.revision}
    last = tx.row(LAST_LINE, **of)
    document = store.by_id(tx, revision.document_id)
    if document is None or last is None or cast("int", last["last_line"]) < revision.line_count:
        return
    if document.chunk_count != 0 or document.cut_until is not None:
        return
    # Last, for it reads the whole text.
    if _character_count(tx, of) == revision.character_count:
        indexing.begin(tx, document)


def _character_count(tx: Transaction, of: Mapping[str, int]) -> int:
    """How many characters of a revision's text are here. Counted here, for engines do not agree on what a length is."""
    count, after = 0, -1
    while rows := tx.rows(CONTENTS, after=after, most=PARTS_MAX, **of):
        count += sum(len(cast("str", row["content"])) for row in rows)
        after = cast("int", rows[-1]["part"])
    return count


CARGO = Cargo(DocumentLine, (0, 0, 0), COUNT, read, ready, take)
