"""Sends messages in batches by conversation, and counts what became of them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from loom.edges.cli.shell import Call
from loom.edges.cli.transcripts import cleaning
from loom.edges.cli.transcripts.pieces import Broken, Piece, Said
from loom.errors import BodyTooLarge, Rejected

MESSAGES_MAX = 500
BATCH_LENGTH_MAX = 500_000
"""Characters of one call's messages, about: below the server's limit on a body, whatever alphabet they are in."""

WAITING_LENGTH_MAX = 4_000_000
"""Characters that wait over all conversations before all are sent."""

SEEN_MAX = 5_000_000
TITLE_LENGTH_MAX = 300


@dataclass
class Outcome:
    """What became of the messages.

    Attributes:
        sessions: the conversations that were read.
        imported: messages that are new.
        unchanged: messages that were there already.
        conflicts: messages whose id stands for another one already.
        shortened: messages that had to be shortened.
        refused: what could not be read, or was not taken.
    """

    sessions: set[str] = field(default_factory=set[str])
    imported: int = 0
    unchanged: int = 0
    conflicts: int = 0
    shortened: int = 0
    refused: list[Broken] = field(default_factory=list[Broken])


@dataclass
class Waiting:
    """One conversation's messages that are not sent yet."""

    title: str = ""
    said: list[Said] = field(default_factory=list[Said])
    length: int = 0


class Sender:
    """Gathers messages and sends them; each conversation's stay in order.

    Args:
        call: runs an operation.
        where: the identity fields that every call has.
        outcome: is kept up to date.
        copies: whether a message that stands in two conversations is the first one's alone.
    """

    def __init__(self, call: Call, where: Mapping[str, object], outcome: Outcome, *, copies: bool = False) -> None:
        self._call = call
        self._where = dict(where)
        self._outcome = outcome
        self._copies = copies
        self._waiting: dict[str, Waiting] = {}
        self._seen: dict[int, str] = {}

    def take(self, pieces: Iterable[Piece]) -> None:
        """Take the pieces of one file, and send all that waits when they end."""
        for piece in pieces:
            if isinstance(piece, Broken):
                self._outcome.refused.append(piece)
            elif not self._copied(piece):
                self._add(piece)
        self.flush()

    def flush(self) -> None:
        """Send all that waits."""
        waiting, self._waiting = self._waiting, {}
        for session, one in waiting.items():
            self._send(session, one.title, one.said)

    def _copied(self, said: Said) -> bool:
        """Whether the message is another conversation's, copied when that one was gone on with."""
        if not self._copies or str(said.message["id"]).startswith("line-"):
            return False
        own = hash(str(said.message["id"]))
        if len(self._seen) < SEEN_MAX:
            self._seen.setdefault(own, said.session)
        return self._seen.get(own, said.session) != said.session

    def _add(self, said: Said) -> None:
        self._outcome.sessions.add(said.session)
        content, shortened = cleaning.fitting(said.message["content"])
        self._outcome.shortened += shortened
        said = replace(said, message={**said.message, "content": content})
        waiting = self._waiting.setdefault(said.session, Waiting())
        length = len(json.dumps(content, ensure_ascii=False))
        if waiting.said and (len(waiting.said) == MESSAGES_MAX or waiting.length + length > BATCH_LENGTH_MAX):
            self._send(said.session, waiting.title, waiting.said)
            waiting.said, waiting.length = [], 0
        waiting.title = said.title or waiting.title
        waiting.said.append(said)
        waiting.length += length
        if sum(one.length for one in self._waiting.values()) > WAITING_LENGTH_MAX:
            self.flush()

    def _send(self, session: str, title: str, batch: Sequence[Said]) -> None:
        """Send a batch; one that is refused in halves, until it is known which message is to blame."""
        if not batch:
            return
        args: dict[str, Any] = {**self._where, "session": session, "messages": [one.message for one in batch]}
        if title:
            args["title"] = title[:TITLE_LENGTH_MAX]
        try:
            answer = self._call("conversation.append", args)
        except (Rejected, BodyTooLarge) as error:
            if len(batch) == 1:
                self._outcome.refused.append(Broken(batch[0].place, error.message))
                return
            middle = len(batch) // 2
            self._send(session, title, batch[:middle])
            self._send(session, title, batch[middle:])
            return
        self._outcome.imported += int(answer["appended"])
        self._outcome.unchanged += int(answer["unchanged"])
        self._outcome.conflicts += len(batch) - int(answer["appended"]) - int(answer["unchanged"])
