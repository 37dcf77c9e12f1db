"""The circuit breaker: closed, open, half open, and what many threads make of it."""

import logging
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

import pytest

from loom.models.breaker import FAILURES_MAX, REST_MAX_S, REST_S, TRIAL_S, Blame, CircuitBreaker, CircuitOpen
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


@pytest.fixture
def breaker(moment: Moment) -> CircuitBreaker:
    return CircuitBreaker("the thing", lambda error: BLAMED.get(type(error), Blame.CALLERS), moment, most)


def calls(breaker: CircuitBreaker, *errors: type[Exception] | None) -> None:
    for error in errors:
        if error is None:
            with breaker.call():
                pass
        else:
            with pytest.raises(error), breaker.call():
                raise error


def is_open(breaker: CircuitBreaker) -> float:
    """For how long it says that it is."""
    entered = False
    with pytest.raises(CircuitOpen) as refused, breaker.call():
        entered = True
    assert not entered
    return refused.value.rest_s


def test_so_many_failures_in_a_row_open_it(breaker: CircuitBreaker, moment: Moment) -> None:
    calls(breaker, *[Away] * (FAILURES_MAX - 1))
    assert breaker.rest_s == 0.0
    calls(breaker, None, *[Away] * (FAILURES_MAX - 1))
    assert breaker.rest_s == 0.0
    calls(breaker, Away)
    assert is_open(breaker) == breaker.rest_s == REST_S
    moment.now_s += REST_S - 1
    assert is_open(breaker) == 1.0


def test_wrong_input_is_no_failure_and_a_crowd_says_nothing(breaker: CircuitBreaker) -> None:
    calls(breaker, *[Wrong] * 10, *[Crowded] * 10, *[KeyError] * 10)
    calls(breaker, Away, Away, Wrong, Away, Away)
    assert breaker.rest_s == 0.0
    calls(breaker, Crowded, Away)
    assert is_open(breaker)


def test_one_call_that_ends_well_closes_it(
    breaker: CircuitBreaker, moment: Moment, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        calls(breaker, *[Away] * FAILURES_MAX)
        moment.now_s += REST_S
        assert breaker.rest_s == 0.0
        calls(breaker, None, *[Away] * (FAILURES_MAX - 1), None)
    assert breaker.rest_s == 0.0
    assert [record.levelname for record in caplog.records] == ["ERROR", "WARNING"]
    calls(breaker, *[Away] * FAILURES_MAX)
    assert is_open(breaker) == REST_S  # the first rest again


def test_each_rest_is_longer_up_to_a_bound(breaker: CircuitBreaker, moment: Moment) -> None:
    calls(breaker, *[Away] * FAILURES_MAX)
    rests: list[float] = []
    for _ in range(12):
        rests.append(is_open(breaker))
        moment.now_s += rests[-1]
        calls(breaker, Away)
    assert rests[:4] == [REST_S, 2 * REST_S, 4 * REST_S, 8 * REST_S]
    assert rests[4:] == [REST_MAX_S] * 8


def test_rests_are_of_several_lengths(moment: Moment) -> None:
    lengths: set[float] = set()
    for _ in range(50):
        breaker = CircuitBreaker("the thing", lambda _: Blame.SERVICE, moment)
        calls(breaker, *[Away] * FAILURES_MAX)
        lengths.add(breaker.rest_s)
    assert len(lengths) > 40
    assert REST_S / 2 <= min(lengths) < max(lengths) <= REST_S


def test_a_trial_that_says_nothing_is_repeated_soon(breaker: CircuitBreaker, moment: Moment) -> None:
    calls(breaker, *[Away] * FAILURES_MAX)
    moment.now_s += REST_S
    calls(breaker, Crowded)
    assert is_open(breaker) == TRIAL_S
    moment.now_s += TRIAL_S
    calls(breaker, Wrong)
    assert breaker.rest_s == 0.0
    calls(breaker, Away, None)


def test_of_many_that_come_when_the_rest_is_over_exactly_one_tries(breaker: CircuitBreaker, moment: Moment) -> None:
    calls(breaker, *[Away] * FAILURES_MAX)
    moment.now_s += REST_S
    together, hold = Barrier(THREADS), Event()

    def come(_: int) -> float:
        together.wait(PATIENCE_S)
        try:
            with breaker.call():
                hold.wait(PATIENCE_S)
        except CircuitOpen as refused:
            return refused.rest_s
        return 0.0

    with ThreadPoolExecutor(THREADS) as pool:
        came = [pool.submit(come, number) for number in range(THREADS)]
        wait_until(lambda: sum(one.done() for one in came) == THREADS - 1, PATIENCE_S)
        assert is_open(breaker) == TRIAL_S
        hold.set()
        waits = sorted(one.result(PATIENCE_S) for one in came)
    assert waits == [0.0] + [TRIAL_S] * (THREADS - 1)
    assert breaker.rest_s == 0.0


def test_calls_go_through_side_by_side(breaker: CircuitBreaker) -> None:
    together = Barrier(THREADS)

    def come(_: int) -> None:
        with breaker.call():
            together.wait(PATIENCE_S)  # nobody passes before all are in

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(come, range(THREADS)))


@pytest.mark.parametrize("error", [None, Away])
def test_what_began_before_it_opened_changes_nothing(
    breaker: CircuitBreaker, moment: Moment, error: type[Exception] | None
) -> None:
    begun, hold = Event(), Event()

    def slow() -> None:
        with breaker.call():
            begun.set()
            hold.wait(PATIENCE_S)
            if error is not None:
                raise error

    with ThreadPoolExecutor(1) as pool:
        late = pool.submit(slow)
        assert begun.wait(PATIENCE_S)
        calls(breaker, *[Away] * FAILURES_MAX)
        hold.set()
        assert isinstance(late.exception(PATIENCE_S), error or type(None))
    assert is_open(breaker) == REST_S
    moment.now_s += REST_S
    calls(breaker, None)


def test_its_words_tell_how_long(breaker: CircuitBreaker) -> None:
    calls(breaker, *[Away] * FAILURES_MAX)
    with pytest.raises(CircuitOpen, match=r"the thing failed several times in a row, and is asked again in 5 s"):
        breaker.call().__enter__()
