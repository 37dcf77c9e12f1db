"""`loom import claude-code|chatgpt|codex PATH`."""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from loom.edges.cli.output import show_json
from loom.edges.cli.printable import printable
from loom.edges.cli.problem import FAILED, Problem
from loom.edges.cli.settling import settle
from loom.edges.cli.shell import LoadCompose, opened
from loom.edges.cli.transcripts import FORMATS
from loom.edges.cli.transcripts.pieces import Advance, Format, Piece
from loom.edges.cli.transcripts.sending import Outcome, Sender
from loom.edges.cli.transfer import progress

REFUSALS_SHOWN_MAX = 20


def import_conversations(args: argparse.Namespace, compose: LoadCompose) -> int:
    """Import; exit code 1 when something could not be read or was refused."""
    form = FORMATS[args.what]
    paths = form.files(Path(args.path))
    where = {name: value for name in ("namespace", "user_id", "org") if (value := getattr(args, name))}
    outcome = Outcome()
    with opened(compose, args.url) as shell:
        with progress(of_bytes=True) as bar:
            task = bar.add_task("importing", total=sum(map(form.size, paths)))
            sender = Sender(shell.call, {"agent": form.agent, **where}, outcome, copies=form.copies)
            for path in paths:
                sender.take(_pieces(form, path, lambda count: bar.advance(task, count)))
        settle(shell, later=args.later)
    _report(outcome, len(paths), as_json=args.json)
    return FAILED if outcome.refused else 0


def _pieces(form: Format, path: Path, advance: Advance) -> Iterator[Piece]:
    try:
        yield from form.read(path, advance)
    except OSError as error:
        raise Problem(f"cannot read {path}: {error.strerror}") from None


def _report(outcome: Outcome, count: int, *, as_json: bool) -> None:
    refused = [{"file": one.place.file, "line": one.place.number, "reason": one.reason} for one in outcome.refused]
    counts = {
        "sessions": len(outcome.sessions),
        "imported": outcome.imported,
        "unchanged": outcome.unchanged,
        "conflicts": outcome.conflicts,
        "shortened": outcome.shortened,
    }
    if as_json:
        show_json({"files": count, **counts, "refused": refused})
        return
    for one in refused[:REFUSALS_SHOWN_MAX]:
        print(printable(f"{one['file']}, line {one['line']}: {one['reason']}"), file=sys.stderr)
    if len(refused) > REFUSALS_SHOWN_MAX:
        print(f"... and {len(refused) - REFUSALS_SHOWN_MAX} more", file=sys.stderr)
    said = f"{outcome.imported} messages imported, {outcome.unchanged} unchanged, {len(refused)} refused"
    more = f", {outcome.conflicts} in conflict" if outcome.conflicts else ""
    more += f", {outcome.shortened} shortened" if outcome.shortened else ""
    print(f"{said}{more}, in {len(outcome.sessions)} conversations", file=sys.stderr)
