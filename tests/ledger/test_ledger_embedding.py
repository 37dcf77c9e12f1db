"""The bounds of the embedding job agree with those of the worker."""

from loom.jobs import outbox, worker
from loom.ledger import embedding


def test_all_that_is_taken_at_once_is_embedded_within_its_lease() -> None:
    rounds = -(-worker.TOGETHER_MAX // embedding.AT_ONCE_MAX)
    assert rounds * embedding.EMBED_TIMEOUT_S < outbox.LEASE_US / 1_000_000
