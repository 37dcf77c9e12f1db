"""Structured profiles: what reading one costs beside memory.get, what a build costs, and how long everybody's takes.

    python benchmarks/structured.py [--users 10000] [--facts 10 1000 10000]

On the embedded store, over HTTP, with the hashing embedder: what is measured is Loom's own work, and a model that
embeds facts comes on top of it. Users' facts are written by several clients at once while another one reads.
"""

import argparse
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

import httpx

from loom import compose, config
from loom.config import Settings
from loom.jobs.handlers import Bench
from loom.ledger import derived, writes
from loom.ledger.rules import Attributes, draft
from loom.planes.profile.structured.building import BUILD
from server import running

CALLS = 300
WARM_UP = 30
BUILDS = 5
WRITERS = 4
WAIT_S = 900
READ_PAUSE_S = 0.02
PAGE = 100

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "What the user is called."},
        "age": {"type": "integer", "description": "Age in years."},
        "diet": {"enum": ["any", "vegetarian", "vegan"], "description": "What the user eats."},
        "city": {"type": "string", "description": "The city the user lives in."},
        "email": {"type": "string", "format": "email", "description": "The user's address."},
    },
}

Call = Callable[..., dict[str, object]]


def caller(url: str) -> Call:
    """A client of the server, one connection."""
    http = httpx.Client(base_url=url, timeout=120)

    def call(op: str, **args: object) -> dict[str, object]:
        answer = http.post(f"/v1/{op}", json=args)
        if answer.status_code != httpx.codes.OK:
            raise SystemExit(f"{op}: {answer.status_code} {answer.text[:300]}")
        return answer.json()

    return call


def p50_ms(call: Callable[[], object], pause_s: float = 0.0) -> float:
    """The median of `CALLS` calls, after a warm-up, with a pause after each."""
    for _ in range(WARM_UP):
        call()
    times: list[float] = []
    for _ in range(CALLS):
        began = time.perf_counter()
        call()
        times.append((time.perf_counter() - began) * 1000)
        time.sleep(pause_s)
    return median(times)


def load(settings: Settings, namespace: str, facts: int) -> None:
    """Facts of one user, straight into the store."""
    database = compose.database(settings)
    place = derived.place_of(namespace, "ada")
    for start in range(0, facts, 500):
        with database.transaction(settings.org, write=True) as tx:
            for number in range(start, min(start + 500, facts)):
                key, value = ("name", "Ada") if number == 0 else (f"note/{number}", f"Note {number}: the sky was blue.")
                writes.write(tx, None, (place, key), draft(value, Attributes()))
    database.close()


def wait_for(what: str, done: Callable[[], bool]) -> float:
    """Seconds until it is done."""
    began = time.perf_counter()
    while not done():
        if time.perf_counter() - began > WAIT_S:
            raise SystemExit(f"{what} was not done in {WAIT_S} s")
        time.sleep(0.2)
    return time.perf_counter() - began


def reads(home: Path, counts: Sequence[int]) -> None:
    """profile.structured beside memory.get, at several numbers of facts."""
    with running(home, embedder="hashing") as server:
        call = caller(server.url)
        for count in counts:
            where = {"namespace": f"facts{count}", "user_id": "ada"}
            call("profile.schema_set", namespace=where["namespace"], json_schema=SCHEMA)
            waited = wait_for("a build", lambda where=where: call("profile.structured", **where)["status"] == "ready")
            get = p50_ms(lambda where=where: call("memory.get", memory_key="name", **where))
            structured = p50_ms(lambda where=where: call("profile.structured", **where))
            print(
                f"{count:>6} facts: memory.get {get:6.2f} ms, profile.structured {structured:6.2f} ms, "
                f"{structured / get:4.2f}x (goal: 2x); ready {waited:4.1f} s after the schema"
            )


def build(settings: Settings, count: int) -> None:
    """One build over the facts of a user, as the job does it, with its reads and its write."""
    database, embedder = compose.database(settings), compose.embedder(settings)
    bench = Bench(database, embedder, compose.clock_us, settings.tombstone_days, settings.audit_days)
    handler = compose.jobs(settings, embedder, None)[BUILD]
    namespace = f"facts{count}"
    place = derived.place_of(namespace, "ada")
    times: list[float] = []
    for turn in range(BUILDS):
        with database.transaction(settings.org, write=True) as tx:
            writes.write(tx, None, (place, f"turn/{turn}"), draft(f"turn {turn}", Attributes()))
        began = time.perf_counter()
        handler(bench, settings.org, [derived.subject_of(namespace, "ada")])
        times.append((time.perf_counter() - began) * 1000)
    print(f"a build over {count} facts: {median(times):6.1f} ms (goal: 200 ms beyond embedding)")
    embedder.close()
    database.close()


def crowd(home: Path, users: int) -> None:
    """One changed fact for each of many users, until everybody's profile is current, while somebody reads."""
    with running(home, embedder="hashing", writes_per_minute="1000000", reads_per_minute="1000000") as server:
        call = caller(server.url)
        call("profile.schema_set", namespace="crowd", json_schema=SCHEMA)
        where = {"namespace": "facts10", "memory_key": "name", "user_id": "ada"}
        # As far apart as the reads below: a core that slept answers later, whatever else is done.
        quiet = p50_ms(lambda: call("memory.get", **where), READ_PAUSE_S)
        busy: list[float] = []
        stop = threading.Event()

        def read() -> None:
            own = caller(server.url)
            while not stop.is_set():
                began = time.perf_counter()
                own("memory.get", **where)
                busy.append((time.perf_counter() - began) * 1000)
                time.sleep(READ_PAUSE_S)

        reader = threading.Thread(target=read)
        began = time.perf_counter()
        with ThreadPoolExecutor(WRITERS) as pool:
            list(pool.map(write_some, [(server.url, users, part) for part in range(WRITERS)]))
        written = time.perf_counter() - began
        reader.start()
        wait_for("a crowd", lambda: all_current(call, users))
        took = time.perf_counter() - began
        stop.set()
        reader.join()
        print(
            f"{users} users with one changed fact each: all current after {took:5.1f} s, {written:5.1f} s of them "
            f"writing (goal: 10,000 in 600 s); memory.get {quiet:5.2f} ms before, {median(busy):5.2f} ms meanwhile, "
            f"{median(busy) / quiet:4.2f}x (goal: 1.5x)"
        )


def write_some(work: tuple[str, int, int]) -> None:
    """A client's share of the users' facts."""
    url, users, part = work
    call = caller(url)
    for number in range(part, users, WRITERS):
        call("memory.set", namespace="crowd", user_id=f"u{number:05}", memory_key="name", value=f"User {number}")


def all_current(call: Call, users: int) -> bool:
    """Whether every user is there and ready; the last of them is asked first, so that looking costs little."""
    last = call("profile.structured", namespace="crowd", user_id=f"u{users - 1:05}")
    if last["status"] != "ready":
        return False
    seen, cursor = 0, ""
    while True:
        page = call("profile.users", namespace="crowd", limit=PAGE, cursor=cursor)
        found = [one for one in page["users"] if one["status"] == "ready"]  # type: ignore[union-attr]
        if len(found) < len(page["users"]):  # type: ignore[arg-type]
            return False
        seen += len(found)
        cursor = str(page["next_cursor"])
        if not cursor:
            return seen == users


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=10_000)
    parser.add_argument("--facts", type=int, nargs="+", default=[10, 1_000, 10_000])
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        settings = config.load().model_copy(update={"home": home, "embedder": "hashing"})
        for count in {*args.facts, 10}:
            load(settings, f"facts{count}", count)
        reads(home, args.facts)
        if 1_000 in args.facts:
            build(settings, 1_000)
        crowd(home, args.users)


if __name__ == "__main__":
    main()
