"""How a figure is taken and printed."""

import json
import time
from collections.abc import Callable
from http import HTTPStatus
from http.client import HTTPConnection
from statistics import median, quantiles
from typing import cast
from urllib.parse import urlsplit

CALLS = 200
WARM_UP = 20


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
    """A plain HTTP client of the server, one connection.

    The standard library's, which takes a quarter of what larger clients do: clients share the processors with what
    is measured.
    """

    def __init__(self, url: str) -> None:
        place = urlsplit(url)
        self.http = HTTPConnection(str(place.hostname), place.port, timeout=60)

    def __call__(self, op: str, **args: object) -> dict[str, object]:
        """The answer of one operation; an error ends the benchmark."""
        self.http.request("POST", f"/v1/{op}", json.dumps(args), {"content-type": "application/json"})
        answer = self.http.getresponse()
        body = answer.read()
        if answer.status != HTTPStatus.OK:
            raise SystemExit(f"{op}: {answer.status} {body[:300].decode()}")
        return cast("dict[str, object]", json.loads(body))
