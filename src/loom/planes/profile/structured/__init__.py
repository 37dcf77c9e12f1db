"""One structured profile a user: shaped by the namespace's JSON Schema, built later, and honest about its age.

`interface` is what a builder is given and gives back; `schema`, `walking` and `assertions` say what a schema may
be and what fits it; `status` whether a profile is current; `building` makes one and `job` has it made; `ops_schema`
and `ops_read` are the operations; `cargo` moves schemas to another store; `store` its queries. The profile itself is a
row of the ledger, of a type of its own under one key of the user, and `ledger.derived` tells the job of what changes.

`rules_builder` builds without a language model. It reads, in this order: `properties` from the schema, `statements` in
clauses from the facts, `candidates` of each kind of value, what `flags` speak against them (`readings`), which
property a value is of by name (`naming`) or by likeness (`scoring`, with the constants in `fitted`), and what stands
in the end (`claims`, `settling`). The words it goes by are in `cues.toml`.
"""

from loom.planes.profile.structured import building, job, ops_read, ops_schema, store
from loom.planes.profile.structured.cargo import CARGO
from loom.planes.profile.structured.model_builder import ModelBuilder
from loom.planes.profile.structured.rules_builder import RulesBuilder

OPS = (*ops_read.OPS, *ops_schema.OPS)
LATE = job.LATE
jobs = job.jobs
purge_namespace = store.purge_namespace
BUILD = building.BUILD

__all__ = ["BUILD", "CARGO", "LATE", "OPS", "ModelBuilder", "RulesBuilder", "jobs", "purge_namespace"]
