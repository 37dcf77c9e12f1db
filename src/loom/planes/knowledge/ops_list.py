"""knowledge.list: which documents there are, and how far their indexing is."""

from collections.abc import Mapping
from typing import Annotated, Final, cast

from pydantic import Field

from loom.access.caller import Role
from loom.errors import Rejected
from loom.ledger.rules import Reader
from loom.ops.fields import Tags
from loom.ops.spec import Answer, Context, Kind, Op, OpenRequest, Toolset
from loom.planes.knowledge import rules, store
from loom.planes.knowledge.fields import DocumentAnswer, ReadScopeField, StateWord, Uri, reader_of, shown
from loom.planes.knowledge.rules import Document
from loom.storage.interface import Transaction

LIST_MAX: Final = 500
SCANNED_AT_ONCE: Final = 500
SCANS_MAX: Final = 20
"""Pages of rows that one call looks at when tags are asked for; a cursor goes on behind them."""

CURSOR_LENGTH_MAX: Final = 19
STATES_MAX: Final = 3

LIST = (
    store.COLUMNS
    + "WHERE "
    + store.VISIBLE
    + """
    AND (:any_state = 1 OR d.state IN (:states)) AND substr(d.uri, 1, :prefix_length) = :prefix
    AND d.version < :before
ORDER BY d.version DESC LIMIT :most
"""
)
COUNTS = (
    """
SELECT d.state, count(*) AS count FROM knowledge_document d
WHERE """
    + store.VISIBLE
    + " GROUP BY d.state"
)
NEWEST: Final = (1 << 63) - 1


class ListRequest(OpenRequest):
    """What knowledge.list takes."""

    uri_prefix: Annotated[Uri, Field(description="Only documents whose uri begins with this text.")] = ""
    tags: Annotated[Tags | None, Field(description="Only documents that have all of these tags.")] = None
    states: Annotated[
        list[StateWord] | None,
        Field(max_length=STATES_MAX, description="Only documents in these states; null for all."),
    ] = None
    limit: Annotated[int, Field(ge=1, le=LIST_MAX, description="At most this many documents.")] = 50
    cursor: Annotated[
        str, Field(max_length=CURSOR_LENGTH_MAX, description="next_cursor of the answer before; empty to begin.")
    ] = ""
    read_scope: ReadScopeField = "namespace"


class ListAnswer(Answer):
    """What knowledge.list answers."""

    items: Annotated[list[DocumentAnswer], Field(description="The documents, the last changed first.")]
    count: Annotated[int, Field(description="How many this answer holds.")]
    ready: Annotated[int, Field(description="Documents of the namespace that are indexed, filters aside.")]
    pending: Annotated[int, Field(description="Documents whose index is being made.")]
    failed: Annotated[int, Field(description="Documents whose indexing failed, and is tried again.")]
    truncated: Annotated[bool, Field(description="Whether there are more after these.")]
    next_cursor: Annotated[str, Field(description="Send as cursor to read on; empty at the end.")]


def list_documents(ctx: Context, request: ListRequest) -> ListAnswer:
    """One page, and how many there are in each state."""
    reader = reader_of(ctx, request)
    found, more = _page(ctx.tx, request, reader)
    params = store.seen_params([request.namespace], reader)
    counts = {cast("str", row["state"]): cast("int", row["count"]) for row in ctx.tx.rows(COUNTS, **params)}
    return ListAnswer(
        items=[DocumentAnswer.model_validate(_shown(ctx.tx, document)) for document in found],
        count=len(found),
        ready=counts.get(rules.READY, 0),
        pending=counts.get(rules.PENDING, 0),
        failed=counts.get(rules.FAILED, 0),
        truncated=more > 0,
        next_cursor=str(more) if more else "",
    )


def _page(tx: Transaction, request: ListRequest, reader: Reader) -> tuple[list[Document], int]:
    """The documents of a page, and the version behind which there may be more; 0 when there is nothing more."""
    before = _before(request.cursor)
    wanted = set(request.tags or ())
    taken: list[Document] = []
    for _ in range(SCANS_MAX):
        rows = tx.rows(
            LIST,
            any_state=int(request.states is None),
            states=list(request.states or ("",)),
            prefix=request.uri_prefix,
            prefix_length=len(request.uri_prefix),
            before=before,
            most=SCANNED_AT_ONCE + 1,
            **store.seen_params([request.namespace], reader),
        )
        for place, row in enumerate(rows[:SCANNED_AT_ONCE]):
            document = store.document_of(row)
            before = document.version
            if wanted <= set(document.tags):
                taken.append(document)
            if len(taken) == request.limit:
                return taken, before if place + 1 < len(rows) else 0
        if len(rows) <= SCANNED_AT_ONCE:
            return taken, 0
    return taken, before


def _before(cursor: str) -> int:
    if not cursor:
        return NEWEST
    number = int(cursor) if cursor.isascii() and cursor.isdecimal() else NEWEST + 1
    if number > NEWEST:
        raise Rejected("cursor: not of an earlier answer; begin again without it", field="cursor")
    return number


def _shown(tx: Transaction, document: Document) -> Mapping[str, object]:
    revision = store.revision(tx, document.document_id, document.revision)
    if revision is None:
        raise LookupError("a document without its revision")
    return shown(document, revision)


LIST_OP = Op(
    name="knowledge.list",
    summary="List documents with their revision, size and how far their indexing is.",
    takes=ListRequest,
    gives=ListAnswer,
    role=Role.VIEWER,
    kind=Kind.READ,
    run=list_documents,
    example={"limit": 20},
    toolsets=frozenset({Toolset.ALL}),
)
