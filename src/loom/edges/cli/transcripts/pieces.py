"""What a reader gives: messages one by one, and what could not be read."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Advance = Callable[[int], object]
"""Told how many bytes more were read."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands: a file, and the line, or the number of the conversation, from 1."""

    file: str
    number: int


@dataclass(frozen=True, slots=True)
class Said:
    """One message.

    Attributes:
        place: where it stands.
        session: the conversation.
        title: what the conversation is called, empty where nothing says so.
        message: as conversation.append takes it.
    """

    place: Place
    session: str
    title: str
    message: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Broken:
    """Something that could not be read, and why."""

    place: Place
    reason: str


Piece = Said | Broken


@dataclass(frozen=True, slots=True)
class Format:
    """How one program keeps its conversations.

    Attributes:
        agent: the agent that the messages belong to.
        files: the files to read of a path, in order.
        size: bytes that reading a file will tell of.
        read: the pieces of a file.
        copies: whether a conversation that is gone on with can begin with a copy of the earlier one.
    """

    agent: str
    files: Callable[[Path], Sequence[Path]]
    size: Callable[[Path], int]
    read: Callable[[Path, Advance], Iterator[Piece]]
    copies: bool = False
