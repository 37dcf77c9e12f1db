"""Dialogues that are known turn by turn, with questions and the turns that answer them: LoCoMo's and BEAM's."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

EVIDENCE = re.compile(r"D(\d+):0*(\d+)")
PLAN_MARK = re.compile(r"\s*->->\s*[\d,. ]+\s*\Z")
ADVERSARIAL = "5"
"""LoCoMo's questions about the wrong person: nothing answers them."""


@dataclass(frozen=True)
class Turn:
    """One turn of a dialogue."""

    key: str
    text: str
    said_at: str
    role: str = "user"
    session: str = ""


@dataclass(frozen=True)
class Question:
    """A question and the turns that answer it."""

    text: str
    gold: frozenset[str]
    category: str

    @property
    def is_answered(self) -> bool:
        """Whether a turn answers it."""
        return bool(self.gold) and self.category != ADVERSARIAL


@dataclass(frozen=True)
class Dialogue:
    """One dialogue with its questions."""

    name: str
    turns: Sequence[Turn]
    questions: Sequence[Question]


def dialogues(folder: Path) -> Iterator[Dialogue]:
    """The dialogues of a LoCoMo file; the evidence of an adversarial question is that of the true one."""
    for sample in json.loads((folder / "locomo-dev.json").read_text("utf-8")):
        turns = [turn for number in session_numbers(sample) for turn in session_turns(sample["conversation"], number)]
        known = {turn.key for turn in turns}
        questions = [
            Question(str(qa["question"]), gold, str(qa["category"]))
            for qa in sample["qa"]
            if (gold := evidence(qa.get("evidence") or [], known))
        ]
        yield Dialogue(str(sample["sample_id"]), turns, questions)


def session_numbers(sample: dict[str, Any]) -> list[int]:
    """The numbers of the sessions that have turns, in order."""
    found = (re.fullmatch(r"session_(\d+)", name) for name in sample["conversation"])
    return sorted(int(match[1]) for match in found if match)


def session_turns(conversation: dict[str, Any], number: int) -> Iterator[Turn]:
    """The turns of one session, each with the session's time."""
    moment = datetime.strptime(conversation[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
    for turn in conversation[f"session_{number}"]:
        caption = f" [shares a picture: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
        yield Turn(
            turn["dia_id"], f"{turn['speaker']}: {turn['text']}{caption}", moment.isoformat(), session=str(number)
        )


def evidence(marks: Sequence[str], known: set[str]) -> frozenset[str]:
    """The turn ids in the evidence field, which sometimes holds several or odd forms."""
    return frozenset(
        key for mark in marks for match in EVIDENCE.finditer(mark) if (key := f"D{match[1]}:{match[2]}") in known
    )


def chats(folder: Path) -> Iterator[Dialogue]:
    """BEAM's chats of a user with an assistant, every message a turn; some questions have no answer."""
    for place in sorted(folder.iterdir()):
        if not (place / "chat.json").exists():
            continue
        batches = json.loads((place / "chat.json").read_text("utf-8"))
        turns = [turn for batch in batches for turn in batch_turns(batch)]
        known = {turn.key for turn in turns}
        probes = json.loads((place / "probing_questions.json").read_text("utf-8"))
        questions = [
            Question(one["question"], frozenset(map(str, ids(one.get("source_chat_ids") or []))) & known, category)
            for category, group in probes.items()
            for one in group
        ]
        yield Dialogue(place.name, turns, questions)


def batch_turns(batch: dict[str, Any]) -> Iterator[Turn]:
    """The messages of one batch; the plan's marks at their ends are no text of theirs."""
    moment = ""
    for turn in (turn for group in batch["turns"] for turn in group):
        anchor = turn.get("time_anchor")
        moment = datetime.strptime(anchor, "%B-%d-%Y").replace(tzinfo=UTC).isoformat() if anchor else moment
        text = PLAN_MARK.sub("", turn["content"])
        session = str(batch["batch_number"])
        yield Turn(str(turn["id"]), f"{turn['role']}: {text}", moment, role=turn["role"], session=session)


def ids(source: Any) -> list[Any]:
    """The ids in a list, or in a mapping of lists."""
    if isinstance(source, dict):
        return [one for value in source.values() for one in ids(value)]
    return [one for value in source for one in ids(value)] if isinstance(source, list) else [source]
