"""What memory.set_from_messages takes and answers."""

from typing import Annotated, ClassVar, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, WithJsonSchema

from loom.errors import TooLong
from loom.ops.fields import Instant, Tags, microseconds
from loom.ops.spec import IDENTITY_LENGTH_MAX, NONE, Answer, Request
from loom.ops.text_checks import has_control
from loom.planes.memory.claims import Turn
from loom.planes.memory.fields import Sensitivity

MESSAGES_MAX: Final = 200
BLOCKS_MAX: Final = 200
TEXT_LENGTH_MAX: Final = 200_000
"""Characters that all the messages of one call may say."""

MESSAGE_ID_LENGTH_MAX: Final = 256
ROLE_LENGTH_MAX: Final = 64
NAME_LENGTH_MAX: Final = 256

SILENT_ROLES: Final = frozenset({"system", "developer", "tool", "function"})
"""Whose messages nobody said to anybody: they are not read."""

CONTENT_SCHEMA: Final[dict[str, object]] = {
    "anyOf": [{"type": "string"}, {"type": "array", "maxItems": BLOCKS_MAX, "items": {"type": "object"}}]
}


def _text_or_blocks(content: JsonValue) -> JsonValue:
    if isinstance(content, str):
        return content
    if not isinstance(content, list) or not all(isinstance(block, dict) for block in content):
        raise ValueError("should be a text, or a list of blocks, each an object with a type")
    if len(content) > BLOCKS_MAX:
        raise ValueError(f"at most {BLOCKS_MAX} blocks")
    return content


def _without_control(name: str) -> str:
    if has_control(name):
        raise ValueError("control characters are not allowed")
    return "" if name == NONE else name


class SaidMessage(BaseModel):
    """One message, as chat APIs spell it."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    role: Annotated[
        str,
        Field(
            min_length=1,
            max_length=ROLE_LENGTH_MAX,
            description="user, assistant or another word; what system, developer, tool or function say is not read.",
        ),
    ]
    content: Annotated[
        JsonValue,
        AfterValidator(_text_or_blocks),
        WithJsonSchema(dict(CONTENT_SCHEMA)),
        Field(description="A text, or blocks as chat APIs have them, of which the text is read."),
    ]
    id: Annotated[
        str,
        Field(max_length=MESSAGE_ID_LENGTH_MAX, description="Names the message in traces; empty for its place."),
        AfterValidator(_without_control),
    ] = ""
    time: Annotated[
        Instant | None,
        Field(description='When it was said, from which "yesterday" is counted; null for now.'),
    ] = None
    name: Annotated[
        str, Field(max_length=NAME_LENGTH_MAX, description="Who speaks, by name, where the role does not say it.")
    ] = ""

    def text(self) -> str:
        """What was said."""
        if isinstance(self.content, str):
            return self.content.strip()
        blocks = self.content if isinstance(self.content, list) else []
        said = [block.get("text") for block in blocks if isinstance(block, dict)]
        return "\n".join(part for part in said if isinstance(part, str)).strip()


class SetFromMessagesRequest(Request):
    """What memory.set_from_messages takes."""

    messages: Annotated[
        list[SaidMessage],
        Field(min_length=1, max_length=MESSAGES_MAX, description="1 to 200 messages, in the order they were said."),
    ]
    session: Annotated[
        str,
        Field(
            max_length=IDENTITY_LENGTH_MAX,
            description="The conversation's name, for the trace of each claim; empty for session_id.",
        ),
        AfterValidator(_without_control),
    ] = ""
    tags: Annotated[Tags, Field(description="Tags that every memory made of the messages gets.")] = Field(
        default_factory=list[str]
    )
    sensitivity: Annotated[
        Sensitivity,
        Field(description="high keeps what is made of the messages out of every search and prompt."),
    ] = "normal"
    deferred: Annotated[
        bool,
        Field(description="Answer at once and read the messages later; they are kept until then, and no longer."),
    ] = False

    @property
    def conversation(self) -> str:
        """The conversation's name in traces."""
        return self.session or self.session_id

    def turns(self, now_us: int) -> list[Turn]:
        """What was said, in order.

        Raises:
            TooLong: it is too much.
        """
        made = [
            Turn(
                turn_id=one.id or f"#{place}",
                role=one.role,
                name=one.name,
                said_at=now_us if one.time is None else microseconds(one.time),
                text=one.text(),
            )
            for place, one in enumerate(self.messages)
            if one.role not in SILENT_ROLES
        ]
        length = sum(len(turn.text) for turn in made)
        if length > TEXT_LENGTH_MAX:
            raise TooLong(
                f"messages: {length} characters, at most {TEXT_LENGTH_MAX} in one call; send them in several",
                field="messages",
                value_length=length,
                char_limit=TEXT_LENGTH_MAX,
            )
        return [turn for turn in made if turn.text]


class ClaimAnswer(BaseModel):
    """What became of one claim. What it says is not repeated; memory.get has it."""

    model_config = ConfigDict(frozen=True)

    memory_key: Annotated[str, Field(description="The key it is kept under.")]
    memory_id: Annotated[str, Field(description="The row's id; of a skipped one, the row that says it, or empty.")]
    version: Annotated[int | None, Field(description="Number of the live version; null when it was skipped.")]
    version_text: Annotated[str, Field(description="The same number as text.")]
    action: Annotated[
        Literal["created", "updated", "unchanged", "skipped"],
        Field(description="created, updated, unchanged (its key says it already) or skipped (see reason)."),
    ]
    reason: Annotated[str, Field(description="Why it was skipped, or which memory nearly says the same; else empty.")]
    valid_at: Annotated[Instant, Field(description="From when it holds: as the turn says, else when it was said.")]
    turns: Annotated[list[str], Field(description="The messages that say it: their ids, or # and their place.")]


class SetFromMessagesAnswer(Answer):
    """What memory.set_from_messages answers."""

    ABSENT_WHEN_NONE: ClassVar[frozenset[str]] = frozenset({"degraded"})

    items: Annotated[list[ClaimAnswer], Field(description="One for each claim; empty when deferred.")]
    created: Annotated[int, Field(description="How many are new.")]
    updated: Annotated[int, Field(description="How many changed what their key says.")]
    unchanged: Annotated[int, Field(description="How many their keys said already.")]
    skipped: Annotated[int, Field(description="How many were not kept.")]
    deferred: Annotated[bool, Field(description="Whether the messages are yet to be read.")]
    degraded: Annotated[
        list[str] | None,
        Field(
            description="embedder when claims were not compared in meaning with what is stored, or search by meaning"
            " follows. Absent when nothing was lost."
        ),
    ] = None
