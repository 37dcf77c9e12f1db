"""How fast Loom is on a store of 100,000 memories, beside what it stands on.

One machine, one run: the bare engine, the bare embedder and an empty
Starlette route are measured beside the server, because ratios travel and
milliseconds do not. The bulk of the store is loaded with stand-in vectors of
realistic geometry (a shared direction, as real embeddings have); queries,
set_many and appends use the real model.

    python benchmarks/speed.py [--rows 100000] [--home FOLDER]
"""

import argparse
import random
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles

import httpx

import bulk
from loom.models.interface import Embedder
from server import Server, free_port, running

CALLS = 200
WARM_UP = 20
APPEND_CLIENTS = 8
APPENDS_EACH = 50
MANY = 100
BIG = bulk.BIG_NAMESPACE


def timed_ms(call: Callable[[int], object], calls: int = CALLS) -> list[float]:
    """Milliseconds of each of `calls` calls, after a warm-up."""
    for turn in range(WARM_UP):
        call(-1 - turn)
    times: list[float] = []
    for turn in range(calls):
        start = time.perf_counter()
        call(turn)
        times.append((time.perf_counter() - start) * 1000)
    return times


def shown(name: str, times_ms: list[float], beside: float | None = None, limit: str = "") -> float:
    """Print a row: median, 95th percentile, ratio to the bare figure. The median comes back."""
    middle = median(times_ms)
    late = quantiles(times_ms, n=20)[-1]
    ratio = f"{middle / beside:5.2f}x" if beside else "      "
    print(f"{name:<44}{middle:9.2f} {late:9.2f}  {ratio}  {limit}")
    return middle


class Caller:
    """A plain HTTP client of the server, one connection."""

    def __init__(self, url: str) -> None:
        self.http = httpx.Client(base_url=url, timeout=60)

    def __call__(self, op: str, **args: object) -> dict[str, object]:
        """The answer of one operation; an error ends the benchmark."""
        answer = self.http.post(f"/v1/{op}", json=args)
        if answer.status_code != httpx.codes.OK:
            raise SystemExit(f"{op}: {answer.status_code} {answer.text[:300]}")
        return answer.json()


EMPTY_APP = """
import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

async def empty(request):
    await request.body()
    return JSONResponse({})

uvicorn.run(Starlette(routes=[Route("/v1/{op}", empty, methods=["POST"])]), port=PORT, log_level="warning",
            http="httptools", loop="uvloop", access_log=False)
"""


@contextmanager
def empty_server() -> Iterator[str]:
    """A Starlette app with one empty POST route, in a process of its own."""
    port = free_port()
    process = subprocess.Popen([sys.executable, "-c", EMPTY_APP.replace("PORT", str(port))])
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(500):
            try:
                httpx.post(f"{url}/v1/x", json={})
                break
            except httpx.TransportError:
                time.sleep(0.02)
        yield url
    finally:
        process.terminate()
        process.wait(10)


def appends(call: Caller, home: Path) -> None:
    """profile.append: one client against the bare transaction, then eight clients on one section."""
    bare = shown("append, bare transaction", timed_ms(bulk.bare_append(home)))
    times = timed_ms(
        lambda turn: call(
            "profile.append", namespace="append", agent="one", label=f"s{turn // 20}", addition=f"line {turn}"
        )
    )
    shown("profile.append over HTTP", times, bare, "goal: within 3x")
    failures: list[BaseException] = []

    def work(client: int) -> None:
        own = Caller(str(call.http.base_url))
        try:
            for turn in range(APPENDS_EACH):
                own("profile.append", namespace="append", agent="many", label="all", addition=f"c{client}n{turn}")
        except SystemExit as error:
            failures.append(error)

    start = time.perf_counter()
    threads = [threading.Thread(target=work, args=(client,)) for client in range(APPEND_CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took_s = time.perf_counter() - start
    rendered = str(call("profile.render", namespace="append", agent="many", scope="this_agent")["rendered"])
    kept = len({word for word in rendered.replace("<", " ").replace(">", " ").split() if word.startswith("c")})
    total = APPEND_CLIENTS * APPENDS_EACH
    print(f"8 clients, one section: {total} appends in {took_s:.2f} s, {kept} kept, {len(failures)} errors")


def gets(call: Caller) -> None:
    """memory.get against an empty route."""
    with empty_server() as url:
        empty = httpx.Client(base_url=url)
        bare = shown("empty Starlette POST route", timed_ms(lambda _: empty.post("/v1/x", json={"a": 1})))
        keys = [bulk.key_of(number) for number in random.Random(1).sample(range(1000), CALLS)]
        times = timed_ms(lambda turn: call("memory.get", namespace=BIG, agent="bench", memory_key=keys[turn]))
        shown("memory.get over HTTP", times, bare, "goal: within 4x")


def searches(call: Caller, embedder: Embedder) -> None:
    """search.query in the namespace that holds half of the store."""
    queries = bulk.queries(CALLS + WARM_UP)
    shown("query embedding, bare", timed_ms(lambda turn: embedder.embed_query(queries[turn], 10)))
    legs: dict[str, list[float]] = {}

    def ask(turn: int) -> None:
        call("search.query", namespace=BIG, namespace_scope="this", query=queries[turn])

    shown("search.query over HTTP", timed_ms(ask), None, "goal: p50 < 40, p95 < 100 ms")
    for turn in range(50):
        answer = call("search.query", namespace=BIG, namespace_scope="this", query=queries[turn], explain=True)
        timings = answer.get("timings_ms")
        if isinstance(timings, dict):
            for leg, ms in timings.items():
                legs.setdefault(str(leg), []).append(float(ms))
    for leg, times in legs.items():
        shown(f"  leg {leg}", times)


def many(call: Caller, embedder: Embedder) -> None:
    """set_many against the embedder alone on the same texts."""
    texts = bulk.texts(MANY, seed=time.time_ns())
    embedder.embed_passages(texts[:4], 60)
    start = time.perf_counter()
    embedder.embed_passages(texts, 600)
    bare_s = time.perf_counter() - start
    items = [{"memory_key": f"many/{number}", "value": text} for number, text in enumerate(texts)]
    start = time.perf_counter()
    call("memory.set_many", namespace="many", agent="bench", items=items)
    ours_s = time.perf_counter() - start
    print(
        f"set_many of {MANY}: {MANY / ours_s:.0f} texts/s, embedder alone {MANY / bare_s:.0f}/s: "
        f"{ours_s / bare_s:.2f}x  goal: within 1.5x"
    )


def help_cpu_s() -> float:
    """CPU seconds of `loom --help`, the median of five."""
    times: list[float] = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", "loom", "--help"], check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return median(times)


def report(server: Server, home: Path) -> None:
    """Every figure."""
    call = Caller(server.url)
    embedder = bulk.real_embedder()
    print(f"ready after {server.ready_s:.2f} s (goal: under 3); loom --help {help_cpu_s():.2f} s CPU (goal: under 0.5)")
    print(f"{'':<44}{'p50 ms':>9} {'p95 ms':>9}  {'ratio':>6}")
    gets(call)
    searches(call, embedder)
    appends(call, home)
    many(call, embedder)
    print(f"resident memory of the server: {server.resident_mb():.0f} MB (goal: under 600)")


def main() -> None:
    """Load the store, or take the one in `--home`, and print the figures."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rows", type=int, default=100_000)
    options.add_argument("--home", type=Path, help="keep the store here, and use it again when it is loaded")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        home = given.home or Path(scratch)
        print(f"{given.rows} memories in {bulk.NAMESPACES} namespaces, half in one; stand-in vectors for this bulk")
        bulk.load(home, given.rows)
        with running(home) as server:
            report(server, home)


if __name__ == "__main__":
    main()
