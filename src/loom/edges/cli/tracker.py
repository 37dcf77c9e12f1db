"""`loom tracker import FILE`: issues as GitHub's REST API or `gh issue list --json` writes them.

An issue that is there already is left as it is, so that an import that was cut short is finished
by running it again, and a repeated one brings what changed.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from loom.edges.cli.output import show_json
from loom.edges.cli.printable import printable
from loom.edges.cli.problem import FAILED, Problem
from loom.edges.cli.settling import add_later, settle
from loom.edges.cli.shell import LoadCompose, Shell, add_common, opened
from loom.edges.cli.transfer import progress

BATCH_ITEMS_MAX = 200
BATCH_LENGTH_MAX = 1_000_000
"""Characters of one call's items, about: below the server's limit on a body, whatever alphabet they are in."""

REFUSALS_SHOWN_MAX = 20
SPACE = re.compile(r"[\s,]*")
UNCARRIED = re.compile("[\x00\ud800-\udfff]")
"""What no store carries; in an export it stands for nothing that could be kept."""

COUNTED = ("added", "updated", "unchanged", "pull_requests")


@dataclass
class Outcome:
    """What became of the items; `refused` has each one's place in the file, from 1, and the reason."""

    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTED, 0))
    refused: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    repository: str = ""
    embedding_later: bool = False


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parts(parser)


def parts(parser: argparse.ArgumentParser) -> Sequence[argparse.ArgumentParser]:
    """Declare the flags; the parsers of what can be done."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="import")
    reading = actions.add_parser("import", help="read issues from a file")
    reading.add_argument("file", help="a JSON file of issues, - for standard input; pull requests are left out")
    reading.add_argument("--namespace", default="", help="the tracker namespace they go to")
    reading.add_argument("--org", default="", help="the org that keeps them")
    reading.add_argument("--repository", default="", help="owner/name, where the issues' addresses do not say it")
    add_later(reading)
    add_common(reading)
    return (reading,)


def run(args: argparse.Namespace, compose: LoadCompose) -> int:
    """Import; exit code 1 when an item was refused."""
    items = list(items_of(_text(args.file)))
    given = {"namespace": args.namespace, "org": args.org, "repository": args.repository}
    where = {name: value for name, value in given.items() if value}
    outcome = Outcome()
    with opened(compose, args.url) as shell:
        with progress() as bar:
            task = bar.add_task("importing", total=len(items))
            place = 0
            for batch in batches(items):
                _send(shell, place, batch, where, outcome)
                place += len(batch)
                bar.update(task, completed=place)
        settle(shell, later=args.later)
    _report(outcome, as_json=args.json)
    return FAILED if outcome.refused else 0


def _text(name: str) -> str:
    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise Problem(f"cannot read {name}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise Problem(f"{name} is not UTF-8 text") from None


def items_of(text: str) -> Iterator[object]:
    """The issues of a file: one list of them, several lists after each other (`gh api --paginate`), or one a line.

    Raises:
        Problem: the file is not JSON.
    """
    decoder = json.JSONDecoder()
    place = SPACE.match(text)
    at = place.end() if place else 0
    while at < len(text):
        try:
            found, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            line = text.count("\n", 0, at) + 1
            raise Problem(f"the file is not JSON (at line {line}); write it with `gh issue list --json`") from None
        yield from cast("list[object]", found) if isinstance(found, list) else [found]
        place = SPACE.match(text, at)
        at = place.end() if place else at


def batches(items: Sequence[object]) -> Iterator[list[object]]:
    """Items in lists of at most 200, and of about a million characters; a longer item stands alone."""
    batch: list[object] = []
    length = 0
    for item in items:
        size = len(json.dumps(item, ensure_ascii=False))
        if batch and (len(batch) == BATCH_ITEMS_MAX or length + size > BATCH_LENGTH_MAX):
            yield batch
            batch, length = [], 0
        batch.append(carried(item))
        length += size
    if batch:
        yield batch


def carried(value: object) -> object:
    """The value with what no store carries replaced in its texts."""
    if isinstance(value, str):
        return UNCARRIED.sub("\ufffd", value)
    if isinstance(value, list):
        return [carried(one) for one in cast("list[object]", value)]
    if isinstance(value, dict):
        return {name: carried(one) for name, one in cast("dict[str, object]", value).items()}
    return value


def _send(shell: Shell, start: int, batch: Sequence[object], where: Mapping[str, str], outcome: Outcome) -> None:
    answer: Mapping[str, Any] = shell.call("tracker.import", {**where, "items": list(batch)})
    for name in COUNTED:
        outcome.counts[name] += int(answer[name])
    outcome.refused += [(start + int(one["item"]) + 1, str(one["reason"])) for one in answer["refused"]]
    outcome.repository = str(answer["repository"])
    outcome.embedding_later = outcome.embedding_later or bool(answer["embedding_later"])


def _report(outcome: Outcome, *, as_json: bool) -> None:
    if as_json:
        rows = [{"item": place, "reason": reason} for place, reason in outcome.refused]
        show_json({**outcome.counts, "refused": rows, "repository": outcome.repository})
        return
    for place, reason in outcome.refused[:REFUSALS_SHOWN_MAX]:
        print(f"item {place}: {printable(reason)}", file=sys.stderr)
    if len(outcome.refused) > REFUSALS_SHOWN_MAX:
        print(f"... and {len(outcome.refused) - REFUSALS_SHOWN_MAX} more", file=sys.stderr)
    counts = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in outcome.counts.items())
    of = f" of {printable(outcome.repository)}" if outcome.repository else ""
    print(f"{counts}, {len(outcome.refused)} refused{of}", file=sys.stderr)
    if outcome.embedding_later:
        print("they are found by words now, and by meaning as a running server gets to them", file=sys.stderr)
