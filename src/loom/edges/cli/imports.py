"""`loom import FILE`: all that a store kept, with its history, from a file of `loom export`.

`loom import claude-code|chatgpt|codex PATH`: other programs' conversations.

What is there already is left as it is, so that an import that was cut
short is finished by running it again.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TextIO, cast

from loom.edges.cli.output import show_json
from loom.edges.cli.printable import printable
from loom.edges.cli.problem import FAILED, MISUSED, Problem
from loom.edges.cli.settling import add_later, settle
from loom.edges.cli.shell import LoadCompose, Shell, add_common, opened
from loom.edges.cli.transcripts import FORMATS
from loom.edges.cli.transcripts.command import import_conversations
from loom.edges.cli.transfer import LINES_MAX, ORG_KIND, progress
from loom.errors import BodyTooLarge

REFUSALS_SHOWN_MAX = 20

BATCH_LENGTH_MAX = 1_000_000
"""Characters of one call's lines, about: below the server's limit on a body, whatever alphabet they are in."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line that holds an object.

    Attributes:
        number: its place in the file, from 1.
        content: the object.
        length: its length as text, characters.
        org: the org it goes to; empty for the caller's own.
    """

    number: int
    content: Mapping[str, Any]
    length: int
    org: str = ""


@dataclass
class Outcome:
    """What became of the lines.

    Attributes:
        imported: lines that changed the store.
        unchanged: lines that were there already.
        refused: line number and reason.
    """

    imported: int = 0
    unchanged: int = 0
    refused: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])


class Target:
    """Where the lines of a file go.

    Args:
        shell: the way to the store.
        org: the org that takes them all; empty for the caller's own, and for a plane the one it keeps here.
    """

    def __init__(self, shell: Shell, org: str) -> None:
        self.shell = shell
        self._org = org

    def sorted(self, lines: Iterable[Line]) -> Iterator[Line]:
        """The lines with the org that each goes to. One that names a plane is about those after it, and is left out."""
        org = self._org
        for line in lines:
            if line.content.get("kind") == ORG_KIND:
                org = self._org or self._own_org(str(line.content.get("plane")))
            else:
                yield replace(line, org=org)

    def _own_org(self, plane: str) -> str:
        return self.shell.call("store.export", {"limit": 1})["plane_orgs"].get(plane, "")


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_common(parser)
    parser.add_argument(
        "what",
        metavar="claude-code|chatgpt|codex|FILE",
        help="whose conversations PATH holds; or a file of loom export, - for standard input",
    )
    parser.add_argument(
        "path",
        metavar="PATH",
        nargs="?",
        help="a transcript or session file, a folder of them, or a ChatGPT export (conversations.json or its zip)",
    )
    parser.add_argument("--namespace", help="for conversations: where to keep them, else the install's namespace")
    parser.add_argument("--user-id", help="for conversations: whose they are; without it, nobody's")
    parser.add_argument("--org", help="the org to keep all of it in")
    add_later(parser)


def run(args: argparse.Namespace, compose: LoadCompose) -> int:
    """Import; exit code 1 when a line was refused."""
    if args.what in FORMATS and args.path is not None:
        return import_conversations(args, compose)
    if args.path is not None:
        names = ", ".join(FORMATS)
        raise Problem(f"conversations are those of {names}; a file of loom export stands alone", MISUSED)
    if args.what in FORMATS and not Path(args.what).exists():
        raise Problem(f"name the file or folder: loom import {args.what} PATH", MISUSED)
    return import_store(args, compose)


def import_store(args: argparse.Namespace, compose: LoadCompose) -> int:
    """Import the lines of a file of `loom export`, `-` for standard input; they say themselves where they belong."""
    outcome = Outcome()
    with opened(compose, args.url) as shell:
        target = Target(shell, args.org or "")
        if args.what == "-":
            _import(target, sys.stdin, None, outcome)
        else:
            _from_file(target, Path(args.what), outcome)
        settle(shell, later=args.later)
    _report(outcome, as_json=args.json)
    return FAILED if outcome.refused else 0


def _from_file(target: Target, path: Path, outcome: Outcome) -> None:
    try:
        with path.open("rb") as file:
            total = sum(1 for _ in file)
        with path.open(encoding="utf-8") as file:
            _import(target, file, total, outcome)
    except OSError as error:
        raise Problem(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise Problem(f"{path} is not UTF-8 text") from None


def _import(target: Target, file: TextIO, total: int | None, outcome: Outcome) -> None:
    with progress() as bar:
        task = bar.add_task("importing", total=total)
        for batch in batches(target.sorted(parsed(file, outcome))):
            _send(target.shell, batch, outcome)
            bar.update(task, completed=batch[-1].number)


def _send(shell: Shell, batch: Sequence[Line], outcome: Outcome) -> None:
    try:
        where = {"org": batch[0].org} if batch[0].org else {}
        answer = shell.call("store.import", {**where, "lines": [line.content for line in batch]})
    except BodyTooLarge as error:
        if len(batch) > 1:
            raise
        outcome.refused.append((batch[0].number, error.message))
        return
    outcome.imported += int(answer["imported"])
    outcome.unchanged += int(answer["unchanged"])
    outcome.refused += [(batch[int(each["line"])].number, str(each["reason"])) for each in answer["refused"]]


def parsed(file: Iterable[str], outcome: Outcome) -> Iterator[Line]:
    """The objects of a file with their line numbers; what is not an object is refused here. Empty lines are passed."""
    for number, text in enumerate(file, start=1):
        if not text.strip():
            continue
        try:
            content = json.loads(text)
        except ValueError:
            content = None
        if isinstance(content, dict):
            yield Line(number, cast("dict[str, Any]", content), len(text))
        else:
            outcome.refused.append((number, "is not a JSON object"))


def batches(lines: Iterable[Line]) -> Iterator[list[Line]]:
    """Lines of one org in lists of at most 500, and of about a million characters; a longer line stands alone."""
    batch: list[Line] = []
    length = 0
    for line in lines:
        full = len(batch) == LINES_MAX or length + line.length > BATCH_LENGTH_MAX
        if batch and (full or line.org != batch[0].org):
            yield batch
            batch, length = [], 0
        batch.append(line)
        length += line.length
    if batch:
        yield batch


def _report(outcome: Outcome, *, as_json: bool) -> None:
    refused = sorted(outcome.refused)
    if as_json:
        rows = [{"line": number, "reason": reason} for number, reason in refused]
        show_json({"imported": outcome.imported, "unchanged": outcome.unchanged, "refused": rows})
        return
    for number, reason in refused[:REFUSALS_SHOWN_MAX]:
        print(f"line {number}: {printable(reason)}", file=sys.stderr)
    if len(refused) > REFUSALS_SHOWN_MAX:
        print(f"... and {len(refused) - REFUSALS_SHOWN_MAX} more", file=sys.stderr)
    print(f"{outcome.imported} imported, {outcome.unchanged} unchanged, {len(refused)} refused", file=sys.stderr)
