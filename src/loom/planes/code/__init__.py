"""A repository's code: its definitions, who uses them, and its files as they were indexed.

A namespace of kind code holds one repository. `folder` and `git` read it, `extract`
finds what a file defines and uses (`grammar`, `languages` and `finders` say how, for each language),
`indexing` and `embeds` are the jobs, `search` ranks, `graph` follows callers. A repository's rows
belong to its namespace and to no user.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from loom.jobs.handlers import Bench, Handler, LateHandler
from loom.ops.spec import AnyOp, Limits
from loom.planes.code import embeds, git
from loom.planes.code.cargo import CARGO
from loom.planes.code.documents import NO_LIBRARY, Library
from loom.planes.code.indexing import INDEX, Indexer
from loom.planes.code.ops_index import FORGET, INDEX_OP, STATUS_OP, delete_op, forget
from loom.planes.code.ops_read import CALLERS_OP, READ_OP, SYMBOL_OP
from loom.planes.code.ops_search import SEARCH_OP
from loom.planes.code.sources import SYSTEM_FOLDERS, Yard
from loom.storage.interface import Transaction

LATE: Mapping[str, LateHandler] = {}
SWEEPS = (embeds.embed_rest,)
VECTORED = embeds.VECTORED
LEG = None
"""search.query has no section of code: its sections are the contract's."""


def ops(library: Library) -> tuple[AnyOp, ...]:
    """The plane's operations, with the library that a repository's documents are in."""
    return (INDEX_OP, STATUS_OP, SEARCH_OP, SYMBOL_OP, CALLERS_OP, READ_OP, delete_op(library))


OPS = ops(NO_LIBRARY)


def yard_of(folder: Path, environment: Mapping[str, str], limits: Limits) -> Yard:
    """What jobs are given by an install that keeps fetched repositories in `folder`, and obeys these limits."""
    return Yard(
        folder,
        environment,
        closed=(*SYSTEM_FOLDERS, *limits.closed_folders),
        folders=limits.code_folders,
        private_hosts=limits.git_private_hosts,
    )


def jobs(yard: Yard, library: Library = NO_LIBRARY) -> Mapping[str, Handler]:
    """The plane's jobs, with what the install gives them.

    Args:
        yard: where and how repositories are fetched.
        library: where a repository's documents go.
    """
    fetches = git.Fetches(yard)

    def forget_fetched(bench: Bench, org: str, subjects: Sequence[str]) -> None:
        del bench
        for subject in subjects:
            fetches.forget(f"{org}/{subject}")

    return {INDEX: Indexer(yard, fetches, library).step, embeds.EMBED: embeds.step, FORGET: forget_fetched}


def purge_namespace(tx: Transaction, namespace: str) -> int:
    """Remove all that the plane has of a namespace that goes away with all in it; how many symbols there were."""
    return forget(tx, namespace, NO_LIBRARY)


__all__ = [
    "CARGO",
    "LATE",
    "LEG",
    "OPS",
    "SWEEPS",
    "SYSTEM_FOLDERS",
    "VECTORED",
    "Library",
    "Yard",
    "jobs",
    "ops",
    "purge_namespace",
    "yard_of",
]
