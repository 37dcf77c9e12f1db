"""The figures of search.query over six full planes, and of what fills planes: turns and source code.

A leg alone is its plane's own search over HTTP, one call at a time, with the question embedded as in
search.query; the parts of a call are what search.query says that each leg took beside the others.
"""

import shutil
import sysconfig
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median, quantiles
from typing import cast

import bulk
import bulk_planes
from bulk_planes import NAMESPACE
from engines import Engine
from figures import Caller, shown, timed_ms
from loom import compose
from loom.jobs import outbox
from loom.models.interface import Embedder

CALLS = 150
TOP_K = 5
TURNS = 600
TURNS_A_CALL = 100
TURN_WORDS = 40
CODE_LINES = 100_000
POLL_S = 0.02
WAIT_MAX_S = 600.0
KNOWN_NAMES = (
    "open", "get", "close", "run", "copy", "parse", "dumps", "loads", "Thread", "Popen", "warn", "join", "append",
    "namedtuple", "getLogger", "urlopen", "isinstance", "compile", "main", "read",
)  # fmt: skip


def searches(call: Caller) -> None:
    """search.query with every plane full, beside each leg alone."""
    amount = CALLS + 20
    plain, every = bulk.queries(amount), bulk_planes.defects(2 * amount)
    defects, reports = every[:amount], every[amount:]
    alone: dict[str, float] = {}
    for seed, op in enumerate(("memory.search", "knowledge.search", "conversation.search")):
        alone[op] = shown(f"  {op} alone", timed_ms(_asking(call, op, bulk.queries(amount, seed)), CALLS))
    profile = _asking(call, "search.query", bulk.queries(amount, seed=11), namespace="nothing but a profile")
    alone["an empty search.query"] = shown("  search.query of an empty namespace", timed_ms(profile, CALLS))
    check = timed_ms(lambda turn: call("tracker.duplicate_check", namespace=NAMESPACE, title=reports[turn]), CALLS)
    alone["tracker.duplicate_check"] = shown("  tracker.duplicate_check alone", check)
    shown("  code.search alone", timed_ms(_asking(call, "code.search", bulk.queries(amount, seed=12)), CALLS))
    slowest = max(alone, key=lambda op: alone[op])
    print(f"  sum of those: {sum(alone.values()):.1f} ms; the slowest is {slowest}")
    goal = f"of {slowest}; goals: p50 < 60 ms, within 1.3x"
    shown("search.query, six full planes", timed_ms(_asking(call, "search.query", plain), CALLS), alone[slowest], goal)
    shown("search.query about a defect", timed_ms(_asking(call, "search.query", defects), CALLS), alone[slowest])
    parts(call, defects)


def _asking(call: Caller, op: str, queries: Sequence[str], namespace: str = NAMESPACE) -> Callable[[int], object]:
    scope = {"namespace_scope": "this"} if op != "code.search" else {}
    return lambda turn: call(op, namespace=namespace, query=queries[turn], top_k=TOP_K, **scope)


def parts(call: Caller, queries: Sequence[str]) -> None:
    """What each leg took inside of search.query."""
    legs: dict[str, list[float]] = {}
    for query in queries[:50]:
        answer = call("search.query", namespace=NAMESPACE, namespace_scope="this", query=query, explain=True)
        for leg, ms in cast("dict[str, float]", answer["timings_ms"]).items():
            legs.setdefault(leg, []).append(ms)
    for leg, times in legs.items():
        print(f"{f'  leg {leg} beside the others':<44}{median(times):9.2f} {quantiles(times, n=20)[-1]:9.2f}")


def turns(call: Caller, engine: Engine, embedder: Embedder) -> None:
    """conversation.append until every turn has its vector, against the embedder alone on the same texts."""
    texts = bulk.texts(TURNS, seed=time.time_ns(), words_each=TURN_WORDS)
    embedder.embed_passages(texts[:4], 60)
    start = time.perf_counter()
    embedder.embed_passages(texts, 600)
    bare_s = time.perf_counter() - start
    session = f"ingest {time.time_ns()}"
    start = time.perf_counter()
    for begin in range(0, TURNS, TURNS_A_CALL):
        messages = [{"role": "user", "content": text} for text in texts[begin : begin + TURNS_A_CALL]]
        call("conversation.append", namespace="ingest", session=session, messages=messages)
    appended_s = time.perf_counter() - start
    _idle(engine)
    ours_s = time.perf_counter() - start
    print(
        f"ingest of {TURNS} turns: appended after {appended_s:.1f} s, found by meaning after {ours_s:.1f} s"
        f" ({TURNS / ours_s:.0f}/s), embedder alone {TURNS / bare_s:.0f}/s: {ours_s / bare_s:.2f}x  goal: within 1.5x"
    )


def _idle(engine: Engine) -> None:
    """Wait until no work is left for later."""
    settings = engine.settings
    database = compose.database(settings)
    deadline = time.perf_counter() + WAIT_MAX_S
    while time.perf_counter() < deadline:
        with database.transaction(settings.org, write=False) as tx:
            if outbox.waiting(tx) == 0:
                break
        time.sleep(POLL_S)
    else:
        raise SystemExit(f"work was left after {WAIT_MAX_S:.0f} s")
    database.close()


def library(folder: Path) -> int:
    """A copy of the standard library's source, about 100,000 lines of it; how many there are."""
    standard = Path(sysconfig.get_path("stdlib"))
    total = 0
    for path in sorted(standard.rglob("*.py")):
        place = path.relative_to(standard)
        if not {"site-packages", "test", "tests"}.isdisjoint(place.parts):
            continue
        lines = path.read_bytes().count(b"\n")
        if total + lines > CODE_LINES:
            continue
        total += lines
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, folder / place)
    return total


def code(call: Caller, folder: Path) -> None:
    """code.index of 100,000 lines, again after one changed file, and who calls what in them."""
    total = library(folder)
    namespace = f"lines {time.time_ns()}"
    took_s = _indexed(call, namespace, str(folder))
    status = call("code.index_status", namespace=namespace)
    print(f"code.index of {total} lines: {took_s:.1f} s, {status['symbols']} symbols, without vectors  goal: < 60 s")
    changed = folder / "argparse.py"
    changed.write_text(changed.read_text("utf-8") + "\n\ndef one_more():\n    return argparse\n", "utf-8")
    print(f"code.index after one changed file: {_indexed(call, namespace, str(folder)):.2f} s  goal: < 2 s")
    shown(
        "code.callers of common names",
        timed_ms(lambda turn: call("code.callers", namespace=namespace, name=_name(turn))),
        limit="goal: p50 < 50 ms",
    )


def _name(turn: int) -> str:
    return KNOWN_NAMES[turn % len(KNOWN_NAMES)]


def _indexed(call: Caller, namespace: str, folder: str) -> float:
    """Seconds from the request until the index is whole."""
    start = time.perf_counter()
    call("code.index", namespace=namespace, source=folder, vectors=False)
    while time.perf_counter() - start < WAIT_MAX_S:
        state = call("code.index_status", namespace=namespace)["state"]
        if state == "failed":
            raise SystemExit("code.index failed")
        if state == "ready":
            return time.perf_counter() - start
        time.sleep(POLL_S)
    raise SystemExit(f"code.index was not done after {WAIT_MAX_S:.0f} s")
