"""What a report names besides its words: stack frames, exceptions, paths, symbols, other issues. Pure.

Names are kept in the form in which they are compared: lower case, without the folders, packages
and modules in front of them that differ from one machine, or from one writer, to the next.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from loom.planes.tracker import traces
from loom.planes.tracker.traces import NAME_CHARACTERS_MAX, Frame

TEXT_CHARACTERS_MAX: Final = 100_000
"""Of a report, what is looked at for names."""

EACH_MAX: Final = 64
PATH_PARTS: Final = 2
"""The last parts of a path that are compared."""

_EXCEPTION: Final = re.compile(
    r"(?<![A-Za-z0-9_])[A-Z][A-Za-z0-9_]*(?:Exception|Error|Fault|Interrupt|Panic)(?![A-Za-z0-9_])"
)
_THROWN: Final = re.compile(r"throwing an instance of '(?:[\w]+::)*(\w+)")
_SIGNAL: Final = re.compile(r"(?<![A-Za-z0-9_])(?:SIG(?:SEGV|ABRT|BUS|ILL|FPE|KILL|TRAP)|E[A-Z]{3,11})(?![A-Za-z0-9_])")
_ERRNO_TEXT: Final = """
eacces eaddrinuse eagain ebadf ebusy econnaborted econnrefused econnreset edquot eexist efault efbig ehostunreach
einprogress eintr einval eio eisdir eloop emfile emsgsize enametoolong enetdown enetunreach enfile enobufs enodev
enoent enoexec enolck enomem enospc enosys enotconn enotdir enotempty enotsock enotsup enxio eopnotsupp eperm
epipe eproto erange erofs espipe esrch estale etimedout exdev
"""
_ERRNO: Final = frozenset(_ERRNO_TEXT.split())
_SPELLED: Final = (
    (re.compile(r"\bNPE\b"), "nullpointerexception"),
    (re.compile(r"\bOOM\b|\bout of memory\b", re.IGNORECASE), "outofmemoryerror"),
    (re.compile(r"\bseg(?:mentation )?fault\b", re.IGNORECASE), "sigsegv"),
    (re.compile(r"\bnil pointer dereference\b"), "nilpointerdereference"),
    (re.compile(r"^panic: |\bpanicked at\b", re.MULTILINE), "panic"),
    (re.compile(r"\bstack overflow\b", re.IGNORECASE), "stackoverflowerror"),
)
_VAGUE: Final = frozenset({"error", "exception", "fault", "interrupt", "panic"})

_ADDRESS: Final = re.compile(r"\b[a-z][a-z0-9+.-]{1,15}://\S+", re.IGNORECASE)
_PATH: Final = re.compile(r"(?<![\w./@+~\\-])(?:[A-Za-z]:)?[\\/~.]{0,3}(?:[\w.@+-]+[\\/])+[\w.@+-]*\w")
_FILE: Final = re.compile(
    r"(?<![\w./@+~\\-])[\w-]+\.(?:py|java|jsx?|tsx?|mjs|go|rs|cc?|cpp|hh?|hpp|rb|php|cs|kt|scala|swift|sh|sql|ya?ml"
    r"|json|xml|toml|ini|css|html|proto|gradle|cmake)(?![\w.])"
)
_ENDING: Final = re.compile(r"\.[A-Za-z]\w{0,9}\Z")
_QUOTED: Final = re.compile(r"`([^`\s]{2,100})`")
_SYMBOL: Final = re.compile(
    r"(?<![\w$])(?:[A-Z][a-z0-9]+[A-Z]\w*|[a-z][a-z0-9]*[A-Z]\w*|[A-Za-z0-9]+_[A-Za-z0-9]\w*|[A-Za-z_]\w*(?=\(\)))"
)
_LAST_NAME: Final = re.compile(r"([A-Za-z_$][\w$]*)(?:\(.*\))?\Z")

_HASHED: Final = re.compile(r"(?<![\w&/#])(?:[\w.-]{1,100}/[\w.-]{1,100})?#(\d{1,12})(?![\w#])")
_KEYED: Final = re.compile(r"(?<![\w/-])([A-Z][A-Z0-9]{1,19}-\d{1,7}(?:-\d{1,7})?)(?![\w-])")
_LINKED: Final = re.compile(r"/(?:issues|browse|bugs?|tickets?|pull)/([A-Z][A-Z0-9]{1,19}-\d{1,9}|\d{1,12})(?!\w)")
_ASKED: Final = re.compile(
    r"\b(?:issue|bug|ticket|defect)s?\s+(?:no\.?\s*|number\s+|nr\.?\s*)?(\d{1,12})(?!\w)", re.IGNORECASE
)
_NO_KEYS: Final = frozenset({"UTF", "ISO", "SHA", "RFC", "AES", "MD", "HTTP", "TLS", "GPT", "IPV", "BASE", "CP", "X"})


@dataclass(frozen=True, slots=True)
class Traits:
    """What a report names; every name once, in the order in which it stands.

    Attributes:
        frames: of its stack traces.
        exceptions: names of exceptions, signals and error numbers: `nullpointerexception`, `sigsegv`, `enoent`.
        paths: of files, their last two parts: `hdfs/dfsclient.java`.
        symbols: names from code: `getfilestatus`, `max_retries`.
        mentions: other issues: `1234`, `hadoop-1234`.
    """

    frames: Sequence[Frame] = ()
    exceptions: Sequence[str] = ()
    paths: Sequence[str] = ()
    symbols: Sequence[str] = ()
    mentions: Sequence[str] = ()

    @property
    def any_failure(self) -> bool:
        """Whether the report shows that something failed."""
        return bool(self.frames or self.exceptions)


def parsed(text: str) -> Traits:
    """The traits of a text."""
    text = text[:TEXT_CHARACTERS_MAX]
    trace = traces.parsed(text)
    prose = trace.rest
    plain = _ADDRESS.sub(" ", prose)
    exceptions = _exceptions(prose)
    return Traits(
        frames=trace.frames,
        exceptions=exceptions,
        paths=paths_of(_written_paths(plain)),
        symbols=symbols_of(_written_symbols(plain), exceptions),
        mentions=_mentions(prose),
    )


def frames_of(written: Iterable[str]) -> Sequence[Frame]:
    """Frames that were given, each once.

    Raises:
        ValueError: one names no function.
    """
    return tuple(dict.fromkeys(traces.written(one) for one in written))[:EACH_MAX]


def paths_of(written: Iterable[str]) -> Sequence[str]:
    """The last two parts of each path, each once."""
    cut = ("/".join(_parts(path)[-PATH_PARTS:]).lower()[:NAME_CHARACTERS_MAX] for path in written)
    return tuple(dict.fromkeys(path for path in cut if path))[:EACH_MAX]


def symbols_of(written: Iterable[str], exceptions: Sequence[str] = ()) -> Sequence[str]:
    """The last name of each symbol, each once; names of exceptions are left out, they count as such."""
    names: dict[str, None] = {}
    for symbol in written:
        match = _LAST_NAME.search(symbol.strip()[:NAME_CHARACTERS_MAX])
        if match and match[1].lower() not in exceptions:
            names.setdefault(match[1].lower())
    return tuple(names)[:EACH_MAX]


def mentions_of(written: Iterable[str]) -> Sequence[str]:
    """Issues that were given: `1234`, `#1234`, `HADOOP-1234` or an address, each once."""
    found: dict[str, None] = {}
    for one in written:
        text = one.strip()[:NAME_CHARACTERS_MAX]
        for name in _mentions(text) or ((text.lower(),) if text else ()):
            found.setdefault(name)
    return tuple(found)[:EACH_MAX]


def names_of(number: int, url: str) -> frozenset[str]:
    """The names by which others mention an issue: its number, and the key at the end of its address."""
    return frozenset({str(number), *_mentions(url)})


def _parts(path: str) -> list[str]:
    return [part for part in re.split(r"[\\/]", path.strip()) if part not in ("", ".", "..", "~")]


def _exceptions(text: str) -> Sequence[str]:
    names: dict[str, None] = {}
    for match in _EXCEPTION.finditer(text):
        if match[0].lower() not in _VAGUE:
            names.setdefault(match[0].lower()[:NAME_CHARACTERS_MAX])
    for match in _THROWN.finditer(text):
        names.setdefault(match[1].lower()[:NAME_CHARACTERS_MAX])
    for match in _SIGNAL.finditer(text):
        name = match[0].lower()
        if name.startswith("sig") or name in _ERRNO:
            names.setdefault(name)
    for pattern, name in _SPELLED:
        if pattern.search(text):
            names.setdefault(name)
    return tuple(names)[:EACH_MAX]


def _written_paths(text: str) -> Iterable[str]:
    """What looks like a path: it has a file's ending, begins at a root, or has three parts. `and/or` is none."""
    for match in _PATH.finditer(text):
        path = match[0]
        if not any(map(str.isalpha, path)):
            continue
        if _ENDING.search(path) or path[0] in "/\\~." or len(_parts(path)) > PATH_PARTS:
            yield path
    yield from (match[0] for match in _FILE.finditer(text))


def _written_symbols(text: str) -> Iterable[str]:
    yield from (match[1] for match in _QUOTED.finditer(text))
    yield from (match[0] for match in _SYMBOL.finditer(text))


def _mentions(text: str) -> Sequence[str]:
    found: dict[str, None] = {}
    for pattern in (_LINKED, _HASHED, _KEYED, _ASKED):
        for match in pattern.finditer(text):
            name = match[1]
            if name.partition("-")[0] in _NO_KEYS:
                continue
            # GitHub's own way to write #12.
            found.setdefault(name.removeprefix("GH-").lower().lstrip("0") or "0")
    return tuple(found)[:EACH_MAX]
