"""`loom export FILE`: all that the store keeps, with its history, one JSON object a line.

What planes keep in orgs of their own on a single user's install follows, each behind a line that names the plane.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from loom.edges.cli.problem import Problem
from loom.edges.cli.shell import LoadCompose, Shell, add_common, opened
from loom.edges.cli.transfer import LINES_MAX, ORG_KIND, progress

Page = tuple[list[Mapping[str, Any]], int | None]
"""Lines, and how many there are in all if that is known."""


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_common(parser)
    parser.add_argument("file", help="the file to write, - for standard output")
    parser.add_argument("--namespace", help="only this namespace; without it, all that you reach")
    parser.add_argument("--org", help="the org to export, and no other")


def run(args: argparse.Namespace, compose: LoadCompose) -> int:
    """Export to a file that appears whole or not at all."""
    scope: dict[str, object] = {"namespace": args.namespace} if args.namespace else {"all_namespaces": True}
    if args.org:
        scope["org"] = args.org
    with opened(compose, args.url, embeds=False) as shell:
        if args.file == "-":
            count = _write(pages(shell, scope), lambda line: print(line))  # noqa: PLW0108  # print takes more than a line
        else:
            count = _to_file(pages(shell, scope), Path(args.file))
    if args.json:
        print(json.dumps({"exported": count}), file=sys.stderr if args.file == "-" else sys.stdout)
    else:
        print(f"{count} lines exported", file=sys.stderr)
    return 0


def pages(shell: Shell, scope: Mapping[str, object]) -> Iterator[Page]:
    """Every page of every org, in order; Problem when the namespace that was named does not exist."""
    others: dict[str, str] = {}
    done = 0
    for lines, total, plane_orgs in org_pages(shell, scope):
        if not lines and not done and "namespace" in scope:
            # One that exists has at least the line that describes it.
            raise Problem("there is no namespace of this name; `loom namespace list` shows them")
        others = plane_orgs
        done += len(lines)
        yield lines, total
    if "namespace" in scope or "org" in scope:
        return
    seen: set[str] = set()
    for plane, org in others.items():
        if org in seen:
            continue
        seen.add(org)
        begun, before = False, done
        for lines, total, _ in org_pages(shell, {**scope, "org": org}):
            head = [] if begun or not lines else [{"kind": ORG_KIND, "plane": plane}]
            begun = begun or bool(lines)
            done += len(head) + len(lines)
            yield [*head, *lines], before + total


def org_pages(
    shell: Shell, scope: Mapping[str, object]
) -> Iterator[tuple[list[Mapping[str, Any]], int, dict[str, str]]]:
    """Every page of store.export for one org: its lines, how many rows there are in all, and planes' own orgs."""
    cursor = ""
    while True:
        answer = shell.call("store.export", {**scope, "limit": LINES_MAX, "cursor": cursor})
        yield answer["lines"], int(answer["total"]), answer["plane_orgs"]
        cursor = answer["next_cursor"]
        if not cursor:
            return


def _write(found: Iterable[Page], write: Callable[[str], object]) -> int:
    count = 0
    with progress() as bar:
        task = bar.add_task("exporting", total=None)
        for lines, total in found:
            for line in lines:
                write(json.dumps(line, ensure_ascii=False, separators=(",", ":")))
            count += len(lines)
            bar.update(task, completed=count, total=max(total, count) if total else None)
    return count


def _to_file(found: Iterable[Page], path: Path) -> int:
    """Write beside the target and move it there at the end; on failure the old file stays."""
    unfinished = path.with_name(path.name + ".unfinished")
    try:
        with unfinished.open("w", encoding="utf-8") as file:
            count = _write(found, lambda line: file.write(line + "\n"))
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except OSError as error:
        raise Problem(f"cannot write {path}: {error.strerror}") from None
    finally:
        unfinished.unlink(missing_ok=True)
    return count
