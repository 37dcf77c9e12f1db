# Generated from the registry by `make docs`. Do not edit.
"""Fields of the operations of `profile`."""

from typing import Literal, NotRequired, Required

from loom.canonical import Json
from loom.edges.client.core import Identity


class ProfileActivityFields(Identity):
    """What `profile.activity` takes."""

    lookback_days: NotRequired[int]
    """How many days back to look; more than 30 counts as 30."""


class ProfileAppendFields(Identity):
    """What `profile.append` takes."""

    label: Required[str]
    """Name of the section to add to; made with the default cap when it does not exist."""
    addition: Required[str]
    """Text to put after what the section holds."""
    separator: NotRequired[str]
    """Text between what was there and the addition; left out of a section that is new."""


class ProfileEvidenceFields(Identity):
    """What `profile.evidence` takes."""

    property: NotRequired[str]
    """Only this property; empty for every one."""
    read_scope: NotRequired[Literal["namespace", "own_user"]]
    """Kept for symmetry with other reads: the one user named is read, whatever is sent here."""


class ProfileListFields(Identity):
    """What `profile.list` takes."""

    read_scope: NotRequired[Literal["namespace", "own_user", "own_session"]]
    """Whose users' sections: everybody's, or one's own beside those of no user."""


class ProfileReadsFields(Identity):
    """What `profile.reads` takes."""

    lookback_days: NotRequired[int]
    """How many days to show, today among them; more than 30 counts as 30."""


class ProfileRebuildFields(Identity):
    """What `profile.rebuild` takes."""


class ProfileRenderFields(Identity):
    """What `profile.render` takes."""

    format: NotRequired[str]
    """How to write the fragment down: 'xml' or 'markdown'."""
    labels: NotRequired[list[str] | None]
    """Only these sections, in this order; unknown ones are left out. Null for all, by label."""
    scope: NotRequired[str]
    """Whose sections: 'namespace' for every agent's, 'this_agent' for the caller's own."""
    read_scope: NotRequired[Literal["namespace", "own_user", "own_session"]]
    """Whose users' sections: everybody's, or one's own beside those of no user. The token narrows..."""


class ProfileReplaceFields(Identity):
    """What `profile.replace` takes."""

    label: Required[str]
    """Name of the section to change; 404 when it does not exist."""
    old: Required[str]
    """Text to look for; each occurrence is changed, and 422 when there is none."""
    new: Required[str]
    """Text to put in its place; empty to take the occurrences out."""


class ProfileSchemaDeleteFields(Identity):
    """What `profile.schema_delete` takes."""

    if_match_sha256: NotRequired[str]
    """Change it only while schema_sha256 is this, else 409; empty for no check."""


class ProfileSchemaGetFields(Identity):
    """What `profile.schema_get` takes."""

    version_text: NotRequired[str]
    """Read this version of it; empty for the present one."""


class ProfileSchemaSetFields(Identity):
    """What `profile.schema_set` takes."""

    json_schema: Required[dict[str, Json]]
    """A JSON Schema, draft 2020-12, of type object: at most 65,536 bytes and 200 properties...."""
    if_match_sha256: NotRequired[str]
    """Change it only while schema_sha256 is this, else 409; empty for no check."""


class ProfileSetFields(Identity):
    """What `profile.set` takes."""

    label: Required[str]
    """Name of the section, for instance persona; an existing one is replaced."""
    value: Required[str]
    """The section's text from now on, all of it."""
    char_limit: NotRequired[int]
    """Cap on the value's length as JSON, in characters; a longer value is refused."""
    source_trace: NotRequired[str]
    """Says where the text comes from; may not begin with memory.delete_version:, which marks a..."""
    if_match_sha256: NotRequired[str]
    """Write only over the version whose content_sha256 this is, else 409; empty to write anyway."""


class ProfileStructuredFields(Identity):
    """What `profile.structured` takes."""

    read_scope: NotRequired[Literal["namespace", "own_user"]]
    """Kept for symmetry with other reads: the one user named is read, whatever is sent here."""


class ProfileUsersFields(Identity):
    """What `profile.users` takes."""

    limit: NotRequired[int]
    """At most this many users."""
    cursor: NotRequired[str]
    """next_cursor of the answer before; empty for the first."""
