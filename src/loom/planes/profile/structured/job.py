"""The jobs that keep structured profiles current: a build for a user, and one for each user of a namespace.

A write of a memory enqueues its user's build in its own transaction (`ledger.derived`), a new schema those of
every user, a few hundred at a time. A build has a lease of its own beside the job's, so that a user whose
memories change while theirs is under way is not built twice at once.
"""

import json
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from loom.canonical import Json, encoded
from loom.jobs import outbox
from loom.jobs.handlers import Bench, Handler, LateHandler, PutOff
from loom.ledger import derived
from loom.planes.profile.structured import building, queries, status, store
from loom.planes.profile.structured.building import BUILD, Outrun, Room
from loom.planes.profile.structured.interface import Builder, BuildFailed
from loom.planes.profile.structured.status import FAILURES_MAX, Work
from loom.storage.interface import Transaction

SPREAD: Final = "profile.spread"
"""The job that asks for the builds of a namespace's users; its subjects are a namespace and the user to go on after."""

ASK: Final = "profile.ask"
"""The name under which a reader's wish for a build is queued."""

BUILD_TIMEOUT_S: Final = 40.0
"""How long one build without a language model may take, its repetitions included."""

START_WITHIN_S: Final = 15.0
"""How long one job begins builds, so that the last of them ends before the job's lease does."""

LEASE_MARGIN_S: Final = 5.0
"""By how much the lease of a build outlasts the longest one."""

SECOND_US: Final = 1_000_000
BUSY_US: Final = 2 * 1_000_000
"""How long a job waits for a build of the same user that is under way elsewhere."""

PAUSE_RATIO: Final = 1.5
PAUSE_MAX_S: Final = 0.05
"""How long a job of many builds rests after each: so many times what it took, and no longer than this.

A build computes in the process that answers calls. At rest most of the time, it leaves the middle one of the calls
as quick as it was.
"""

SPREAD_MAX: Final = 500
"""Users that one turn asks builds for."""

ALL_THE_ROOM: Final = Room()

Who = tuple[str, str]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Builds:
    """The handler of `BUILD`.

    Attributes:
        builder: makes the values.
        room: how much a build is given.
        timeout_s: how long one build may take, its repetitions included.
    """

    builder: Builder
    room: Room = ALL_THE_ROOM
    timeout_s: float = BUILD_TIMEOUT_S

    def __call__(self, bench: Bench, org: str, subjects: Sequence[str]) -> None:
        """Build the profiles of these users, each on its own: one that fails stops no other.

        Raises:
            BuildFailed: one failed and is worth another try; those that were built are current by then.
            PutOff: the model is left alone for a while; that is no failure of a build.
        """
        until_s = time.monotonic() + START_WITHIN_S
        lease_s = START_WITHIN_S + self.timeout_s + LEASE_MARGIN_S
        waiting = claimed(bench, org, [user_of(subject) for subject in subjects], lease_s)
        retry = False
        rest_s = 0.0
        began_s = until_s - START_WITHIN_S
        try:
            while waiting and time.monotonic() < until_s:
                who = waiting.pop(0)
                try:
                    retry |= not self.built(bench, org, who)
                except PutOff as put_off:
                    rest_s = put_off.rest_s
                    waiting.insert(0, who)
                    break
                if len(subjects) > 1:
                    time.sleep(min(PAUSE_MAX_S, (time.monotonic() - began_s) * PAUSE_RATIO))
                    began_s = time.monotonic()
        finally:
            # Also after an error that nobody foresaw: the others' leases would keep them waiting for minutes.
            put_back(bench, org, waiting, int(rest_s * SECOND_US))
        if rest_s:
            raise PutOff(rest_s)
        if retry:
            raise BuildFailed("a profile could not be built; it is tried again")

    def built(self, bench: Bench, org: str, who: Who) -> bool:
        """Build one profile; False when it failed and is worth another try.

        Raises:
            PutOff: the model is not asked now.
        """
        try:
            building.build(bench, self.builder, org, who, self.timeout_s, self.room)
        except (BuildFailed, Outrun) as failure:
            if isinstance(failure, BuildFailed) and failure.rest_s > 0:
                raise PutOff(failure.rest_s) from None
            with bench.database.transaction(org, write=True) as tx:
                tx.run(queries.FAILED, namespace=who[0], user_id=who[1], failed_at=bench.clock_us())
                failures = store.user(tx, *who).failures
            log.warning("a structured profile was not built (%s, time %d)", type(failure).__name__, failures)
            return failures >= FAILURES_MAX
        return True


def claimed(bench: Bench, org: str, users: Sequence[Who], lease_s: float) -> list[Who]:
    """Those of the users for whom there is something to do, leased to this job; the rest is left or comes later."""
    now_us = bench.clock_us()
    until_us = now_us + int(lease_s * SECOND_US)
    with bench.database.transaction(org, write=False) as tx:
        wanting = [who for who in users if status.look(tx, *who, now_us).work is not Work.NOTHING]
    if not wanting:
        return []
    mine: list[Who] = []
    with bench.database.transaction(org, write=True) as tx:
        # In order, as everywhere that many rows change, so that two jobs never wait for each other.
        for who in sorted(wanting):
            if tx.run(queries.CLAIM, namespace=who[0], user_id=who[1], now=now_us, until=until_us):
                mine.append(who)
            else:
                outbox.enqueue(tx, BUILD, derived.subject_of(*who), BUSY_US)
    return mine


def put_back(bench: Bench, org: str, users: Sequence[Who], delay_us: int = 0) -> None:
    """Give up the leases of users that were not come to, and have them built by a later job."""
    if not users:
        return
    with bench.database.transaction(org, write=True) as tx:
        for namespace, user_id in users:
            tx.run(queries.RELEASE, namespace=namespace, user_id=user_id)
            outbox.enqueue(tx, BUILD, derived.subject_of(namespace, user_id), delay_us)


def spread(bench: Bench, org: str, subjects: Sequence[str]) -> None:
    """Ask for a build for every user of a namespace who has facts, a bounded number in each turn."""
    for subject in subjects:
        namespace, after = user_of(subject)
        with bench.database.transaction(org, write=False) as tx:
            if store.latest_schema(tx, namespace) is None:
                continue
            users = store.users(tx, namespace, after, SPREAD_MAX)
        with bench.database.transaction(org, write=True) as tx:
            store.ask(tx, BUILD, [derived.subject_of(namespace, user_id) for user_id in users], bench.clock_us())
            if len(users) == SPREAD_MAX:
                outbox.enqueue(tx, SPREAD, encoded([namespace, users[-1]]))


def begin_spread(tx: Transaction, namespace: str) -> None:
    """Ask for the builds of a namespace's users."""
    outbox.enqueue(tx, SPREAD, encoded([namespace, ""]))


def ask(bench: Bench, org: str, payloads: Sequence[Mapping[str, Json]]) -> None:
    """Take readers' wishes: a job for each user, unless one waits."""
    subjects = {derived.subject_of(str(one["namespace"]), str(one["user_id"])) for one in payloads}
    with bench.database.transaction(org, write=True) as tx:
        store.ask(tx, BUILD, sorted(subjects), bench.clock_us())


def user_of(subject: str) -> Who:
    """What `derived.subject_of` was made of."""
    namespace, user_id = cast("list[str]", json.loads(subject))
    return namespace, user_id


def jobs(builder: Builder, timeout_s: float = BUILD_TIMEOUT_S) -> Mapping[str, Handler]:
    """What the worker does, by the kind of job; `timeout_s` is how long one build may take."""
    return {BUILD: Builds(builder, timeout_s=timeout_s), SPREAD: spread}


LATE: Mapping[str, LateHandler] = {ASK: ask}
