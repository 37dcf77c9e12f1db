"""Two texts line by line. Pure."""

import difflib
from dataclasses import dataclass

CHARACTERS_MAX = 200_000
LINES_MAX = 4000
CONTEXT_LINES = 3
SAME, GONE, NEW, SKIPPED = "same", "gone", "new", "skipped"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a comparison.

    Attributes:
        kind: same, gone, new or skipped.
        text: the line; for a gap, how many lines are the same.
    """

    kind: str
    text: str


def compared(old: str, new: str) -> list[Line] | None:
    """The lines of both, with what is the same around a change; None when they are too long to compare."""
    before, after = old.splitlines(), new.splitlines()
    if len(old) + len(new) > CHARACTERS_MAX or len(before) + len(after) > LINES_MAX:
        return None
    lines: list[Line] = []
    matcher = difflib.SequenceMatcher(a=before, b=after, autojunk=False)
    end = 0
    for group in matcher.get_grouped_opcodes(CONTEXT_LINES):
        skipped = group[0][1] - end
        if skipped:
            lines.append(Line(SKIPPED, f"{skipped} lines are the same"))
        for tag, a_start, a_end, b_start, b_end in group:
            if tag == "equal":
                lines += [Line(SAME, text) for text in before[a_start:a_end]]
            else:
                lines += [Line(GONE, text) for text in before[a_start:a_end]]
                lines += [Line(NEW, text) for text in after[b_start:b_end]]
        end = group[-1][2]
    if lines and end < len(before):
        lines.append(Line(SKIPPED, f"{len(before) - end} lines are the same"))
    return lines
