"""What an issue is, and what of it changes anything. Pure: no database, no clock."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from loom.ledger.rules import Reader, visible
from loom.planes.tracker.traces import Frame
from loom.planes.tracker.traits import Traits

OPEN, CLOSED = "open", "closed"
EMBEDDED_CHARACTERS_MAX: Final = 1_000
"""Of an issue, what its vector is of. Of bug reports with a known duplicate, a vector of the title and the beginning
found the duplicate as often among the first ten as the best of three vectors over the whole did."""

FRAME, EXCEPTION, PATH, SYMBOL, MENTION = "frame", "exception", "path", "symbol", "mention"


@dataclass(frozen=True, slots=True)
class Content:
    """What a tracker says of an issue. Times are microseconds UTC.

    Attributes:
        number: its number in the tracker.
        title: one line.
        body: the report.
        state: `open` or `closed`.
        component: the part of the program it is about; empty when it is not known.
        version: the version it was seen in.
        labels: in the tracker's order, each once.
        url: its address.
        duplicate_of: the number of the issue it repeats.
        created_at: when it was reported.
        updated_at: when the tracker last changed it; None when that is not known.
        traits: what it names.
    """

    number: int
    title: str
    body: str
    state: str
    component: str
    version: str
    labels: tuple[str, ...]
    url: str
    duplicate_of: int | None
    created_at: int
    updated_at: int | None
    traits: Traits


@dataclass(frozen=True, slots=True)
class Issue:
    """A stored issue, and whose it is."""

    item_id: int
    namespace: str
    user_id: str
    agent: str
    session_id: str
    stamp: int
    content: Content

    @property
    def issue_id(self) -> str:
        """The row's id as callers see it."""
        return f"iss_{self.item_id:016x}"

    def seen_by(self, reader: Reader) -> bool:
        """Whether the reader may see it."""
        return visible(self.user_id, self.session_id, reader)


def says_nothing_new(there: Issue | None, content: Content) -> bool:
    """Whether a write of `content` would change nothing: it is there already, or what is there is newer."""
    if there is None:
        return False
    now = there.content
    older = content.updated_at is not None and now.updated_at is not None and content.updated_at < now.updated_at
    return older or now == content


def searchable(content: Content) -> str:
    """The text under which an issue is found by words. The title counts twice."""
    parts = (content.title, content.title, content.component, " ".join(content.labels), content.body)
    return "\n".join(part for part in parts if part)


def embeddable(title: str, body: str) -> str:
    """The text under which an issue is found by meaning."""
    return f"{title}\n{body}".strip()[:EMBEDDED_CHARACTERS_MAX]


def names(traits: Traits) -> Iterator[tuple[str, str]]:
    """Every name of the traits with its kind, each once; of a frame, its function."""
    every: Mapping[str, Sequence[str]] = {
        FRAME: [frame.function for frame in traits.frames],
        EXCEPTION: traits.exceptions,
        PATH: traits.paths,
        SYMBOL: traits.symbols,
        MENTION: traits.mentions,
    }
    for kind, found in every.items():
        for name in dict.fromkeys(found):
            yield kind, name


def encoded(traits: Traits) -> str:
    """Traits as a row keeps them."""
    kept = {
        "frames": [[frame.function, frame.file] for frame in traits.frames],
        "exceptions": list(traits.exceptions),
        "paths": list(traits.paths),
        "symbols": list(traits.symbols),
        "mentions": list(traits.mentions),
    }
    return json.dumps(kept, ensure_ascii=False, separators=(",", ":"))


def decoded(stored: str) -> Traits:
    """Traits of a row."""
    kept = cast("dict[str, list[str]]", json.loads(stored))
    frames = cast("list[list[str]]", kept["frames"])
    return Traits(
        frames=tuple(Frame(function, file) for function, file in frames),
        exceptions=tuple(kept["exceptions"]),
        paths=tuple(kept["paths"]),
        symbols=tuple(kept["symbols"]),
        mentions=tuple(kept["mentions"]),
    )
