"""Reads stack frames out of a text: Python, Java, JavaScript, Go, Rust, C++, C#, Ruby and PHP. Pure.

A frame is a function and a file. Lines, addresses, arguments, folders, modules and generic
parameters are left out, so that the same call is the same frame on another machine and in the
next release. Every expression looks at one line of bounded length and cannot backtrack far.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

LINES_MAX: Final = 5_000
LINE_CHARACTERS_MAX: Final = 1_000
FRAMES_MAX: Final = 64
"""The frames nearest to the failure; those further out are the same in every trace."""
NAME_CHARACTERS_MAX: Final = 200

_PYTHON: Final = re.compile(r'\s*File "([^"\n]+)", line \d+(?:, in (\S.*))?')
_SHARP: Final = re.compile(r"\s*at ([^\s(]+)\([^()]*\) in (.+):line \d+\s*")
_JAVA: Final = re.compile(
    r"\s*at (?:[^\s/()]+/)*([\w.$<>]+)\(([\w.$-]+\.\w+(?::\d+)?|Native Method|Unknown Source)\).*"
)
_SCRIPT: Final = re.compile(r"\s*at (?:async )?(?:new )?([^\s()]+)(?: \[as [^\]]+\])? \(([^()]+?):\d+(?::\d+)?\)\s*")
_SCRIPT_BARE: Final = re.compile(r"\s*at (?:async )?((?:\w+:)?[^\s:()]+):\d+:\d+\s*")
_SCRIPT_OTHER: Final = re.compile(r"([\w.$/<>*]*)@(\w+://[^\s@]+|/[^\s:@]+):\d+:\d+\s*")
_GO_CALL: Final = re.compile(
    r"(?:created by )?([\w./\-%]+\.[\w.(){}*\[\]\u00b7~]+?)(?:\([^()]*\)| in goroutine \d+)?\s*"
)
_GO_PLACE: Final = re.compile(r"\s+(\S+\.(?:go|s)):\d+(?: \+0x[0-9a-f]+)?\s*")
_RUST_CALL: Final = re.compile(r"\s*\d+:\s+(?:0x[0-9a-f]+ - )?([<\w{].*?)\s*")
_RUST_PLACE: Final = re.compile(r"\s+at (\S+\.rs):\d+(?::\d+)?\s*")
_NATIVE: Final = re.compile(
    r"\s*#\d+\s+(?:0x[0-9a-f]+\s+in\s+)?([^\s(][^(]*?)\s*(?:\([^()]*(?:\([^()]*\)[^()]*)*\))?(?: const)?"
    r"\s+(?:at |from )?\(?([^\s():]+)(?::\d+)*(?:\+0x[0-9a-f]+)?\)?\s*"
)
_RUBY: Final = re.compile(r"\s*(?:from )?([^\s:]+\.rb):\d+:in [`']([^'`]+)'.*")
_PHP: Final = re.compile(r"#\d+ ([^\s()]+\.php)\(\d+\): ([^\s(]+)\(.*")

_GENERIC: Final = re.compile(r"<[^<>]*>|\[[^\[\]]*\]|\{\{?[\w:#]*\}?\}")
_HASH: Final = re.compile(r"::h[0-9a-f]{16}\Z")
_JOINT: Final = re.compile(r"::|->|[./#$~\\]+")
_ANONYMOUS: Final = re.compile(r"(?:func)?\d*\Z")
_STRAY: Final = frozenset({"object", "anonymous", "lambda"})
_NO_FILE: Final = frozenset({"", "native method", "unknown source", "<anonymous>"})
_NESTING_MAX: Final = 4


@dataclass(frozen=True, slots=True)
class Frame:
    """One call of a stack, as it is compared.

    Attributes:
        function: its name and what it belongs to, in lower case: `dfsclient.close`.
        file: the file's own name in lower case: `dfsclient.java`; empty when it is not known.
    """

    function: str
    file: str

    def same(self, other: "Frame") -> bool:
        """Whether both are the same function of the same file; a file that is not known fits any."""
        return self.function == other.function and (self.file == other.file or not self.file or not other.file)

    def __str__(self) -> str:
        return f"{self.function} ({self.file})" if self.file else self.function


@dataclass(frozen=True, slots=True)
class Trace:
    """What a text holds of stacks.

    Attributes:
        frames: in the order in which they stand, each once, at most 64.
        rest: the text without the lines that are frames.
    """

    frames: Sequence[Frame]
    rest: str


def frame_of(function: str, file: str) -> Frame:
    """A frame in the form in which it is compared; names that lack everything give an empty function."""
    return Frame(_function(function), file_name(file))


def file_name(path: str) -> str:
    """The last part of a path, in lower case."""
    name = path.replace("\\", "/").rpartition("/")[2].partition("?")[0].strip().lower()
    return "" if name in _NO_FILE else name[:NAME_CHARACTERS_MAX]


def written(text: str) -> Frame:
    """A frame that a person or a program wrote: a line of a trace, `function (file)`, `file:function` or a function.

    Raises:
        ValueError: it names nothing.
    """
    found = parsed(text).frames
    if found:
        return found[0]
    function, _, file = text.strip().partition("(")
    frame = frame_of(function, file.rstrip(") \t").partition(":")[0])
    if not frame.function:
        raise ValueError("a frame names a function, as in `Client.close (Client.java)`")
    return frame


def parsed(text: str) -> Trace:
    """The frames of every trace in `text`, and what is left without them."""
    lines = text.split("\n", LINES_MAX)
    lines, tail = lines[:LINES_MAX], lines[LINES_MAX:]
    frames: dict[Frame, None] = {}
    rest: list[str] = []
    place = 0
    while place < len(lines):
        line = lines[place].rstrip("\r")[:LINE_CHARACTERS_MAX]
        after = lines[place + 1].rstrip("\r")[:LINE_CHARACTERS_MAX] if place + 1 < len(lines) else ""
        found = _of_two(line, after)
        taken = 2 if found else 1
        found = found or _of_one(line)
        if found is None:
            rest.append(lines[place])
        elif found.function and len(frames) < FRAMES_MAX:
            frames.setdefault(found)
        place += taken
    return Trace(tuple(frames), "\n".join([*rest, *tail]))


def _of_two(line: str, after: str) -> Frame | None:
    """A frame whose place stands on the next line: Go and Rust."""
    place = _GO_PLACE.fullmatch(after)
    call = _GO_CALL.fullmatch(line) if place else None
    if not (place and call):
        place = _RUST_PLACE.fullmatch(after)
        call = _RUST_CALL.fullmatch(line) if place else None
    return frame_of(call[1], place[1]) if place and call else None


def _of_one(line: str) -> Frame | None:
    """A frame on a line of its own."""
    stripped = line.lstrip()
    if stripped.startswith("at "):
        return _at(line)
    if stripped.startswith('File "'):
        match = _PYTHON.match(line)
        return frame_of(match[2] or "<module>", match[1]) if match else None
    if stripped.startswith("#"):
        match = _PHP.fullmatch(stripped)
        if match:
            return frame_of(match[2], match[1])
        match = _NATIVE.fullmatch(line) if stripped[1:2].isdigit() and _is_native(stripped) else None
        return frame_of(match[1], match[2]) if match else None
    match = _RUBY.fullmatch(line) if ".rb:" in line else None
    if match:
        return frame_of(match[2], match[1])
    match = _SCRIPT_OTHER.fullmatch(stripped) if "@" in line else None
    return frame_of(match[1], match[2]) if match else None


def _at(line: str) -> Frame | None:
    """A frame of Java, C# or JavaScript."""
    match = _SHARP.fullmatch(line) or _JAVA.fullmatch(line) or _SCRIPT.fullmatch(line)
    if match:
        file = match[2]
        return frame_of(match[1], file.partition(":")[0] if match.re is _JAVA else file)
    match = _SCRIPT_BARE.fullmatch(line)
    return frame_of("<anonymous>", match[1]) if match else None


def _is_native(stripped: str) -> bool:
    """Whether a line beginning with `#` and a number is a frame, and not a sentence about an issue."""
    return " 0x" in stripped or ("(" in stripped and (" at " in stripped or " from " in stripped))


def _function(name: str) -> str:
    """The function and what it belongs to: the last two names, without generics, hashes and pointers."""
    if name.strip() in ("<module>", "<anonymous>", "{main}"):
        return name.strip()
    name = _HASH.sub("", name.strip()).replace("<init>", "init")
    before = ""
    for _ in range(_NESTING_MAX):
        before, name = name, _GENERIC.sub("", name)
        if before == name:
            break
    name = name.replace("(*", "").partition("(")[0].replace(")", "")
    parts = [part for part in _JOINT.split(name.lower().rpartition(" ")[2]) if part and part not in _STRAY]
    # Closures have made-up names: what they stand in is what they are.
    while len(parts) > 1 and _ANONYMOUS.match(parts[-1]):
        parts.pop()
    return ".".join(parts[-2:]).strip("<>*&,:;")[:NAME_CHARACTERS_MAX]
