"""What a message says, and what it may be. Pure: no database, no clock.

A message is a text or a list of blocks, as chat APIs send them. What a person would
hear is `said`; what goes on beside it (thoughts, tool calls and their results, what the
system puts in) is `aside`: kept, and found, but after anything that was said.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from loom.canonical import Json, Measured, measured
from loom.errors import TooLong
from loom.retrieval import values
from loom.retrieval.dates import day_words

CONTENT_LENGTH_MAX: Final = 1_000_000
"""Characters of one message's content as canonical JSON."""

TURNS_MAX: Final = 1_000_000
"""Turns of one conversation."""

SAID_CHARACTERS_MAX: Final = 200_000
ASIDE_CHARACTERS_MAX: Final = 8_000
"""Of what goes on beside a turn, what can be found; all of it is kept in the content."""

BLOCKS_MAX: Final = 1_000
BLOCK_DEPTH_MAX: Final = 8
DATA_LENGTH_MAX: Final = 1_000
"""A picture's or file's bytes as text that are kept; longer ones are left out, with their length in their place."""

TITLE_LENGTH: Final = 80
"""Characters of a title that is made from the first thing said."""

SILENT_ROLES: Final = frozenset({"system", "developer", "tool", "function"})
"""Whose messages are no part of what was said between people and assistants."""

SAID_KINDS: Final = frozenset({"text", "input_text", "output_text", "refusal"})
DATA_FIELDS: Final = frozenset({"data", "image_data", "file_data", "b64_json"})
HIDDEN_FIELDS: Final = frozenset(
    {
        "type",
        "id",
        "tool_use_id",
        "call_id",
        "tool_call_id",
        "signature",
        "encrypted_content",
        "cache_control",
        "source",
    }
)
"""Fields of a block that say nothing to a reader."""

NAME_FIELD: Final = "name"
"""Of a tool call, what is read first."""


@dataclass(frozen=True, slots=True)
class Spoken:
    """What a message says.

    Attributes:
        said: what was said, empty when nothing was.
        aside: thoughts, tool calls and results, and what a system said; empty when there are none.
    """

    said: str
    aside: str


@dataclass(frozen=True, slots=True)
class Draft:
    """A message ready to be written.

    Attributes:
        message_id: the caller's own id; empty when there is none.
        role: user, assistant, system, tool or another word.
        speaker: a name, empty when it has none.
        said_at: microseconds UTC.
        content: the message's content, measured in canonical JSON.
        sha256: hash of role, speaker and content; equal for equal messages.
        spoken: what it says.
    """

    message_id: str
    role: str
    speaker: str
    said_at: int
    content: Measured
    sha256: str
    spoken: Spoken


@dataclass(frozen=True, slots=True)
class Message:
    """A message as it comes."""

    message_id: str
    role: str
    speaker: str
    said_at: int
    content: Json


def drafted(message: Message, field: str) -> Draft:
    """The message, cleaned and measured.

    Raises:
        TooLong: its content is over the cap; `field` is what the error names.
    """
    content = without_data(message.content)
    sized = measured(content)
    if sized.length > CONTENT_LENGTH_MAX:
        raise TooLong(
            f"{field}: {sized.length} characters of JSON, at most {CONTENT_LENGTH_MAX}; shorten it or send it in parts",
            field=field,
            value_length=sized.length,
        )
    whole = measured([message.role, message.speaker, content])
    spoken = spoken_of(message.role, content)
    return Draft(message.message_id, message.role, message.speaker, message.said_at, sized, whole.sha256, spoken)


def without_data(content: Json) -> Json:
    """The content without long runs of bytes spelled as text (pictures, files)."""
    return [_lean(block, 0) for block in content] if isinstance(content, list) else content


def _lean(value: Json, depth: int) -> Json:
    if depth > BLOCK_DEPTH_MAX:
        return value
    if isinstance(value, list):
        return [_lean(part, depth + 1) for part in value]
    if not isinstance(value, dict):
        return value
    lean: dict[str, Json] = {}
    for name, part in value.items():
        if isinstance(part, str) and len(part) > DATA_LENGTH_MAX and (name in DATA_FIELDS or part.startswith("data:")):
            lean[f"{name}_left_out_length"] = len(part)
        else:
            lean[name] = _lean(part, depth + 1)
    return lean


def spoken_of(role: str, content: Json) -> Spoken:
    """What a message of this role and content says."""
    said: list[str] = []
    aside: list[str] = []
    for loud, text in _parts(content):
        (said if loud and role not in SILENT_ROLES else aside).append(text)
    return Spoken("\n".join(said)[:SAID_CHARACTERS_MAX].strip(), "\n".join(aside)[:ASIDE_CHARACTERS_MAX].strip())


def _parts(content: Json) -> Iterator[tuple[bool, str]]:
    """Each block's text, and whether it was said aloud; blocks without words are passed."""
    if not isinstance(content, list):
        text = values.value_text(content)
        if text.strip():
            yield True, text
        return
    for block in content[:BLOCKS_MAX]:
        loud, text = _block(block)
        if text.strip():
            yield loud, text


def _block(block: Json) -> tuple[bool, str]:
    if isinstance(block, str):
        return True, block
    if not isinstance(block, dict):
        return False, ""
    if block.get("type", "text") in SAID_KINDS:
        text = block.get("text", block.get("refusal"))
        return True, text if isinstance(text, str) else ""
    return False, values.value_text(_readable(block, 0))


def _readable(value: Json, depth: int) -> Json:
    """A block without what says nothing: ids, signatures, bytes."""
    if isinstance(value, list):
        return [_readable(part, depth + 1) for part in value[:BLOCKS_MAX]] if depth < BLOCK_DEPTH_MAX else None
    if not isinstance(value, dict):
        return value
    if depth >= BLOCK_DEPTH_MAX:
        return None
    kept = {name: part for name, part in value.items() if name not in HIDDEN_FIELDS and not name.endswith("_length")}
    if isinstance(value.get("text"), str) and value.get("type") in SAID_KINDS:
        return value["text"]
    # In one order, whatever order they came in: the stored content, whose fields are sorted, says the same.
    ordered = sorted(kept.items(), key=lambda pair: (pair[0] != NAME_FIELD, pair[0]))
    return {name: _readable(part, depth + 1) for name, part in ordered}


def words_text(speaker: str, said: str, said_at: int) -> str:
    """What the word index holds of a turn: who said it on which day, then what."""
    return f"{speaker}\n{day_words(said_at)}\n{said}"


def meaning_text(speaker: str, said: str) -> str:
    """What the model reads of a turn."""
    return f"{speaker}: {said}" if speaker else said


def title_of(said: str) -> str:
    """A title from the first thing said: its first line that says something, cut."""
    line = next((line.strip() for line in said.splitlines() if line.strip()), "")
    return line if len(line) <= TITLE_LENGTH else line[: TITLE_LENGTH - 1].rstrip() + "\u2026"


def turn_id_of(item_id: int) -> str:
    """A turn's id as callers see it: `turn_` and 16 hex digits."""
    return f"turn_{item_id:016x}"


def item_id_of(turn_id: str) -> int | None:
    """The number behind a turn id, or None when it is not one."""
    digits = turn_id.removeprefix("turn_")
    if digits == turn_id or len(digits) != 16 or not set(digits) <= set("0123456789abcdef"):  # noqa: PLR2004  # 16 hex digits
        return None
    number = int(digits, 16)
    return number if number < 1 << 63 else None
