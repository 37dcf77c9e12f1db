"""The server about itself: health and capabilities, namespaces, tokens, and the store as a file."""

from collections.abc import Iterable, Iterator, Sequence

from loom.jobs.handlers import Bench
from loom.ops import idempotency
from loom.ops.registry import Registry
from loom.ops.spec import AnyOp, Later
from loom.planes.cargo import AnyCargo
from loom.storage.interface import SYSTEM_ORG
from loom.system import about, audit, namespaces, overview, sign_in, tokens, transfer
from loom.system.namespaces import Purge
from loom.system.sign_in import Witness

LATE = {**tokens.LATE, **sign_in.LATE}


def operations(purges: Sequence[Purge] = (), cargos: Sequence[AnyCargo] = ()) -> tuple[AnyOp, ...]:
    """The system's operations; `purges` are the planes' own part of namespace.delete, `cargos` of store.export."""
    return (
        about.HEALTH,
        audit.LIST,
        overview.OVERVIEW,
        sign_in.LINK,
        *namespaces.ops(purges),
        *tokens.OPS,
        *transfer.ops(cargos),
    )


OPS = operations()


def forget_answers(bench: Bench, org: str) -> None:
    """Forget answers that were kept for idempotency keys, past their time."""
    now_us = bench.clock_us()
    with bench.database.transaction(org, write=False) as tx:
        if not idempotency.any_over(tx, now_us):
            return
    with bench.database.transaction(org, write=True) as tx:
        idempotency.sweep(tx, now_us)


SWEEPS = (forget_answers, audit.forget_old)


def registry(ops: Iterable[AnyOp], purges: Sequence[Purge] = (), cargos: Sequence[AnyCargo] = ()) -> Registry:
    """`ops` and the system's own, `ops.capabilities`, which lists them all, among them; the rest as in `operations`."""

    def every() -> Iterator[AnyOp]:
        return iter(made)

    made = Registry([*ops, *operations(purges, cargos), about.capabilities(every)])
    return made


def note_use(later: Later, token_id: str, at_us: int) -> None:
    """Queue the fact that a token was used."""
    later(tokens.USED, SYSTEM_ORG, {"token_id": token_id, "at": at_us})


__all__ = ["LATE", "OPS", "SWEEPS", "Witness", "note_use", "operations", "registry"]
