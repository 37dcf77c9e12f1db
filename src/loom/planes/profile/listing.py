"""profile.list: the sections one by one, with the room each has left."""

from typing import Annotated

from pydantic import Field

from loom.access.caller import Role
from loom.ledger.rules import Item, Reader
from loom.ops.fields import Instant, ScopeWord, instant
from loom.ops.spec import Answer, Context, Kind, Op, Request
from loom.planes.profile import rules, store
from loom.retrieval import budget


class ListRequest(Request):
    """What profile.list takes."""

    read_scope: Annotated[
        ScopeWord, Field(description="Whose users' sections: everybody's, or one's own beside those of no user.")
    ] = "namespace"


class SectionShown(Answer):
    """One section, without its whole text."""

    label: Annotated[str, Field(description="Its name.")]
    agent: Annotated[str, Field(description="The agent whose it is.")]
    user_id: Annotated[str, Field(description="The end user it is about; '-' for none.")]
    excerpt: Annotated[str, Field(description="The first 200 characters of its text.")]
    value_length: Annotated[int, Field(description="Characters of its value as JSON, which char_limit caps.")]
    char_limit: Annotated[int | None, Field(description="The cap; null for none.")]
    version_text: Annotated[str, Field(description="Its live version.")]
    content_sha256: Annotated[str, Field(description="Hash of its value; send it as if_match_sha256 to change it.")]
    written_at: Annotated[Instant, Field(description="When it was written last.")]
    pinned: Annotated[bool, Field(description="Whether it is pinned.")]
    lock_mode: Annotated[str, Field(description="Empty, no_delete or read_only.")]


class ListAnswer(Answer):
    """What profile.list answers."""

    sections: Annotated[
        list[SectionShown], Field(description="At most 1,000 sections, by label; those that profile.render shows.")
    ]
    truncated: Annotated[bool, Field(description="Whether there are more.")]


def list_sections(ctx: Context, request: ListRequest) -> ListAnswer:
    """Show what the reader may see, whoever's it is."""
    reader = Reader(ctx.scope, request.user_id, request.session_id)
    found = store.sections(ctx.tx, request.namespace, None, reader, None, ctx.now_us)
    shown = found[: store.SECTIONS_MAX]
    return ListAnswer(sections=[_shown(section) for section in shown], truncated=len(found) > len(shown))


def _shown(section: Item) -> SectionShown:
    head = section.head
    return SectionShown(
        label=section.memory_key,
        agent=section.place.agent,
        user_id=section.place.user_id,
        excerpt=budget.excerpt(rules.text_of(section)),
        value_length=head.value_length,
        char_limit=head.attributes.char_limit,
        version_text=str(head.version),
        content_sha256=head.content_sha256,
        written_at=instant(head.created_at),
        pinned=section.pinned,
        lock_mode=section.lock_mode,
    )


LIST = Op(
    name="profile.list",
    summary="List the profile's sections with the room each has left; profile.render reads them as one text.",
    takes=ListRequest,
    gives=ListAnswer,
    role=Role.VIEWER,
    kind=Kind.READ,
    run=list_sections,
    example={},
    toolsets=frozenset(),
)
