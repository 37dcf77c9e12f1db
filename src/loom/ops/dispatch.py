"""The one path from an argument map to an answer, whatever the transport."""

import random
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

from loom.access.caller import Caller, Install, ReadScope, Transport
from loom.errors import Conflict, Denied, LoomError, Rejected, Unavailable
from loom.models.interface import Embedder
from loom.models.reranker import Reranker
from loom.models.writer import Writer
from loom.ops import audit, idempotency, identity, invalid, text_checks
from loom.ops.idempotency import Attempt
from loom.ops.ratelimit import RateLimit
from loom.ops.registry import Registry
from loom.ops.spec import AnyOp, Context, Kind, Later, Limits, Prepare, Request
from loom.storage.interface import SYSTEM_ORG, Crowded, Database, Raced, StoreError

ATTEMPTS_MAX = 4
BACKOFF_S = 0.002
IGNORED = "ignored_args"

Observe = Callable[[str, str, float], None]
"""Told each call's op name (`unknown` when there is none), outcome code (`OK` or an error's) and seconds."""


@dataclass(frozen=True, slots=True)
class Dispatcher:
    """Runs operations: role, limit, identity, validation, preparation, transaction, in that order.

    Attributes:
        registry: every operation.
        database: the store.
        embedder: handed to `prepare` steps.
        install: the identity of a tokenless call.
        rate_limit: counts calls.
        clock_us: now, in microseconds UTC.
        later: queues work that may be lost.
        observe: told of every call's outcome.
        pool: handed to `prepare` steps.
        limits: the install's bounds.
        wake: told the org of every write, so that a worker looks for jobs at once.
        reranker: handed to `prepare` steps; None where there is none.
        writer: the language model, handed to `prepare` steps; None when none is configured.
    """

    registry: Registry
    database: Database
    embedder: Embedder
    install: Install
    rate_limit: RateLimit
    clock_us: Callable[[], int]
    later: Later
    observe: Observe
    pool: Executor
    limits: Limits
    wake: Callable[[str], None]
    reranker: Reranker | None = None
    writer: Writer | None = None

    def call(self, name: str, caller: Caller, transport: Transport, args: Mapping[str, Any]) -> dict[str, Any]:
        """Run operation `name` for `caller` and return its answer as JSON data.

        Unknown arguments are served and named back under `ignored_args`.

        Raises:
            LoomError: whatever the operation declares, plus UnknownOp, Denied,
                RateLimited, InvalidText, Rejected and Unavailable.
        """
        start_s = time.perf_counter()
        label, outcome = "unknown", "INTERNAL"
        try:
            op = self.registry.named(name)
            label = op.name
            answer = self._call(op, caller, transport, args)
            outcome = "OK"
        except StoreError as error:
            outcome = Unavailable.code
            raise Unavailable(str(error), retry_after_s=1) from error
        except LoomError as error:
            outcome = error.code
            raise
        finally:
            self.observe(label, outcome, time.perf_counter() - start_s)
        return answer

    def _call(self, op: AnyOp, caller: Caller, transport: Transport, args: Mapping[str, Any]) -> dict[str, Any]:
        if caller.role < op.role:
            raise Denied(f"{op.name} needs the {op.role.word} role")
        if not caller.tokenless:
            self.rate_limit.take(caller.principal, op.kind)
        text_checks.check(args, op.takes.DEPTH_MAX)
        known = identity.filled(op, caller, transport, self.install, args)
        request: Request = invalid.parsed(op.takes, known, "request")
        scope = identity.scope_of(op, caller, known)
        attempt = _attempt(op, caller, transport, args, known)
        org = SYSTEM_ORG if op.own_org else request.org
        ignored = set(args) - set(op.takes.model_fields)
        kept = self._earlier(op, org, attempt)
        if kept is not None:
            return named(kept, ignored)
        prepared: object = None
        if op.prepare is not None:
            prepared = op.prepare(self._bench(op, caller, scope), request)

        def run(turn: Sequence[str]) -> dict[str, Any]:
            write = op.kind is not Kind.READ
            with self.database.transaction(org, write=write, may_lag=op.may_lag, turn=turn) as tx:
                now_us = self.clock_us()
                if attempt:
                    idempotency.lock(tx, attempt)
                    earlier = idempotency.earlier_answer(tx, attempt, now_us)
                    if earlier is not None:
                        return earlier
                ctx = Context(
                    caller=caller,
                    scope=scope,
                    tx=tx,
                    now_us=now_us,
                    prepared=prepared,
                    later=self.later,
                    limits=self.limits,
                    client=transport.agent,
                    unnoticed=transport.unnoticed,
                )
                answer = op.run(ctx, request)
                audit.keep(ctx, op, transport, request, answer)
                body = dumped(op, answer)
                if attempt:
                    idempotency.keep(tx, attempt, body, now_us)
                return body

        body = retried(op, run, op.turn(request) if op.turn is not None else ())
        if op.kind is not Kind.READ:
            self.wake(request.org)
        return named(body, ignored)

    def _earlier(self, op: AnyOp, org: str, attempt: Attempt | None) -> dict[str, Any] | None:
        """The answer kept for this attempt, looked up before a `prepare` that may find the world changed since."""
        if attempt is None or op.prepare is None:
            return None
        with self.database.transaction(org, write=False) as tx:
            return idempotency.earlier_answer(tx, attempt, self.clock_us())

    def _bench(self, op: AnyOp, caller: Caller, scope: ReadScope) -> Prepare:
        return Prepare(
            caller=caller,
            scope=scope,
            now_us=self.clock_us(),
            embedder=self.embedder,
            database=self.database,
            pool=self.pool,
            limits=self.limits,
            later=self.later,
            plane_orgs=self.install.plane_orgs if caller.tokenless else {},
            may_lag=op.may_lag,
            reranker=self.reranker,
            writer=self.writer,
        )


def retried(op: AnyOp, run: Callable[[Sequence[str]], dict[str, Any]], turn: Sequence[str]) -> dict[str, Any]:
    """`run` in a turn, again when another transaction won the race; Conflict after 4 times.

    Where those of the turn cannot wait for what it wants, it waits by itself, and holds up none of them.
    """
    for number in range(ATTEMPTS_MAX):
        try:
            return run(turn)
        except Raced as race:
            turn = () if isinstance(race, Crowded) else turn
            time.sleep(random.uniform(0, BACKOFF_S * 2**number))  # noqa: S311  # jitter, not a secret
    raise Conflict(f"{op.name} lost {ATTEMPTS_MAX} races in a row; try again")


def named(body: dict[str, Any], ignored: Collection[str]) -> dict[str, Any]:
    """The answer with the names of unknown fields, those included that the operation itself met in its items."""
    every = sorted({*ignored, *body.get(IGNORED, ())})
    return body | {IGNORED: every} if every else body


def dumped(op: AnyOp, answer: Any) -> dict[str, Any]:
    """The answer as JSON data, fields that are absent when None left out."""
    body: dict[str, Any] = answer.model_dump(mode="json")
    for field in op.gives.ABSENT_WHEN_NONE:
        if body.get(field) is None:
            body.pop(field, None)
    return body


def _attempt(
    op: AnyOp, caller: Caller, transport: Transport, args: Mapping[str, Any], known: Mapping[str, Any]
) -> Attempt | None:
    """The attempt under the key that was sent, if one was. `known` are the arguments, identity filled in.

    Two agents of one token that choose the same key and body do not send the same write. The conversation
    is left out where it was filled in: a client that sends a write again may have begun another one.
    """
    key = transport.idempotency_key
    if key is None or op.kind is Kind.READ:
        return None
    if not op.replayable:
        raise Rejected(f"Idempotency-Key: {op.name} answers with a secret, which is not kept; send no key")
    filled_in = {"session_id"} if args.get("session_id") in identity.NOT_GIVEN else set[str]()
    body = {name: value for name, value in known.items() if name not in filled_in}
    return idempotency.attempt(caller.principal, key, op.name, body)
