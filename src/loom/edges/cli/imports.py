"""`loom import FILE`: memories with their history from a file of `loom export`.

A line that is there already is left as it is, so that an import that was cut
short is finished by running it again.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from loom.edges.cli.output import show_json
from loom.edges.cli.problem import FAILED, Problem
from loom.edges.cli.shell import LoadCompose, Shell, add_common, opened
from loom.edges.cli.transfer import LINES_MAX, progress

REFUSALS_SHOWN_MAX = 20

Numbered = tuple[int, Mapping[str, Any]]
"""A line's number, from 1, and the object it holds."""


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


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_common(parser)
    parser.add_argument("file", help="the file to read, - for standard input")


def run(args: argparse.Namespace, compose: LoadCompose) -> int:
    """Import; exit code 1 when a line was refused."""
    outcome = Outcome()
    with opened(compose, args.url) as shell:
        if args.file == "-":
            _import(shell, sys.stdin, None, outcome)
        else:
            _from_file(shell, Path(args.file), outcome)
    _report(outcome, as_json=args.json)
    return FAILED if outcome.refused else 0


def _from_file(shell: Shell, path: Path, outcome: Outcome) -> None:
    try:
        with path.open("rb") as file:
            total = sum(1 for _ in file)
        with path.open(encoding="utf-8") as file:
            _import(shell, file, total, outcome)
    except OSError as error:
        raise Problem(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise Problem(f"{path} is not UTF-8 text") from None


def _import(shell: Shell, file: TextIO, total: int | None, outcome: Outcome) -> None:
    with progress() as bar:
        task = bar.add_task("importing", total=total)
        for batch in batches(parsed(file, outcome)):
            answer = shell.call("memory.import", {"lines": [line for _, line in batch]})
            outcome.imported += int(answer["imported"])
            outcome.unchanged += int(answer["unchanged"])
            outcome.refused += [(batch[each["line"]][0], str(each["reason"])) for each in answer["refused"]]
            bar.update(task, completed=batch[-1][0])


def parsed(file: Iterable[str], outcome: Outcome) -> Iterator[Numbered]:
    """The objects of a file with their line numbers; what is not an object is refused here. Empty lines are passed."""
    for number, text in enumerate(file, start=1):
        if not text.strip():
            continue
        try:
            line = json.loads(text)
        except ValueError:
            line = None
        if isinstance(line, dict):
            yield number, line
        else:
            outcome.refused.append((number, "is not a JSON object"))


def batches(lines: Iterable[Numbered]) -> Iterator[list[Numbered]]:
    """Lines in lists of at most 500."""
    batch: list[Numbered] = []
    for line in lines:
        batch.append(line)
        if len(batch) == LINES_MAX:
            yield batch
            batch = []
    if batch:
        yield batch


def _report(outcome: Outcome, *, as_json: bool) -> None:
    refused = sorted(outcome.refused)
    if as_json:
        rows = [{"line": number, "reason": reason} for number, reason in refused]
        show_json({"imported": outcome.imported, "unchanged": outcome.unchanged, "refused": rows})
        return
    for number, reason in refused[:REFUSALS_SHOWN_MAX]:
        print(f"line {number}: {reason}", file=sys.stderr)
    if len(refused) > REFUSALS_SHOWN_MAX:
        print(f"... and {len(refused) - REFUSALS_SHOWN_MAX} more", file=sys.stderr)
    print(f"{outcome.imported} imported, {outcome.unchanged} unchanged, {len(refused)} refused", file=sys.stderr)
