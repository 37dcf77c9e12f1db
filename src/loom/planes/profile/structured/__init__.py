"""One structured profile a user: shaped by the namespace's JSON Schema, built later, and honest about its age.

`interface` is what a builder is given and gives back; `schema`, `walking` and `assertions` say what a schema may
be and what fits it; `status` whether a profile is current; `building` makes one and `job` has it made; `ops_schema`
and `ops_read` are the operations; `cargo` moves schemas to another store; `store` its queries. The profile itself is a
row of the ledger, of a type of its own under one key of the user, and `ledger.derived` tells the job of what changes.
"""

from loom.planes.profile.structured import job, ops_read, ops_schema, store
from loom.planes.profile.structured.cargo import CARGO
from loom.planes.profile.structured.keyed_builder import KeyedBuilder

OPS = (*ops_read.OPS, *ops_schema.OPS)
LATE = job.LATE
jobs = job.jobs
purge_namespace = store.purge_namespace

__all__ = ["CARGO", "LATE", "OPS", "KeyedBuilder", "jobs", "purge_namespace"]
