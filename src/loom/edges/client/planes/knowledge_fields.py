# Generated from the registry by `make docs`. Do not edit.
"""Fields of the operations of `knowledge`."""

from typing import Literal, NotRequired, Required

from loom.edges.client.core import Identity


class KnowledgeAddFields(Identity):
    """What `knowledge.add` takes."""

    text: NotRequired[str]
    """The content as text: Markdown unless said otherwise."""
    content_base64: NotRequired[str]
    """Instead of text: a file in base64, at most 2 MiB of it."""
    upload_id: NotRequired[str]
    """Instead of both: a file that knowledge.upload received."""
    media_type: NotRequired[str]
    """text/markdown, text/plain, text/html, application/pdf or Word's; empty to tell by the name..."""
    file_name: NotRequired[str]
    """The file's name, which tells its format."""
    title: NotRequired[str]
    """What to call it; empty for its own title."""
    uri: NotRequired[str]
    """Where it comes from. The same uri again is a new revision; empty to go by the content."""
    tags: NotRequired[list[str] | None]
    """Words to filter by; null leaves those of the document as they are."""


class KnowledgeDeleteFields(Identity):
    """What `knowledge.delete` takes."""

    document_id: NotRequired[str]
    """The document to delete; or name its uri."""
    uri: NotRequired[str]
    """The uri of the document to delete, when document_id is empty."""


class KnowledgeGetFields(Identity):
    """What `knowledge.get` takes."""

    document_id: NotRequired[str]
    """The document; or name its uri."""
    uri: NotRequired[str]
    """The document's uri, when document_id is empty."""
    revision: NotRequired[int]
    """Which revision; 0 for the latest."""
    first_line: NotRequired[int]
    """Read from this line on; next_line of an answer goes on."""
    first_character: NotRequired[int]
    """Begin so far into that line; next_character of an answer."""
    line_count: NotRequired[int]
    """At most this many lines."""
    page: NotRequired[int]
    """Read this page alone; 0 for no page."""
    characters_max: NotRequired[int]
    """At most this many characters of text."""
    read_scope: NotRequired[Literal["namespace", "own_user", "own_session"]]
    """How far the read reaches across users: every user, this user_id, or this session; documents..."""


class KnowledgeListFields(Identity):
    """What `knowledge.list` takes."""

    uri_prefix: NotRequired[str]
    """Only documents whose uri begins with this text."""
    tags: NotRequired[list[str] | None]
    """Only documents that have all of these tags."""
    states: NotRequired[list[Literal["pending", "ready", "failed"]] | None]
    """Only documents in these states; null for all."""
    limit: NotRequired[int]
    """At most this many documents."""
    cursor: NotRequired[str]
    """next_cursor of the answer before; empty to begin."""
    read_scope: NotRequired[Literal["namespace", "own_user", "own_session"]]
    """How far the read reaches across users: every user, this user_id, or this session; documents..."""


class KnowledgeSearchFields(Identity):
    """What `knowledge.search` takes."""

    query: Required[str]
    """What to look for, in plain words. Nothing in it is syntax."""
    top_k: NotRequired[int]
    """At most this many passages, 1 to 100."""
    per_document: NotRequired[int]
    """At most this many passages of one document."""
    tags: NotRequired[list[str] | None]
    """Only documents that have all of these tags."""
    document_id: NotRequired[str]
    """Only passages of this document; empty for any."""
    uri: NotRequired[str]
    """Only passages of the document with this uri; empty for any."""
    namespace_scope: NotRequired[Literal["this", "all_mine"]]
    """this: the named namespace alone. all_mine: the caller's other memory namespaces as well."""
    bodies: NotRequired[Literal["full", "excerpt", "none"]]
    """How much of each passage: all, its first 600 characters, or only where it stands."""
    read_scope: NotRequired[Literal["namespace", "own_user", "own_session"]]
    """How far the read reaches across users: every user, this user_id, or this session; documents..."""


class KnowledgeUploadFields(Identity):
    """What `knowledge.upload` takes."""

    upload_id: NotRequired[str]
    """The upload, as the first part's answer named it."""
    part: NotRequired[int]
    """The part's place, from 0; sent again it replaces."""
    content_base64: NotRequired[str]
    """The part, in base64; at most 2 MiB of the file."""
    discard: NotRequired[bool]
    """Forget the upload instead; content_base64 is not needed."""
