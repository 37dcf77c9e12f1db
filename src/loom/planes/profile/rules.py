"""What may become of a profile section. Pure: no database, no clock."""

import json
from dataclasses import replace

from loom.canonical import encoded
from loom.errors import TextNotFound, TooLong
from loom.ledger.rules import CHAR_LIMIT_DEFAULT, PROFILE, Attributes, Draft, Item, draft

NEW = Attributes(memory_type=PROFILE, char_limit=CHAR_LIMIT_DEFAULT)
"""What a section that nobody described is like."""

TEXT_LENGTH_MAX = 8_000_000
"""Characters of any section, once encoded, whatever its own cap: a text grows by pieces, and has to be held whole."""


def text_of(section: Item) -> str:
    """The section's text."""
    value: object = json.loads(section.head.value_text or '""')
    if not isinstance(value, str):
        raise TypeError("a profile section holds a text")
    return value


def kept(section: Item | None) -> Attributes:
    """What a change of the text leaves as it is; of no section, what a new one gets."""
    if section is None:
        return NEW
    return replace(section.head.attributes, expires_at=section.expires_at)


def set_to(section: Item | None, value: str, char_limit: int, source_trace: str) -> Draft:
    """The draft of a whole new text with a cap and a trace of its own.

    Raises:
        TooLong: the encoded text is over `char_limit`.
        Rejected: the trace is one that may not be written.
    """
    return draft(value, replace(kept(section), char_limit=char_limit, source_trace=source_trace))


def changes(section: Item | None, made: Draft) -> bool:
    """Whether the draft says anything new. An empty trace asks for no other trace."""
    if section is None:
        return True
    now = section.head
    same = now.content_sha256 == made.measured.sha256 and now.attributes.char_limit == made.attributes.char_limit
    return not same or made.attributes.source_trace not in ("", now.attributes.source_trace)


def appended(section: Item | None, addition: str, separator: str) -> Draft:
    """The draft of the text with `addition` at its end; `separator` only after a section that exists.

    Raises:
        TooLong: the result is over the section's cap.
    """
    attributes = kept(section)
    if section is None:
        return draft(addition, attributes, field="addition")
    text = text_of(section)
    _check_room(escaped_length(text) + escaped_length(separator) + escaped_length(addition), attributes, "addition")
    return draft(text + separator + addition, attributes, field="addition")


def replaced(section: Item, old: str, new: str) -> Draft:
    """The draft of the text with every `old` changed to `new`, left to right.

    The result is measured before it is made: a short text can name a huge one.

    Raises:
        TextNotFound: `old` does not occur.
        TooLong: the result is over the section's cap.
    """
    text = text_of(section)
    count = text.count(old)
    if count == 0:
        raise TextNotFound("old: the section does not hold this text; read it again", field="old")
    attributes = kept(section)
    _check_room(escaped_length(text) + count * (escaped_length(new) - escaped_length(old)), attributes, "new")
    return draft(text.replace(old, new), attributes, field="new")


def escaped_length(text: str) -> int:
    """Characters that `text` takes inside a JSON string; adds up over the parts of a text."""
    return len(encoded(text)) - 2


def _check_room(escaped: int, attributes: Attributes, field: str) -> None:
    """TooLong, which names `field`, when a text of `escaped` characters, quotes not counted, has no room."""
    limit = min(TEXT_LENGTH_MAX, attributes.char_limit or TEXT_LENGTH_MAX)
    if escaped + 2 > limit:
        raise TooLong(
            f"{field}: the section would have {escaped + 2} characters when encoded, its cap is {limit}; "
            "shorten it, or raise char_limit with profile.set",
            field=field,
            value_length=escaped + 2,
            char_limit=limit,
        )
