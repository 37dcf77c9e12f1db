"""Documents that another plane hands on, in its own transaction: a repository's README and pages.

They belong to their namespace and to no user. Their passages and vectors are left to this plane's jobs.
"""

from typing import Final

from loom.access import namespaces
from loom.extraction import formats
from loom.extraction.reading import Extracted, Segment
from loom.ops.spec import NONE
from loom.planes.knowledge import indexing, rules, store, text
from loom.planes.knowledge.rules import Document, Revision
from loom.storage.interface import Transaction

SEGMENT_CHARACTERS: Final = 64 * 1024


def keep_text(tx: Transaction, namespace: str, uri: str, content: str) -> None:
    """Keep a text under its uri, as a new revision where it changed."""
    uri = uri[: rules.URI_LENGTH_MAX]
    raw = content.encode()
    digest = rules.sha256(raw)
    store.lock(tx, namespace, NONE, uri)
    known = store.exact(tx, namespace, NONE, uri)
    latest = store.revision(tx, known.document_id, known.revision) if known else None
    if latest is not None and latest.content_sha256 == digest:
        return
    kind = formats.format_of(raw, "", uri) if formats.is_named(uri) else formats.PLAIN
    starts = range(0, len(content), SEGMENT_CHARACTERS)
    extracted = Extracted(
        "", kind == formats.MARKDOWN, [Segment(0, content[start : start + SEGMENT_CHARACTERS]) for start in starts]
    )
    parts = list(text.parts(extracted.segments))
    version = tx.stamp()
    document = Document(
        document_id=known.document_id if known else version,
        namespace=namespace,
        agent=NONE,
        user_id=NONE,
        session_id=NONE,
        uri=uri,
        revision=known.revision + 1 if known else 1,
        version=version,
        title=rules.title_of(extracted, parts, "", uri),
        tags=known.tags if known else (),
        state=rules.PENDING,
        reason="",
        cut_until=None,
        chunk_count=0,
        space="",
    )
    revision = Revision(
        document_id=document.document_id,
        revision=document.revision,
        agent=NONE,
        session_id=NONE,
        run_id=NONE,
        title=document.title,
        format=kind,
        file_name=uri.rpartition("/")[2][: rules.NAME_LENGTH_MAX],
        content_sha256=digest,
        byte_count=len(raw),
        character_count=len(content),
        line_count=parts[-1].last_line if parts else 0,
        page_count=0,
        markdown=extracted.markdown,
        created_at=version // 1000,
    )
    store.put_revision(tx, revision, parts)
    if known is not None:
        indexing.forget(tx, known.document_id, document.revision)
    indexing.begin(tx, document)
    namespaces.touch(tx, namespace, version)


def forget_text(tx: Transaction, namespace: str, uri: str) -> None:
    """Forget the text under a uri; no error when there is none."""
    uri = uri[: rules.URI_LENGTH_MAX]
    store.lock(tx, namespace, NONE, uri)
    known = store.exact(tx, namespace, NONE, uri)
    if known is not None:
        indexing.delete(tx, known)
