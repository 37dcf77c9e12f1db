"""Fields and answers that knowledge operations share."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from loom.errors import NotFound, Rejected
from loom.ledger.rules import Reader
from loom.ops.fields import Instant, ScopeWord, instant
from loom.ops.spec import Answer, Context, Prepare, Request
from loom.planes.knowledge import rules, store
from loom.planes.knowledge.rules import Document, Revision
from loom.storage.interface import Transaction

DOCUMENT_ID_LENGTH_MAX = 64

DocumentId = Annotated[str, Field(max_length=DOCUMENT_ID_LENGTH_MAX)]
Uri = Annotated[str, Field(max_length=rules.URI_LENGTH_MAX)]
StateWord = Literal["pending", "ready", "failed"]

ReadScopeField = Annotated[
    ScopeWord,
    Field(
        description="How far the read reaches across users: every user, this user_id, or this session; "
        "documents of no user are always read. A token that reaches less far wins."
    ),
]


class DocumentAnswer(Answer):
    """A document as every operation shows it."""

    document_id: Annotated[str, Field(description="Names the document through all its revisions.")]
    uri: Annotated[str, Field(description="Where it comes from; the same uri again is a new revision.")]
    title: Annotated[str, Field(description="Its title: as given, else its own, else its file's name.")]
    namespace: Annotated[str, Field(description="The namespace that holds it.")]
    agent: Annotated[str, Field(description="The agent that added this revision.")]
    user_id: Annotated[str, Field(description="The end user it belongs to; '-' for none.")]
    tags: Annotated[list[str], Field(description="Its tags, sorted.")]
    revision: Annotated[int, Field(description="The revision that is shown, from 1.")]
    state: Annotated[
        StateWord,
        Field(description="ready, pending while its index is being made, or failed with a reason; tried again."),
    ]
    reason: Annotated[str, Field(description="Why indexing failed; else empty.")]
    format: Annotated[str, Field(description="What the file was: markdown, plain, html, pdf or docx.")]
    content_sha256: Annotated[str, Field(description="Hash of the bytes that were added.")]
    byte_count: Annotated[int, Field(description="How many bytes were added.")]
    character_count: Annotated[int, Field(description="Characters of its text.")]
    line_count: Annotated[int, Field(description="Lines of its text, as knowledge.get counts them.")]
    page_count: Annotated[int, Field(description="Pages; 0 for a file without.")]
    passage_count: Annotated[int, Field(description="Passages that are indexed by their words so far.")]
    created_at: Annotated[Instant, Field(description="When this revision was added.")]


def shown(document: Document, revision: Revision) -> Mapping[str, object]:
    """What a `DocumentAnswer` says of a document and one of its revisions."""
    return {
        "document_id": document.shown_id,
        "uri": document.uri,
        "title": revision.title,
        "namespace": document.namespace,
        "agent": revision.agent,
        "user_id": document.user_id,
        "tags": list(document.tags),
        "revision": revision.revision,
        "state": document.state,
        "reason": document.reason,
        "format": revision.format,
        "content_sha256": revision.content_sha256,
        "byte_count": revision.byte_count,
        "character_count": revision.character_count,
        "line_count": revision.line_count,
        "page_count": revision.page_count,
        "passage_count": document.chunk_count,
        "created_at": instant(revision.created_at),
    }


def reader_of(bench: Context | Prepare, request: Request) -> Reader:
    """How far this call reaches; for a write, how far its token does."""
    return Reader(bench.scope, request.user_id, request.session_id)


def named_document(tx: Transaction, request: Request, reader: Reader, document_id: str, uri: str) -> Document:
    """The document that a request names by id or uri.

    Raises:
        Rejected: it names none.
        NotFound: there is none that the reader may see.
    """
    if not document_id and not uri:
        raise Rejected("document_id: send document_id or uri", field="document_id")
    number = rules.number_of(document_id) if document_id else None
    field = "document_id" if document_id else "uri"
    if document_id and number is None:
        raise NotFound("document_id: there is no such document here; knowledge.list shows them", field=field)
    found = store.seen(tx, request.namespace, reader, number, uri)
    if found is None:
        raise NotFound(f"{field}: there is no such document here; knowledge.list shows them", field=field)
    return found
