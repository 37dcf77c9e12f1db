"""The circuit breaker: closed, open, half open, and what many threads make of it."""

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Barrier, Event

import pytest

from fakes import at_once
from loom.models.breaker import FAILURES_MAX, PROBING_S, REST_MAX_S, REST_S, Blame, CircuitBreaker, CircuitOpen, Probe
from running import wait_until

PATIENCE_S = 10.0
THREADS = 16


class Away(Exception):
    """What was called failed."""


class Wrong(Exception):
    """The input was wrong."""


class Crowded(Exception):
    """There were too many callers."""


BLAMED: Mapping[type[BaseException], Blame] = {
    Away: Blame.SERVICE,
    Wrong: Blame.INPUT,
    Crowded: Blame.CALLERS,
}


class Moment:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def most(low: float, high: float) -> float:
    del low
    return high


@pytest.fixture
def moment() -> Moment:
    return Moment()


class Service:
    """What is called, as a probe finds it."""

    def __init__(self) -> None:
        self.failure: Exception | None = Away("no answer")
        self.probes = 0

    def __call__(self) -> Exception | None:
        self.probes += 1
        return self.failure


def blame(error: BaseException) -> Blame:
    return BLAMED.get(type(error), Blame.CALLERS)


@pytest.fixture
def service() -> Service:
    return Service()


@pytest.fixture
def breaker(moment: Moment) -> CircuitBreaker:
    return CircuitBreaker("the thing", blame, moment, most, at_once)


def calls(breaker: CircuitBreaker, service: Service, *errors: type[Exception] | None) -> None:
    for error in errors:
        if error is None:
            with breaker.call(service):
                pass
        else:
            with pytest.raises(error), breaker.call(service):
                raise error


def is_open(breaker: CircuitBreaker, service: Service) -> float:
    """For how long it says that it is."""
    entered = False
    with pytest.raises(CircuitOpen) as refused, breaker.call(service):
        entered = True
    assert not entered
    return refused.value.rest_s


def opened(breaker: CircuitBreaker, service: Service) -> None:
    service.failure = Away("no answer")
    calls(breaker, service, *[Away] * FAILURES_MAX)
    assert breaker.is_open


def test_so_many_failures_in_a_row_have_it_probed_and_a_failed_probe_opens_it(
    breaker: CircuitBreaker, service: Service, moment: Moment
) -> None:
    calls(breaker, service, *[Away] * (FAILURES_MAX - 1))
    calls(breaker, service, None, *[Away] * (FAILURES_MAX - 1))
    assert (breaker.rest_s, breaker.is_open, service.probes) == (0.0, False, 0)
    calls(breaker, service, Away)
    assert (breaker.is_open, service.probes) == (True, 1)
    assert is_open(breaker, service) == breaker.rest_s == REST_S
    moment.now_s += REST_S - 1
    assert is_open(breaker, service) == 1.0
    assert service.probes == 1


def test_what_callers_bring_never_opens_it_while_a_probe_is_answered(breaker: CircuitBreaker, service: Service) -> None:
    service.failure = None
    for _ in range(100):
        calls(breaker, service, *[Away] * FAILURES_MAX)
        assert not breaker.is_open
        calls(breaker, service, None)
    assert service.probes == 100


def test_a_probe_that_says_that_the_input_is_wrong_was_not_answered(breaker: CircuitBreaker, service: Service) -> None:
    service.failure = Wrong()
    calls(breaker, service, *[Away] * FAILURES_MAX)
    assert is_open(breaker, service)


def test_wrong_input_is_no_failure_and_a_crowd_says_nothing(breaker: CircuitBreaker, service: Service) -> None:
    calls(breaker, service, *[Wrong] * 10, *[Crowded] * 10, *[KeyError] * 10)
    calls(breaker, service, Away, Away, Wrong, Away, Away)
    assert service.probes == 0
    calls(breaker, service, Crowded, Away)
    assert is_open(breaker, service)


def test_who_comes_when_the_rest_is_over_has_it_probed_and_does_not_wait(
    breaker: CircuitBreaker, service: Service, moment: Moment, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        opened(breaker, service)
        moment.now_s += REST_S
        assert (breaker.rest_s, breaker.is_open) == (0.0, True)
        service.failure = None
        assert is_open(breaker, service) == PROBING_S
        assert not breaker.is_open
        calls(breaker, service, None, *[Away] * (FAILURES_MAX - 1), None)
    assert [record.levelname for record in caplog.records] == ["ERROR", "WARNING"]
    assert f"no answer. It is left alone for {REST_S:.0f} s" in caplog.text
    opened(breaker, service)
    assert is_open(breaker, service) == REST_S  # the first rest again


def test_each_rest_is_longer_up_to_a_bound(breaker: CircuitBreaker, service: Service, moment: Moment) -> None:
    opened(breaker, service)
    rests: list[float] = []
    for _ in range(12):
        rests.append(is_open(breaker, service))
        moment.now_s += rests[-1]
        is_open(breaker, service)
    assert rests[:4] == [REST_S, 2 * REST_S, 4 * REST_S, 8 * REST_S]
    assert rests[4:] == [REST_MAX_S] * 8


def test_rests_are_of_several_lengths(moment: Moment, service: Service) -> None:
    lengths: set[float] = set()
    for _ in range(50):
        breaker = CircuitBreaker("the thing", blame, moment, start=at_once)
        opened(breaker, service)
        lengths.add(breaker.rest_s)
    assert len(lengths) > 40
    assert REST_S / 2 <= min(lengths) < max(lengths) <= REST_S


@pytest.mark.parametrize("nothing", [Crowded(), KeyError("unforeseen")])
def test_a_probe_that_tells_nothing_is_repeated_soon(
    breaker: CircuitBreaker, service: Service, moment: Moment, nothing: Exception
) -> None:
    service.failure = nothing
    calls(breaker, service, *[Away] * (FAILURES_MAX + 1))
    assert (breaker.is_open, service.probes) == (False, 2)
    service.failure = Away()
    calls(breaker, service, Away)
    moment.now_s += REST_S
    service.failure = nothing
    is_open(breaker, service)
    assert (is_open(breaker, service), breaker.is_open, service.probes) == (PROBING_S, True, 4)
    moment.now_s += PROBING_S
    service.failure = None
    is_open(breaker, service)
    calls(breaker, service, Away, None)


def test_a_probe_that_breaks_or_cannot_start_leaves_it_as_it_was(moment: Moment, service: Service) -> None:
    def no_thread(work: Callable[[], None]) -> None:
        raise RuntimeError(work)

    def broken() -> Exception | None:
        raise ZeroDivisionError

    breaker = CircuitBreaker("the thing", blame, moment, most, no_thread)
    calls(breaker, service, *[Away] * (3 * FAILURES_MAX))
    assert not breaker.is_open
    breaker = CircuitBreaker("the thing", blame, moment, most, at_once)
    calls(breaker, service, *[Away] * (FAILURES_MAX - 1))
    with pytest.raises(ZeroDivisionError), breaker.call(broken):
        raise Away
    assert not breaker.is_open
    calls(breaker, service, Away)
    assert breaker.is_open


class Held:
    """A service that is probed until `over` is set."""

    def __init__(self, failure: Exception | None) -> None:
        self.failure = failure
        self.begun = Event()
        self.over = Event()
        self.probes = 0

    def __call__(self) -> Exception | None:
        self.probes += 1
        self.begun.set()
        self.over.wait(PATIENCE_S)
        return self.failure


def come(breaker: CircuitBreaker, probe: Probe, error: Exception | None = None) -> float | Exception | None:
    """What a call comes to: a rest, its own error, or nothing."""
    try:
        with breaker.call(probe):
            if error is not None:
                raise error
    except CircuitOpen as refused:
        return refused.rest_s
    except Away as failure:
        return failure
    return None


def test_of_many_that_come_when_the_rest_is_over_one_has_it_probed_and_none_waits(
    service: Service, moment: Moment
) -> None:
    breaker, held = CircuitBreaker("the thing", blame, moment, most), Held(None)
    calls(breaker, service, *[Away] * FAILURES_MAX)
    wait_until(lambda: breaker.is_open, PATIENCE_S)
    moment.now_s += REST_S
    together = Barrier(THREADS)

    def comes(_: int) -> float | Exception | None:
        together.wait(PATIENCE_S)
        return come(breaker, held)

    with ThreadPoolExecutor(THREADS) as pool:
        assert list(pool.map(comes, range(THREADS))) == [PROBING_S] * THREADS
    assert breaker.is_open
    held.over.set()
    wait_until(lambda: not breaker.is_open, PATIENCE_S)
    assert held.probes == 1
    assert come(breaker, service) is None


def test_while_a_closed_one_is_probed_calls_go_through_and_no_second_probe_is_sent(moment: Moment) -> None:
    breaker, held = CircuitBreaker("the thing", blame, moment, most), Held(Away())
    for _ in range(FAILURES_MAX):
        assert isinstance(come(breaker, held, Away()), Away)
    assert held.begun.wait(PATIENCE_S)
    for _ in range(FAILURES_MAX):
        assert isinstance(come(breaker, held, Away()), Away)
    assert (held.probes, breaker.is_open) == (1, False)
    held.over.set()
    wait_until(lambda: breaker.is_open, PATIENCE_S)


def test_who_is_answered_meanwhile_outweighs_a_probe_that_is_not(moment: Moment, service: Service) -> None:
    with ThreadPoolExecutor(1) as pool:
        probes: list[Future[None]] = []
        breaker = CircuitBreaker("the thing", blame, moment, most, lambda work: probes.append(pool.submit(work)))
        held = Held(Away())
        for _ in range(FAILURES_MAX):
            come(breaker, held, Away())
        assert held.begun.wait(PATIENCE_S)
        assert come(breaker, service) is None
        held.over.set()
        probes[0].result(PATIENCE_S)
        assert not breaker.is_open
        calls(breaker, service, *[Away] * FAILURES_MAX)
        probes[1].result(PATIENCE_S)
        assert breaker.is_open


def test_calls_go_through_side_by_side(breaker: CircuitBreaker, service: Service) -> None:
    together = Barrier(THREADS)

    def comes(_: int) -> None:
        with breaker.call(service):
            together.wait(PATIENCE_S)  # nobody passes before all are in

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(comes, range(THREADS)))


@pytest.mark.parametrize("error", [None, Away])
def test_what_began_before_it_opened_changes_nothing(
    breaker: CircuitBreaker, service: Service, error: type[Exception] | None
) -> None:
    begun, hold = Event(), Event()

    def slow() -> None:
        with breaker.call(service):
            begun.set()
            hold.wait(PATIENCE_S)
            if error is not None:
                raise error

    with ThreadPoolExecutor(1) as pool:
        late = pool.submit(slow)
        assert begun.wait(PATIENCE_S)
        opened(breaker, service)
        hold.set()
        assert isinstance(late.exception(PATIENCE_S), error or type(None))
    assert is_open(breaker, service) == REST_S


def test_its_words_tell_how_long(breaker: CircuitBreaker, service: Service) -> None:
    opened(breaker, service)
    with pytest.raises(CircuitOpen, match=r"the thing failed several times in a row, and is asked again in 5 s"):
        breaker.call(service).__enter__()
