"""What the server counts about itself, for Prometheus."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """Counters and clocks of calls, labelled by operation and outcome, never by who or what."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry(auto_describe=True)
        self._calls = Counter("loom_calls", "Calls of operations.", ("op", "outcome"), registry=self._registry)
        self._seconds = Histogram(
            "loom_call_seconds", "How long calls take.", ("op",), buckets=SECONDS, registry=self._registry
        )
        ProcessCollector(registry=self._registry)
        # Finding a labelled child takes longer than counting in it, and there are few: operations by outcomes.
        self._counters: dict[tuple[str, str], Counter] = {}
        self._clocks: dict[str, Histogram] = {}

    def observe(self, op: str, outcome: str, seconds: float) -> None:
        """Count one call; the dispatcher's `observe`."""
        counter = self._counters.get((op, outcome))
        if counter is None:
            counter = self._counters.setdefault((op, outcome), self._calls.labels(op, outcome))
        counter.inc()
        clock = self._clocks.get(op)
        if clock is None:
            clock = self._clocks.setdefault(op, self._seconds.labels(op))
        clock.observe(seconds)

    def gauge(self, name: str, meaning: str, read: Callable[[], float]) -> None:
        """Show a number that is read whenever the metrics are, such as the length of a queue."""
        Gauge(f"loom_{name}", meaning, registry=self._registry).set_function(read)

    def text(self) -> bytes:
        """Everything, in Prometheus' text format."""
        return generate_latest(self._registry)


METRICS_MEDIA = CONTENT_TYPE_LATEST
