"""How fast Loom is on a store of 100,000 memories, beside what it stands on.

One machine, one run: the bare engine, the bare embedder and an empty
Starlette route are measured beside the server, because ratios travel and
milliseconds do not. The bulk of the store is loaded with stand-in vectors of
realistic geometry (a shared direction, as real embeddings have); queries,
set_many and appends use the real model.

    python benchmarks/speed.py [--engine both] [--part planes] [--rows 100000] [--home FOLDER]

Both engines are measured in one run, each on a store of the same texts. PostgreSQL is the one that comes as a
wheel, on the same machine, and what it is measured against is the same work done with psycopg alone.

The part `planes` has a store of its own, with all six planes full in one namespace (see `bulk_planes`).
"""

import argparse
import random
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median

import httpx

import bare_postgres
import bulk
import bulk_planes
import engines
import planes
from engines import Engine
from figures import CALLS, WARM_UP, Caller, shown, timed_ms
from loom.models.interface import Embedder
from server import Server, free_port, running

APPEND_CLIENTS = 8
APPENDS_EACH = 50
CROWD_CLIENTS = 16
MANY = 100
RECIPE_CALLS = 100
BIG = bulk.BIG_NAMESPACE
MEMORIES, PLANES = "memories", "planes"

APP = """
import sys
import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

async def empty(request):
    await request.body()
    return JSONResponse({})

app = Starlette(routes=[Route("/v1/{op}", empty, methods=["POST"])])
SELECTING
uvicorn.run(app, port=PORT, log_level="warning", http="httptools", loop="uvloop", access_log=False)
"""
SELECTING = """
sys.path.insert(0, FOLDER)
import bare_postgres
app = bare_postgres.app(URL, SPACE)
"""


@contextmanager
def bare_server(database_url: str = "") -> Iterator[str]:
    """A Starlette app with one POST route in a process of its own: an empty one, or one with a bare select."""
    port = free_port()
    told = SELECTING if database_url else ""
    for name, value in (("FOLDER", str(Path(__file__).parent)), ("URL", database_url), ("SPACE", BIG)):
        told = told.replace(name, repr(value))
    process = subprocess.Popen([sys.executable, "-c", APP.replace("SELECTING", told).replace("PORT", str(port))])
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(500):
            try:
                httpx.get(f"{url}/")
                break
            except httpx.TransportError:
                time.sleep(0.02)
        yield url
    finally:
        process.terminate()
        process.wait(10)


def appends(call: Caller, engine: Engine) -> None:
    """profile.append by one client against the bare transaction."""
    bare = shown("append, bare transaction", timed_ms(bulk.bare_append(engine)))
    times = timed_ms(
        lambda turn: call(
            "profile.append", namespace="append", agent="one", label=f"s{turn // 20}", addition=f"line {turn}"
        )
    )
    shown("profile.append over HTTP", times, bare, "goal: within 3x")


def crowd(urls: Sequence[str], clients: int, beside_per_s: float | None = None) -> None:
    """Many clients append to one section, over these servers in turn; before that, each a few times to another."""
    failures: list[BaseException] = []
    agent = f"many {time.time_ns()}"
    begin = threading.Barrier(clients + 1)

    def work(client: int) -> None:
        own = Caller(urls[client % len(urls)])
        try:
            for turn in range(bare_postgres.WARM_UP_EACH):
                own("profile.append", namespace="append", agent=agent, label="before", addition=f"w{client}n{turn}")
            begin.wait()
            for turn in range(APPENDS_EACH):
                own("profile.append", namespace="append", agent=agent, label="all", addition=f"c{client}n{turn}")
        except SystemExit as error:
            begin.abort()
            failures.append(error)

    threads = [threading.Thread(target=work, args=(client,)) for client in range(clients)]
    for thread in threads:
        thread.start()
    begin.wait()
    start = time.perf_counter()
    for thread in threads:
        thread.join()
    took_s = time.perf_counter() - start
    shown_text = Caller(urls[0])("profile.render", namespace="append", agent=agent, scope="this_agent")
    kept = len(set(re.findall(r"\bc\d+n\d+\b", str(shown_text["rendered"]))))
    total = clients * APPENDS_EACH
    ratio = (
        f"; bare psycopg {beside_per_s:.0f}/s: {total / took_s / beside_per_s:.2f}x  goal: 0.5x" if beside_per_s else ""
    )
    print(
        f"{clients} clients, {len(urls)} servers, one section: {total} appends in {took_s:.2f} s"
        f" ({total / took_s:.0f}/s), {kept} kept, {len(failures)} errors{ratio}"
    )


def gets(call: Caller, engine: Engine) -> None:
    """memory.get against an empty route, and in PostgreSQL against a route with a bare select."""
    keys = [bulk.key_of(number) for number in random.Random(1).sample(range(1000), CALLS)]

    def route(url: str) -> list[float]:
        http = httpx.Client(base_url=url)
        return timed_ms(lambda turn: http.post("/v1/x", json={"memory_key": keys[turn]}).raise_for_status())

    with bare_server() as url:
        bare = shown("empty Starlette POST route", route(url))
    selecting = None
    if engine.database_url:
        select = bare_postgres.selector(engine.database_url, BIG)
        shown("bare indexed select, psycopg", timed_ms(lambda turn: select(keys[turn])))
        with bare_server(engine.database_url) as url:
            selecting = shown("Starlette POST route with that select", route(url))
    times = timed_ms(lambda turn: call("memory.get", namespace=BIG, agent="bench", memory_key=keys[turn]))
    shown("memory.get over HTTP", times, bare, "of the empty route; goal: within 4x")
    if selecting:
        shown("", times, selecting, "of the route with a select; goal: within 3x")


def searches(call: Caller, embedder: Embedder, beside: float | None) -> float:
    """search.query in the namespace that holds half of the store; its median, in milliseconds."""
    queries = bulk.queries(CALLS + WARM_UP)
    shown("query embedding, bare", timed_ms(lambda turn: embedder.embed_query(queries[turn], 10)))
    legs: dict[str, list[float]] = {}

    def ask(turn: int) -> None:
        call("search.query", namespace=BIG, namespace_scope="this", query=queries[turn])

    goal = "of the embedded store's; goal: p50 within 2.5x" if beside else "goal: p50 < 40, p95 < 100 ms"
    middle = shown("search.query over HTTP", timed_ms(ask), beside, goal)
    for recipe, limit in (("fast", ""), ("quality", "goal: every one < 300 ms")):
        others = bulk.queries(RECIPE_CALLS + WARM_UP, seed=len(recipe))
        times = timed_ms(partial(recipes, call, recipe, others), RECIPE_CALLS)
        shown(f"  by the recipe {recipe}, at most {max(times):.0f} ms", times, middle, limit)
        if recipe == "fast":
            # The server keeps the vectors of questions, so this is all but the embedding.
            times = timed_ms(partial(recipes, call, recipe, others), RECIPE_CALLS)
            shown("  the same questions again, embedded before", times, middle, "goal: p50 < 10 ms")
    for turn in range(50):
        answer = call("search.query", namespace=BIG, namespace_scope="this", query=queries[turn], explain=True)
        timings = answer.get("timings_ms")
        if isinstance(timings, dict):
            for leg, ms in timings.items():
                legs.setdefault(str(leg), []).append(float(ms))
    for leg, times in legs.items():
        shown(f"  leg {leg}", times)
    return middle


def recipes(call: Caller, recipe: str, queries: Sequence[str], turn: int) -> None:
    """One search.query by a recipe."""
    call("search.query", namespace=BIG, namespace_scope="this", query=queries[turn], recipe=recipe)


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


def two_servers(engine: Engine) -> None:
    """Sixteen clients over two servers against the bare transaction, which leaves no work for later."""
    bare_per_s = bare_postgres.appends_per_s(engine.database_url, CROWD_CLIENTS, APPENDS_EACH)
    homes = engine.home / "one", engine.home / "other"
    aside = {**engine.environment, "later_work": "elsewhere"}
    with running(homes[0], **aside) as one, running(homes[1], **aside) as other:
        crowd([one.url, other.url], CROWD_CLIENTS, bare_per_s)
    print("the same while both servers embed what was appended, on the same processors:")
    with running(homes[0], **engine.environment) as one, running(homes[1], **engine.environment) as other:
        crowd([one.url, other.url], CROWD_CLIENTS)


def report(server: Server, engine: Engine, beside: float | None) -> float:
    """Every figure of one engine; the median of search.query, for the next one."""
    call = Caller(server.url)
    embedder = bulk.real_embedder()
    header()
    gets(call, engine)
    middle = searches(call, embedder, beside)
    appends(call, engine)
    crowd([server.url], APPEND_CLIENTS)
    many(call, embedder)
    print(f"resident memory of the server: {server.resident_mb():.0f} MB (goal: under 600)")
    return middle


def header() -> None:
    """The names of the columns."""
    print(f"{'':<44}{'p50 ms':>9} {'p95 ms':>9}  {'ratio':>6}")


def memories(engine: Engine, rows: int, beside: float | None) -> float:
    """Load the store of memories, and print its figures; the median of search.query."""
    start = time.perf_counter()
    bulk.load(engine, rows)
    print(f"\n{engine.name}: {rows} memories loaded in {time.perf_counter() - start:.0f} s")
    with running(engine.home, **engine.environment) as server:
        print(f"ready after {server.ready_s:.2f} s (goal: under 3)")
        middle = report(server, engine, beside)
    if engine.database_url:
        two_servers(engine)
    return middle


def all_planes(engine: Engine, rows: int) -> None:
    """Load the store of six planes, and print its figures."""
    given = bulk_planes.sizes(rows)
    start = time.perf_counter()
    bulk_planes.load(engine, given)
    print(f"\n{engine.name}: {given} loaded in {time.perf_counter() - start:.0f} s")
    with running(engine.home, **engine.environment) as server, tempfile.TemporaryDirectory() as folder:
        call = Caller(server.url)
        header()
        planes.searches(call)
        print(f"resident memory of the server: {server.resident_mb():.0f} MB")
        planes.turns(call, engine, bulk.real_embedder())
        planes.code(call, Path(folder).resolve())


def main() -> None:
    """Load the stores, or take those in `--home`, and print the figures."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--engine", choices=sorted(engines.ENGINES), default=engines.SQLITE)
    options.add_argument("--part", choices=(MEMORIES, PLANES, "both"), default="both")
    options.add_argument("--rows", type=int, default=100_000)
    options.add_argument("--home", type=Path, help="keep the stores here, and use them again when they are loaded")
    given = options.parse_args()
    print(f"loom --help {help_cpu_s():.2f} s CPU (goal: under 0.5)")
    print(f"{given.rows} memories in {bulk.NAMESPACES} namespaces, half in one; stand-in vectors for this bulk")
    beside: float | None = None
    with tempfile.TemporaryDirectory() as scratch:
        home = given.home or Path(scratch)
        for name in engines.ENGINES[given.engine]:
            if given.part != PLANES:
                with engines.opened(name, home) as engine:
                    beside = memories(engine, given.rows, beside)
            if given.part != MEMORIES:
                with engines.opened(name, home / PLANES) as engine:
                    all_planes(engine, given.rows)


if __name__ == "__main__":
    main()
