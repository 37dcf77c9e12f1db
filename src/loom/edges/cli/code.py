"""`loom code`: index a repository with a progress bar, and see how far an index is."""

import argparse
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from loom.edges.cli.output import show_answer, show_json
from loom.edges.cli.problem import FAILED, Problem
from loom.edges.cli.shell import LoadCompose, Shell, add_common, opened
from loom.edges.cli.transfer import progress

POLL_S = 0.2
STALLED_MAX_S = 900.0
"""How long to wait for an index that does not move."""

NAME_CHARACTERS_MAX = 128
ADDRESS = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*://|^[^/\s]+@[^/\s]+:")
_ODD = re.compile(r"[^\w.-]+")


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    index = actions.add_parser("index", help="index a folder or a git address")
    index.add_argument("source", help="a folder, or a git address")
    index.add_argument("--revision", default="", help="of a git address, the branch, tag or commit")
    index.add_argument("--no-vectors", action="store_true", help="do without finding by meaning, which takes longest")
    index.add_argument("--no-wait", action="store_true", help="ask a running server for it and do not wait")
    index.add_argument("--wait-vectors", action="store_true", help="wait until everything is found by meaning, too")
    status = actions.add_parser("status", help="see how far an index is")
    status.add_argument("source", nargs="?", default="", help="the folder or address, for its namespace")
    for action in (index, status):
        action.add_argument("--namespace", default="", help="the code namespace; by default named as the repository")
        add_common(action)


def run(args: argparse.Namespace, compose: LoadCompose) -> int:
    """Index, or show how far it is; exit code 1 when it failed."""
    source = _whole(args.source)
    given = args.namespace or namespace_of(source)
    where = {"namespace": given} if given else {}
    waiting = args.action == "index" and not args.no_wait
    with opened(compose, args.url, working=waiting) as shell:
        if args.action == "index":
            sent = {**where, "source": source, "revision": args.revision, "vectors": False if args.no_vectors else None}
            answer = shell.call("code.index", sent)
            if waiting:
                answer = _awaited(shell, where, meaning=args.wait_vectors)
        else:
            answer = shell.call("code.index_status", where)
    _show(answer, where, as_json=args.json)
    return FAILED if answer["state"] == "failed" else 0


def _whole(source: str) -> str:
    """A folder as an absolute path; an address as it is."""
    if not source or ADDRESS.match(source):
        return source
    return str(Path(source).expanduser().absolute())


def namespace_of(source: str) -> str:
    """The namespace of a repository, named as it is; empty for none."""
    bare = source.rstrip("/\\").removesuffix(".git")
    return _ODD.sub("-", re.split(r"[/\\:]", bare)[-1])[:NAME_CHARACTERS_MAX].strip("-")


def _awaited(shell: Shell, where: dict[str, str], *, meaning: bool) -> dict[str, Any]:
    """The status once the index is whole, with bars on the way."""

    def state() -> dict[str, Any]:
        return shell.call("code.index_status", where)

    with progress() as bar:
        files = bar.add_task("reading files", total=None)

        def show_files(answer: dict[str, Any]) -> tuple[int, int]:
            bar.update(files, total=answer["files_total"] or None, completed=answer["files_done"])
            return answer["files_done"], answer["files_total"]

        answer = _until(state, lambda now: now["state"] in ("ready", "failed", "none"), show_files)
        if meaning and answer["vectors"] and answer["state"] == "ready":
            vectors = bar.add_task("reading meaning", total=answer["symbols"])

            def show_vectors(answer: dict[str, Any]) -> tuple[int, int]:
                bar.update(vectors, total=answer["symbols"], completed=answer["embedded"])
                return answer["embedded"], answer["symbols"]

            answer = _until(state, lambda now: now["embedded"] >= now["symbols"], show_vectors)
    return answer


def _until(
    state: Callable[[], dict[str, Any]],
    done: Callable[[dict[str, Any]], bool],
    show: Callable[[dict[str, Any]], tuple[int, int]],
) -> dict[str, Any]:
    """Look until it is done; a Problem when nothing moves for too long."""
    moved_s, last = time.monotonic(), (-1, -1)
    while True:
        answer = state()
        now = show(answer)
        if done(answer):
            return answer
        if now != last:
            moved_s, last = time.monotonic(), now
        elif time.monotonic() - moved_s > STALLED_MAX_S:
            raise Problem("nothing moves; the index goes on where it is when a server runs", FAILED)
        time.sleep(POLL_S)


def _show(answer: dict[str, Any], where: dict[str, str], *, as_json: bool) -> None:
    if as_json:
        show_json(answer)
        return
    shown = {"namespace": where.get("namespace", "-"), **answer}
    shown["languages"] = ", ".join(
        f"{one['language'] or 'other'} {one['files']} files, {one['lines']} lines" for one in answer["languages"]
    )
    shown["skipped"] = ", ".join(f"{reason} {count}" for reason, count in answer["skipped"].items())
    show_answer({name: value for name, value in shown.items() if value not in ("", None)})
