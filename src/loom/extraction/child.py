"""What every child process shares: its limits, and how it answers.

The child reads one file from standard input and writes one JSON object to standard output:
`{"title", "pages", "outline"}`, or `{"problem"}` in words that follow the file's name.
"""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Final

try:
    import resource
except ImportError:  # Windows has no such limits; the parent's time limit is left.
    resource = None

CHARACTERS_MAX: Final = 64 * 1024 * 1024
TITLE_CHARACTERS_MAX: Final = 300
OUTLINE_MAX: Final = 2_000
_LEAVES_NO_FILE: Final = 0


class Unreadable(Exception):
    """A file that cannot be read; the message follows the file's name and says the way out."""


@dataclass(frozen=True)
class Found:
    """What a file says.

    Attributes:
        title: its own title; empty if it has none.
        pages: its text by page; a single one if it has no pages.
        outline: page from 1, level from 1, and title of each entry of its table of contents.
    """

    title: str
    pages: Sequence[str]
    outline: Sequence[tuple[int, int, str]] = ()


def serve(extract: Callable[[bytes], Found]) -> int:
    """Run one extraction within the limits that stand on the command line: bytes of memory, seconds of processor."""
    memory_bytes, processor_s = map(int, sys.argv[1:3])
    if resource is not None:
        for kind, most in (
            (resource.RLIMIT_AS, memory_bytes),
            (resource.RLIMIT_CPU, processor_s),
            (resource.RLIMIT_FSIZE, _LEAVES_NO_FILE),
            (resource.RLIMIT_CORE, 0),
        ):
            hard = resource.getrlimit(kind)[1]
            limit = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(kind, (limit, limit))
    try:
        answer: dict[str, object] = asdict(bounded(extract(sys.stdin.buffer.read())))
    except Unreadable as error:
        answer = {"problem": str(error)}
    except RecursionError:
        answer = {"problem": "is nested too deeply to be read; simplify it"}
    except MemoryError:
        answer = {"problem": "needs more memory than one file may take; split it"}
    sys.stdout.buffer.write(json.dumps(answer).encode("ascii"))
    sys.stdout.buffer.flush()
    return 0


def bounded(found: Found) -> Found:
    """`found` without what no store can hold: NULs, half surrogates, other line ends, endless titles.

    Raises:
        Unreadable: it has no text, or more than 64 million characters.
    """
    if sum(map(len, found.pages)) > CHARACTERS_MAX:
        raise Unreadable(f"holds more than {CHARACTERS_MAX} characters; split it")
    pages = [clean(page) for page in found.pages]
    outline = [(page, level, _short(title)) for page, level, title in found.outline[:OUTLINE_MAX]]
    return Found(_short(found.title), pages, [entry for entry in outline if entry[2]])


def clean(text: str) -> str:
    """Valid Unicode without NULs, lines ended by line feeds."""
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if not text.isascii() else text
    return whole.replace("\r\n", "\n").replace("\r", "\n").replace("\x00", "")


def _short(title: str) -> str:
    return " ".join(clean(title).split())[:TITLE_CHARACTERS_MAX]
