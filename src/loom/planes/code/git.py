"""A repository that is fetched with `git`, and read from its objects: nothing of it is ever checked out or run.

A fetch brings one commit without its history into a bare repository of our own.
There are no hooks, no submodules, no filters, no questions to a person, and
no way for an address to be taken for an option.
"""

import hashlib
import re
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Final
from urllib.parse import unquote

from loom.planes.code import files, hosts
from loom.planes.code.hosts import Care
from loom.planes.code.sources import SSH, Entry, Listing, SourceFailed, Yard

ADDRESS_CHARACTERS_MAX: Final = 1_024
SCHEMES: Final = ("https", "ssh", "file")
HEAD: Final = "refs/loom/head"
RUN_TIMEOUT_S: Final = 30.0
STEP_S: Final = 0.25

_SCHEME: Final = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*)://")
_SHORT_SSH: Final = re.compile(r"^(?:[A-Za-z0-9_.-]+@)?[A-Za-z0-9][A-Za-z0-9.-]*:(?!/?/)[^\s:]+$")
_HOST: Final = re.compile(r"^(?:([^@/]*)@)?([A-Za-z0-9][A-Za-z0-9.-]*|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?$")
_REVISION: Final = re.compile(r"^[A-Za-z0-9_][A-Za-z0-9_./@+-]{0,254}$")
_VERSION: Final = re.compile(rb"git version ([0-9]{1,4})\.([0-9]{1,4})(?![0-9])")
_SHA: Final = re.compile(r"^[0-9a-f]{40,64}$")

SAFE: Final = (
    "-c", "core.hooksPath=/dev/null",
    "-c", "core.fsmonitor=false",
    "-c", "core.askPass=",
    "-c", "credential.helper=",
    "-c", "credential.interactive=false",
    "-c", f"core.sshCommand={SSH}",
    "-c", "protocol.ext.allow=never",
    "-c", "submodule.recurse=false",
    "-c", "transfer.bundleURI=false",
    "-c", "gc.auto=0",
    "-c", "maintenance.auto=false",
    "-c", "safe.directory=*",
)  # fmt: skip


FETCH: Final = (
    "fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "--force", "--no-write-fetch-head"
)  # fmt: skip


PINS_SINCE: Final = (2, 37)
"""The first version that can be told where a name stands; an older one looks the name up itself."""

TOO_OLD: Final = (
    "git on the server is older than 2.37, or does not say its version: it would look the address's host up once more, "
    "and may go where tokens have nothing fetched from; update git"
)
NO_GIT: Final = "git is not installed on the server; install it, or index a folder"

NOT_FETCHED: Final = "git could not fetch it: check the address, the branch, and that this server may read it"


class BadAddress(ValueError):
    """An address that is not fetched; the message says why."""


def is_address(source: str) -> bool:
    """Whether a source is a git address and not a folder."""
    return bool(_SCHEME.match(source) or (_SHORT_SSH.match(source) and not source.startswith((".", "/", "~"))))


def checked(address: str, schemes: Sequence[str]) -> str:
    """The scheme of a git address that may be fetched.

    Raises:
        BadAddress: it may not.
    """
    match = _SCHEME.match(address)
    scheme = match[1].lower() if match else "ssh"
    if scheme not in schemes:
        raise BadAddress(f"{scheme} addresses are not fetched here; use one of {', '.join(schemes)}")
    if len(address) > ADDRESS_CHARACTERS_MAX or any(ord(one) <= ord(" ") for one in address) or "\\" in address:
        raise BadAddress("is not a git address")
    rest = address[match.end() :] if match else address
    host, _, path = rest.partition("/") if match else rest.partition(":")
    if not path or path.startswith("-"):
        raise BadAddress("names no repository")
    if "?" in path or "#" in path:
        raise BadAddress("ends in a question or a mark, where keys are put; send the bare address")
    if scheme == "file":
        if host:
            raise BadAddress("a file address names no host: file:///path")
        return scheme
    _check_host(host, scheme)
    return scheme


def _check_host(host: str, scheme: str) -> None:
    held = _HOST.match(host)
    if held is None:
        raise BadAddress("names no host")
    if not hosts.is_plain(held[2].strip("[]")):
        raise BadAddress("spells its host in an unusual way; send its name, or its address in full")
    user = held[1] or ""
    if ":" in user or (scheme == "https" and user):
        raise BadAddress("holds a user or a password, which would be kept; use ssh, or index a clone as a folder")
    if user.startswith("-"):
        raise BadAddress("is not a git address")


def local_path(address: str) -> Path | None:
    """The folder of this machine that an address names, as git reads it; None for an address of another machine."""
    match = _SCHEME.match(address)
    return Path(unquote(address[match.end() :])) if match and match[1].lower() == "file" else None


def is_revision(name: str) -> bool:
    """Whether a text may name a branch, tag or commit."""
    return bool(_REVISION.match(name)) and ".." not in name and not name.endswith((".lock", "/", "."))


def version(environment: Mapping[str, str]) -> tuple[int, int] | None:
    """The version of `git`, its first two numbers; None when it does not say.

    Raises:
        SourceFailed: there is no git.
    """
    found = _VERSION.match(_said(["git", "--version"], environment) or b"")
    return None if found is None else (int(found[1]), int(found[2]))


def pins(environment: Mapping[str, str]) -> bool:
    """Whether `git` goes where it is told that a name stands; one that does not say its version counts as old.

    Raises:
        SourceFailed: there is no git.
    """
    found = version(environment)
    return found is not None and found >= PINS_SINCE


def head_of(folder: Path, yard: Yard) -> str:
    """The commit that is checked out in a folder that holds `.git`; empty when git does not say.

    Git is told which repository it is, and looks for none in the folders above.
    """
    try:
        done = _run(yard, folder, ("--git-dir=.git", "rev-parse", "--verify", "--quiet", "HEAD^{commit}"))
    except SourceFailed:
        return ""
    commit = done.strip().decode("ascii", "replace")
    return commit if _SHA.match(commit) else ""


@dataclass(frozen=True, slots=True)
class Fetch:
    """A fetch under way."""

    process: "subprocess.Popen[bytes]"
    until_s: float


class Fetches:
    """The fetches that this process has under way, by repository. Safe for threads.

    Args:
        yard: how and where to fetch.
        clock_s: a steady clock.
    """

    def __init__(self, yard: Yard, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._yard = yard
        self._clock_s = clock_s
        self._mutex = Lock()
        self._running: dict[str, Fetch] = {}

    def place(self, key: str) -> Path:
        """Where the repository of this key is kept."""
        return self._yard.folder / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.git"

    def step(self, key: str, address: str, revision: str, wait_s: float, *, trusted: bool = False) -> bool:
        """Begin or go on with a fetch, for `wait_s` at most; whether it is done.

        `trusted` is what nobody asked for through a token: it may come from any host.

        Raises:
            SourceFailed: it may not be fetched, failed, took too long or brought too much.
        """
        with self._mutex:
            fetch = self._running.get(key)
        if fetch is None:
            care = hosts.NO_CARE if trusted else self._care(address)  # a name is looked up, which takes its time
            with self._mutex:
                fetch = self._running.get(key) or self._begun(key, address, revision, care)
                self._running[key] = fetch
        until_s = self._clock_s() + wait_s
        while True:
            try:
                code = fetch.process.wait(STEP_S)
            except subprocess.TimeoutExpired:
                if self._clock_s() > fetch.until_s:
                    raise self._stopped(key, f"took over {self._yard.fetch_timeout_s:.0f} s") from None
                if _bytes_in(self.place(key)) > self._yard.fetch_bytes_max:
                    raise self._stopped(key, f"is over {self._yard.fetch_bytes_max >> 20} MiB") from None
                if self._clock_s() > until_s:
                    return False
                continue
            with self._mutex:
                self._running.pop(key, None)
            if code != 0:
                raise SourceFailed(NOT_FETCHED if trusted else f"{NOT_FETCHED}; a redirect is not followed")
            if _bytes_in(self.place(key)) > self._yard.fetch_bytes_max:
                raise self._stopped(key, f"is over {self._yard.fetch_bytes_max >> 20} MiB")
            return True

    def _care(self, address: str) -> Care:
        """How a token's address is fetched; SourceFailed when it is not, or not by this git."""
        yard = self._yard
        care = hosts.cared_for(address, yard.private_hosts, yard.resolve, yard.environment)
        if care.is_pinned and not pins(yard.environment):
            raise SourceFailed(TOO_OLD)
        return care

    def forget(self, key: str) -> None:
        """Stop the fetch of this key, if there is one, and remove what it brought."""
        self._stopped(key, "is no longer wanted")

    def _begun(self, key: str, address: str, revision: str, care: Care) -> Fetch:
        place = self.place(key)
        if not (place / "HEAD").exists():
            place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            shutil.rmtree(place, ignore_errors=True)
            _run(self._yard, None, ("init", "--quiet", "--bare", "--template=", "--", str(place)))
        for lock in place.rglob("*.lock"):  # left by a fetch that a crash cut short
            lock.unlink(missing_ok=True)
        process = subprocess.Popen(  # noqa: S603  # a fixed program, a checked address after `--`
            _command(place, (*care.words, *FETCH, "--", address, f"+{revision or 'HEAD'}:{HEAD}")),
            env={**self._yard.environment, **care.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        return Fetch(process, self._clock_s() + self._yard.fetch_timeout_s)

    def _stopped(self, key: str, why: str) -> SourceFailed:
        with self._mutex:
            fetch = self._running.pop(key, None)
        if fetch is not None:
            fetch.process.kill()
            fetch.process.wait()
        shutil.rmtree(self.place(key), ignore_errors=True)
        return SourceFailed(f"fetching {why}; index a smaller repository, or a clone as a folder")


class Fetched:
    """A fetched repository, read from its objects.

    Args:
        place: the bare repository.
        yard: how `git` is run.
    """

    def __init__(self, place: Path, yard: Yard) -> None:
        self._place = place
        self._yard = yard

    def listed(self) -> Listing:
        """Every file of the fetched commit; links and submodules are left out."""
        commit = self._git("rev-parse", "--verify", "--quiet", f"{HEAD}^{{commit}}").strip().decode("ascii", "replace")
        listing = self._git("ls-tree", "-r", "-z", "-l", "--full-tree", commit)
        skipped: Counter[str] = Counter()
        entries: list[Entry] = []
        total = 0
        for line in filter(None, listing.split(b"\x00")):
            about, _, raw = line.partition(b"\t")
            mode, kind, sha, size = about.decode("ascii", "replace").split()
            if kind != "blob" or mode == "120000":
                skipped[files.LINK] += 1
                continue
            path = raw.decode("utf-8", "surrogateescape")
            reason = files.left_out(path, int(size)) or (files.MADE if _in_heavy_folder(path) else "")
            if reason:
                skipped[reason] += 1
                continue
            total += int(size)
            entries.append(Entry(path, int(size), sha))
        self._yard.check(len(entries), total)
        entries.sort(key=lambda entry: entry.path)
        return Listing(entries, dict(skipped), commit)

    def read(self, entries: Sequence[Entry]) -> Iterator[tuple[Entry, bytes | None]]:
        """The objects with these digests, whatever was fetched since."""
        asked = "".join(f"{entry.digest}\n" for entry in entries).encode("ascii", "replace")
        answer = self._git("cat-file", "--batch", given=asked)
        at = 0
        for entry in entries:
            end = answer.find(b"\n", at)
            words = answer[at:end].split() if end >= 0 else []
            if len(words) != 3 or words[1] != b"blob":  # noqa: PLR2004  # digest, type, size
                at = end + 1
                yield entry, None
                continue
            size = int(words[2])
            yield entry, answer[end + 1 : end + 1 + size]
            at = end + 2 + size

    def _git(self, *words: str, given: bytes = b"") -> bytes:
        return _run(self._yard, self._place, words, given)


def _in_heavy_folder(path: str) -> bool:
    return bool(files.HEAVY_FOLDERS.intersection(path.split("/")[:-1]))


def _command(at: Path | None, words: Sequence[str]) -> list[str]:
    where = [] if at is None else ["-C", str(at)]
    return ["git", *where, "--no-pager", "--no-replace-objects", *SAFE, *words]


def _run(yard: Yard, at: Path | None, words: Sequence[str], given: bytes = b"") -> bytes:
    said = _said(_command(at, words), yard.environment, given)
    if said is None:
        raise SourceFailed("git could not read the repository")
    return said


def _said(command: Sequence[str], environment: Mapping[str, str], given: bytes = b"") -> bytes | None:
    """What git writes; None when it fails.

    Raises:
        SourceFailed: there is no git.
    """
    try:
        done = subprocess.run(  # noqa: S603  # a fixed program; what comes from outside is checked or after `--`
            command,
            env=dict(environment),
            input=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=RUN_TIMEOUT_S,
            check=True,
            start_new_session=True,
        )
    except FileNotFoundError:
        raise SourceFailed(NO_GIT) from None
    except (subprocess.SubprocessError, OSError):
        return None
    return done.stdout


def _bytes_in(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        with suppress(OSError):
            total += path.lstat().st_size
    return total
