"""knowledge.delete: a document and all its revisions, for good."""

from typing import Annotated

from pydantic import Field

from loom.access import namespaces
from loom.access.caller import Role
from loom.errors import NotFound
from loom.ops import idempotency
from loom.ops.spec import Answer, Audited, Context, Kind, Op, OpenRequest
from loom.planes.knowledge import indexing, store
from loom.planes.knowledge.fields import DocumentId, Uri, named_document, reader_of


class DeleteRequest(OpenRequest):
    """What knowledge.delete takes."""

    document_id: Annotated[DocumentId, Field(description="The document to delete; or name its uri.")] = ""
    uri: Annotated[Uri, Field(description="The uri of the document to delete, when document_id is empty.")] = ""


class DeleteAnswer(Answer):
    """What knowledge.delete answers."""

    document_id: Annotated[str, Field(description="The document that is gone.")]
    uri: Annotated[str, Field(description="Its uri, which is free again.")]
    revisions_deleted: Annotated[int, Field(description="How many revisions went with it.")]


def delete(ctx: Context, request: DeleteRequest) -> DeleteAnswer:
    """Delete a document."""
    reader = reader_of(ctx, request)
    found = named_document(ctx.tx, request, reader, request.document_id, request.uri)
    store.lock(ctx.tx, found.namespace, found.user_id, found.uri)
    # Its latest revision may be another one by now.
    document = named_document(ctx.tx, request, reader, found.shown_id, "")
    indexing.delete(ctx.tx, document)
    idempotency.forget_text(ctx.tx, "knowledge.add", {"document_id": document.shown_id}, "title", "tags")
    namespaces.touch(ctx.tx, document.namespace, ctx.tx.stamp())
    return DeleteAnswer(document_id=document.shown_id, uri=document.uri, revisions_deleted=document.revision)


DELETE = Op(
    name="knowledge.delete",
    summary="Delete a document with every revision of it, for good; nothing finds it any more.",
    takes=DeleteRequest,
    gives=DeleteAnswer,
    role=Role.WRITER,
    kind=Kind.IDEMPOTENT,
    run=delete,
    example={"uri": "docs/guide.md"},
    raises=(NotFound,),
    destructive=True,
    audited=Audited(about=("document_id",), outcome=("revisions_deleted",)),
)
