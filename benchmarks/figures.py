"""How a figure is taken and printed."""

import time
from collections.abc import Callable
from statistics import median, quantiles

import httpx

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
    """A plain HTTP client of the server, one connection."""

    def __init__(self, url: str) -> None:
        self.http = httpx.Client(base_url=url, timeout=60)

    def __call__(self, op: str, **args: object) -> dict[str, object]:
        """The answer of one operation; an error ends the benchmark."""
        answer = self.http.post(f"/v1/{op}", json=args)
        if answer.status_code != httpx.codes.OK:
            raise SystemExit(f"{op}: {answer.status_code} {answer.text[:300]}")
        return answer.json()
