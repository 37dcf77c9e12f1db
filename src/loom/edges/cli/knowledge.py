"""`loom knowledge add PATH...`: files and folders become documents.

A file's uri is its absolute path, so that adding a folder again makes new revisions of what changed
and leaves the rest. A large file is sent in parts, to the local store and to a server alike.
"""

import argparse
import base64
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.progress import Progress, TaskID

from loom.edges.cli.output import show_json
from loom.edges.cli.printable import printable
from loom.edges.cli.problem import FAILED, MISUSED, Problem
from loom.edges.cli.settling import add_later, settle
from loom.edges.cli.shell import LoadCompose, Shell, add_common, opened
from loom.edges.cli.transfer import progress
from loom.errors import LoomError
from loom.extraction.formats import SUFFIXES, suffix_of
from loom.extraction.reading import FILE_BYTES_MAX

PART_BYTES = 2 * 1024 * 1024
FILES_MAX = 100_000
REFUSALS_SHOWN_MAX = 20


@dataclass(frozen=True, slots=True)
class Source:
    """A file to add, and its uri."""

    path: Path
    uri: str


@dataclass
class Outcome:
    """What became of the files; `refused` has each with its reason."""

    added: int = 0
    unchanged: int = 0
    pending: int = 0
    refused: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parts(parser)


def parts(parser: argparse.ArgumentParser) -> Sequence[argparse.ArgumentParser]:
    """Declare the flags; the parsers of what can be done."""
    what = parser.add_subparsers(dest="what", metavar="add", required=True)
    adding = what.add_parser("add", help="add files, and the documents in folders")
    adding.add_argument("paths", nargs="+", metavar="PATH", help="a file, or a folder with all that is in it")
    adding.add_argument("--namespace", help="where they belong")
    adding.add_argument("--org", help="the org they belong to")
    adding.add_argument("--user-id", help="the end user they belong to")
    adding.add_argument("--tag", action="append", help="a tag for each of them; may be repeated")
    adding.add_argument("--title", help="what to call it, for a single file")
    adding.add_argument(
        "--uri", help="begin uris with this instead of the folder's own path; of a single file, all of it"
    )
    add_later(adding)
    add_common(adding)
    return (adding,)


def run(args: argparse.Namespace, compose: LoadCompose) -> int:
    """Add; exit code 1 when a file was refused."""
    found = list(sources(args.paths, args.uri))
    if args.title and len(found) != 1:
        raise Problem("--title names a single file", MISUSED)
    given = {"namespace": args.namespace, "org": args.org, "user_id": args.user_id}
    where = {name: value for name, value in given.items() if value is not None}
    more = {"title": args.title or "", **({"tags": args.tag} if args.tag else {})}
    outcome = Outcome()
    with opened(compose, args.url) as shell:
        with progress() as bar:
            sizes = sum(source.path.stat().st_size for source in found)
            task = bar.add_task("adding", total=max(1, sizes))
            for source in found:
                _add(shell, source, (where, more), outcome, (bar, task))
        left = settle(shell, later=args.later)
        if shell.settle is not None:
            outcome.pending = min(outcome.pending, left)
    _report(outcome, as_json=args.json)
    return FAILED if outcome.refused else 0


def sources(paths: Sequence[str], base: str | None) -> Iterator[Source]:
    """Every file that is named, and in folders those with a suffix of a document; hidden ones are passed over.

    Raises:
        Problem: a path does not exist, a folder holds no document, or there are too many.
    """
    count = 0
    for name in paths:
        path = Path(name)
        if not path.exists():
            raise Problem(f"{name} does not exist")
        files = [path] if path.is_file() else sorted(_documents(path))
        if not files:
            raise Problem(f"{name} holds no document; known are {', '.join(sorted(SUFFIXES))}")
        for file in files:
            count += 1
            if count > FILES_MAX:
                raise Problem(f"more than {FILES_MAX} files; add them folder by folder")
            yield Source(file, _uri(path, file, base))


def _documents(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in names:
            if not name.startswith(".") and suffix_of(name) in SUFFIXES and (Path(place) / name).is_file():
                yield Path(place) / name


def _uri(named: Path, file: Path, base: str | None) -> str:
    if base is None:
        return file.resolve().as_uri()
    return base if file == named else f"{base.rstrip('/')}/{file.relative_to(named).as_posix()}"


def _add(
    shell: Shell,
    source: Source,
    given: tuple[dict[str, str], dict[str, Any]],
    outcome: Outcome,
    shown: tuple[Progress, TaskID],
) -> None:
    """Send one file; what is refused is noted."""
    where, more = given
    bar, task = shown
    size = source.path.stat().st_size
    try:
        if size > FILE_BYTES_MAX:
            outcome.refused.append((str(source.path), f"is larger than {FILE_BYTES_MAX} bytes; split it"))
            return
        content = _sent(shell, source.path, where, shown) if size > PART_BYTES else _whole(source.path)
        body = {**where, **more, **content, "file_name": source.path.name, "uri": source.uri}
        try:
            answer = shell.call("knowledge.add", body)
        except LoomError:
            _discard(shell, where, content)
            raise
    except (LoomError, OSError) as error:
        outcome.refused.append((str(source.path), _reason(error)))
        return
    finally:
        if size <= PART_BYTES:
            bar.update(task, advance=size)
    outcome.added += int(answer["changed"])
    outcome.unchanged += int(not answer["changed"])
    outcome.pending += int(answer["state"] != "ready")


def _reason(error: LoomError | OSError) -> str:
    """Why a file was not added, without the name of a field that the person at the terminal did not fill."""
    if isinstance(error, LoomError):
        return error.message.removeprefix(f"{error.extras.get('field', '')}: ")
    return error.strerror or type(error).__name__


def _whole(path: Path) -> dict[str, str]:
    content = path.read_bytes()
    # An empty file is a blank one to the server, which then says so by its name.
    return {"content_base64": _encoded(content or b"\n")}


def _sent(shell: Shell, path: Path, where: dict[str, str], shown: tuple[Progress, TaskID]) -> dict[str, str]:
    """Send a file in parts; what names them to knowledge.add."""
    bar, task = shown
    upload_id, part = "", 0
    with path.open("rb") as file:
        while content := file.read(PART_BYTES):
            body = {**where, "upload_id": upload_id, "part": part, "content_base64": _encoded(content)}
            upload_id = str(shell.call("knowledge.upload", body)["upload_id"])
            part += 1
            bar.update(task, advance=len(content))
    return {"upload_id": upload_id}


def _discard(shell: Shell, where: dict[str, str], content: dict[str, str]) -> None:
    if "upload_id" in content:
        with suppress(LoomError):
            shell.call("knowledge.upload", {**where, **content, "discard": True})


def _encoded(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")


def _report(outcome: Outcome, *, as_json: bool) -> None:
    if as_json:
        refused = [{"file": file, "reason": reason} for file, reason in outcome.refused]
        show_json(
            {
                "added": outcome.added,
                "unchanged": outcome.unchanged,
                "pending": outcome.pending,
                "refused": refused,
            }
        )
        return
    for file, reason in outcome.refused[:REFUSALS_SHOWN_MAX]:
        print(f"{printable(file)}: {printable(reason)}", file=sys.stderr)
    if len(outcome.refused) > REFUSALS_SHOWN_MAX:
        print(f"... and {len(outcome.refused) - REFUSALS_SHOWN_MAX} more", file=sys.stderr)
    waiting = f", {outcome.pending} to be indexed while the server runs" if outcome.pending else ""
    print(f"{outcome.added} added, {outcome.unchanged} unchanged, {len(outcome.refused)} refused{waiting}")
