"""Where documents are kept: their rows, revisions, texts and passages."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from loom.access import namespaces
from loom.ledger import conditions
from loom.ledger.rules import Reader
from loom.planes.knowledge import rules
from loom.planes.knowledge.chunks import Chunk
from loom.planes.knowledge.rules import Document, Revision, State
from loom.planes.knowledge.text import Part
from loom.storage.interface import Param, Row, Transaction, Value

VISIBLE = "d.org = :org AND d.namespace IN (:namespaces) AND " + conditions.reached("d")
"""What a reader may see of `knowledge_document d`; every list, read and search goes through it."""

COLUMNS = """
SELECT d.document_id, d.namespace, d.agent, d.user_id, d.session_id, d.uri, d.revision, d.version, d.title, d.tags,
    d.state, d.reason, d.cut_until, d.chunk_count, d.space
FROM knowledge_document d
"""

EXACT = COLUMNS + "WHERE d.org = :org AND d.namespace = :namespace AND d.user_id = :user_id AND d.uri_sha256 = :uri"
BY_ID = COLUMNS + "WHERE d.org = :org AND d.document_id = :document_id"
VISIBLE_BY_ID = COLUMNS + "WHERE " + VISIBLE + " AND d.document_id = :document_id"
VISIBLE_BY_URI = (
    COLUMNS
    + "WHERE "
    + VISIBLE
    + """
    AND d.uri_sha256 = :uri
ORDER BY CASE WHEN d.user_id = :reader THEN 0 WHEN d.user_id = '-' THEN 1 ELSE 2 END, d.version DESC LIMIT 1
"""
)

PUT = """
INSERT INTO knowledge_document (org, document_id, namespace, agent, user_id, session_id, uri, uri_sha256, revision,
    version, title, tags, state, reason, cut_until, chunk_count, space)
VALUES (:org, :document_id, :namespace, :agent, :user_id, :session_id, :uri, :uri_sha256, :revision,
    :version, :title, :tags, :state, :reason, :cut_until, :chunk_count, :space)
ON CONFLICT (org, document_id) DO UPDATE
SET agent = excluded.agent, session_id = excluded.session_id, revision = excluded.revision,
    version = excluded.version, title = excluded.title, tags = excluded.tags, state = excluded.state,
    reason = excluded.reason, cut_until = excluded.cut_until, chunk_count = excluded.chunk_count, space = excluded.space
"""

PUT_REVISION = """
INSERT INTO knowledge_revision (org, document_id, revision, agent, session_id, run_id, title, format, file_name,
    content_sha256, byte_count, character_count, line_count, page_count, markdown, outline, created_at)
VALUES (:org, :document_id, :revision, :agent, :session_id, :run_id, :title, :format, :file_name,
    :content_sha256, :byte_count, :character_count, :line_count, :page_count, :markdown, :outline, :created_at)
"""

REVISIONS = """
SELECT document_id, revision, agent, session_id, run_id, title, format, file_name, content_sha256, byte_count,
    character_count, line_count, page_count, markdown, outline, created_at
FROM knowledge_revision WHERE org = :org AND document_id = :document_id
"""
REVISION = REVISIONS + " AND revision = :revision"
NEWEST_REVISIONS = REVISIONS + " ORDER BY revision DESC LIMIT :most"

PUT_PART = """
INSERT INTO knowledge_text (org, document_id, revision, part, page, first_line, first_character, last_line, content)
VALUES (:org, :document_id, :revision, :part, :page, :first_line, :first_character, :last_line, :content)
"""

PARTS = """
SELECT part, page, first_line, first_character, content FROM knowledge_text
WHERE org = :org AND document_id = :document_id AND revision = :revision
    AND part >= :part AND last_line >= :line AND (:page = 0 OR page >= :page)
ORDER BY part LIMIT :most
"""

PUT_CHUNK = """
INSERT INTO knowledge_chunk (org, chunk_id, document_id, revision, ordinal, namespace, headings, first_line, last_line,
    first_page, last_page, content, space)
VALUES (:org, :chunk_id, :document_id, :revision, :ordinal, :namespace, :headings, :first_line, :last_line,
    :first_page, :last_page, :content, :space)
"""

CHUNKS = """
SELECT c.chunk_id, c.document_id, c.ordinal, c.headings, c.first_line, c.last_line, c.first_page, c.last_page,
    c.content, d.title AS document_title
FROM knowledge_chunk c
JOIN knowledge_document d ON d.org = c.org AND d.document_id = c.document_id AND d.revision = c.revision
"""

UNEMBEDDED = (
    CHUNKS
    + """
WHERE c.org = :org AND c.document_id = :document_id AND c.space <> :space ORDER BY c.ordinal LIMIT :most
"""
)

CHUNKS_BY_ID = CHUNKS.replace("SELECT", "SELECT c.namespace,", 1) + "WHERE c.org = :org AND c.chunk_id IN (:ids)"
CHUNKS_AFTER = """
SELECT chunk_id, namespace FROM knowledge_chunk WHERE org = :org AND chunk_id > :after ORDER BY chunk_id LIMIT :most
"""
CHUNKS_TOTAL = "SELECT count(*) AS total FROM knowledge_chunk WHERE org = :org"

EMBEDDED = "UPDATE knowledge_chunk SET space = :space WHERE org = :org AND chunk_id = :chunk_id"

GONE = """
SELECT chunk_id, namespace FROM knowledge_chunk
WHERE org = :org AND document_id = :document_id AND revision <> :revision ORDER BY +chunk_id LIMIT :most
"""
DROP_CHUNKS = "DELETE FROM knowledge_chunk WHERE org = :org AND chunk_id IN (:ids)"
BLANK_CHUNKS = """
UPDATE knowledge_chunk SET content = '', headings = '[]'
WHERE org = :org AND document_id = :document_id AND revision <> :revision
"""

DROP_DOCUMENT = (
    "DELETE FROM knowledge_document WHERE org = :org AND document_id = :document_id",
    "DELETE FROM knowledge_revision WHERE org = :org AND document_id = :document_id",
    "DELETE FROM knowledge_text WHERE org = :org AND document_id = :document_id",
)

DROP_NAMESPACE = (
    """
DELETE FROM knowledge_revision WHERE org = :org
    AND document_id IN (SELECT document_id FROM knowledge_document WHERE org = :org AND namespace = :namespace)
""",
    """
DELETE FROM knowledge_text WHERE org = :org
    AND document_id IN (SELECT document_id FROM knowledge_document WHERE org = :org AND namespace = :namespace)
""",
    "DELETE FROM knowledge_chunk WHERE org = :org AND namespace = :namespace",
    "DELETE FROM knowledge_upload WHERE org = :org AND namespace = :namespace",
)
DROP_DOCUMENTS = "DELETE FROM knowledge_document WHERE org = :org AND namespace = :namespace"


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A passage as it is stored, with its document's title."""

    chunk_id: int
    document_id: int
    ordinal: int
    chunk: Chunk
    title: str


def lock(tx: Transaction, namespace: str, user_id: str, uri: str) -> None:
    """Hold the uri against every other writer until the transaction ends; taken before the document is read."""
    namespaces.enter(tx, namespace)
    tx.lock("knowledge", namespace, user_id, uri)


def exact(tx: Transaction, namespace: str, user_id: str, uri: str) -> Document | None:
    """The document of exactly this user and uri."""
    row = tx.row(EXACT, namespace=namespace, user_id=user_id, uri=rules.sha256(uri.encode()))
    return None if row is None else document_of(row)


def by_id(tx: Transaction, document_id: int) -> Document | None:
    """The document of this id, whoever may see it; for jobs."""
    row = tx.row(BY_ID, document_id=document_id)
    return None if row is None else document_of(row)


def seen_params(namespaces: Sequence[str], reader: Reader) -> dict[str, Param]:
    """The parameters of `VISIBLE`."""
    return {"namespaces": list(namespaces), **conditions.reach_params(reader)}


def seen(tx: Transaction, namespace: str, reader: Reader, document_id: int | None, uri: str) -> Document | None:
    """The document a reader means, by id or else by uri: the reader's own, then nobody's, then the latest."""
    params = seen_params([namespace], reader)
    if document_id is not None:
        row = tx.row(VISIBLE_BY_ID, document_id=document_id, **params)
    else:
        row = tx.row(VISIBLE_BY_URI, uri=rules.sha256(uri.encode()), **params)
    return None if row is None else document_of(row)


def put(tx: Transaction, document: Document) -> None:
    """Write the document's row."""
    tx.run(
        PUT,
        document_id=document.document_id,
        namespace=document.namespace,
        agent=document.agent,
        user_id=document.user_id,
        session_id=document.session_id,
        uri=document.uri,
        uri_sha256=rules.sha256(document.uri.encode()),
        revision=document.revision,
        version=document.version,
        title=document.title,
        tags=json.dumps(list(document.tags), ensure_ascii=False),
        state=document.state,
        reason=document.reason,
        cut_until=rules.place_text(document.cut_until),
        chunk_count=document.chunk_count,
        space=document.space,
    )


def put_revision(tx: Transaction, made: Revision, parts: Sequence[Part]) -> None:
    """Write a revision with its text."""
    tx.run(
        PUT_REVISION,
        document_id=made.document_id,
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
        markdown=int(made.markdown),
        outline=rules.outline_text(made.outline),
        created_at=made.created_at,
    )
    put_parts(tx, made, parts)


def put_parts(tx: Transaction, made: Revision, parts: Sequence[Part]) -> None:
    """Write parts of a revision's text."""
    tx.run_many(PUT_PART, (_part_params(made, part) for part in parts))


def _part_params(made: Revision, part: Part) -> Mapping[str, Value]:
    return {
        "document_id": made.document_id,
        "revision": made.revision,
        "part": part.number,
        "page": part.page,
        "first_line": part.line,
        "first_character": part.character,
        "last_line": part.last_line,
        "content": part.text,
    }


def revision(tx: Transaction, document_id: int, number: int) -> Revision | None:
    """One revision, or None."""
    row = tx.row(REVISION, document_id=document_id, revision=number)
    return None if row is None else revision_of(row)


def revisions(tx: Transaction, document_id: int, most: int) -> list[Revision]:
    """The newest revisions, the latest first."""
    return [revision_of(row) for row in tx.rows(NEWEST_REVISIONS, document_id=document_id, most=most)]


def parts(tx: Transaction, of: tuple[int, int], most: int, first: tuple[int, int, int]) -> list[Part]:
    """Parts of a text in order, at most `most`.

    Args:
        tx: a transaction.
        of: document and revision.
        most: at most this many.
        first: begin with this part, line and page; 0 for the first.
    """
    part, line, page = first
    rows = tx.rows(PARTS, document_id=of[0], revision=of[1], part=part, line=line, page=page, most=most)
    return [
        Part(
            cast("int", row["part"]),
            cast("int", row["page"]),
            cast("int", row["first_line"]),
            cast("int", row["first_character"]),
            cast("str", row["content"]),
        )
        for row in rows
    ]


def put_chunks(tx: Transaction, document: Document, made: Iterable[tuple[int, Chunk]], start: int, space: str) -> None:
    """Write passages with their ids, numbered from `start`."""
    rows = [
        {
            "chunk_id": chunk_id,
            "document_id": document.document_id,
            "revision": document.revision,
            "ordinal": ordinal,
            "namespace": document.namespace,
            "headings": json.dumps(chunk.headings, ensure_ascii=False),
            "first_line": chunk.first_line,
            "last_line": chunk.last_line,
            "first_page": chunk.first_page,
            "last_page": chunk.last_page,
            "content": chunk.text,
            "space": space,
        }
        for ordinal, (chunk_id, chunk) in enumerate(made, start)
    ]
    tx.run_many(PUT_CHUNK, rows)


def unembedded(tx: Transaction, document_id: int, space: str, most: int) -> list[StoredChunk]:
    """Passages of the latest revision without vectors of `space`, in order."""
    return [chunk_of(row) for row in tx.rows(UNEMBEDDED, document_id=document_id, space=space, most=most)]


def chunk_of(row: Row) -> StoredChunk:
    """A passage from a row of `CHUNKS`."""
    chunk = Chunk(
        tuple(cast("list[str]", json.loads(cast("str", row["headings"])))),
        cast("int", row["first_line"]),
        cast("int", row["last_line"]),
        cast("int", row["first_page"]),
        cast("int", row["last_page"]),
        cast("str", row["content"]),
    )
    return StoredChunk(
        cast("int", row["chunk_id"]),
        cast("int", row["document_id"]),
        cast("int", row["ordinal"]),
        chunk,
        cast("str", row["document_title"]),
    )


def document_of(row: Row) -> Document:
    """A document from a row of `COLUMNS`."""
    return Document(
        document_id=cast("int", row["document_id"]),
        namespace=cast("str", row["namespace"]),
        agent=cast("str", row["agent"]),
        user_id=cast("str", row["user_id"]),
        session_id=cast("str", row["session_id"]),
        uri=cast("str", row["uri"]),
        revision=cast("int", row["revision"]),
        version=cast("int", row["version"]),
        title=cast("str", row["title"]),
        tags=tuple(cast("list[str]", json.loads(cast("str", row["tags"])))),
        state=cast("State", row["state"]),
        reason=cast("str", row["reason"]),
        cut_until=rules.place_in(cast("str", row["cut_until"])),
        chunk_count=cast("int", row["chunk_count"]),
        space=cast("str", row["space"]),
    )


def revision_of(row: Row) -> Revision:
    """A revision from a row of `REVISIONS`."""
    return Revision(
        document_id=cast("int", row["document_id"]),
        revision=cast("int", row["revision"]),
        agent=cast("str", row["agent"]),
        session_id=cast("str", row["session_id"]),
        run_id=cast("str", row["run_id"]),
        title=cast("str", row["title"]),
        format=cast("str", row["format"]),
        file_name=cast("str", row["file_name"]),
        content_sha256=cast("str", row["content_sha256"]),
        byte_count=cast("int", row["byte_count"]),
        character_count=cast("int", row["character_count"]),
        line_count=cast("int", row["line_count"]),
        page_count=cast("int", row["page_count"]),
        markdown=bool(row["markdown"]),
        outline=rules.outline_in(cast("str", row["outline"])),
        created_at=cast("int", row["created_at"]),
    )
