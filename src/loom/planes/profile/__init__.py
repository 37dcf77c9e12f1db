"""The profile: named sections that every agent reads first, and one structured profile of each user.

`rules` says what may become of a section, `writing` and `reading` are the
operations, `render` the prompt fragment, `listing` the sections one by one,
`activity` and `reads` who read them, `leg` the profile's part of search.query,
`store` its queries; `structured` is a folder of its own. Rows are the ledger's.
"""

from loom.planes.profile import activity, leg, listing, reading, reads, structured, writing

OPS = (
    writing.SET,
    writing.APPEND,
    writing.REPLACE,
    reading.RENDER,
    listing.LIST,
    activity.ACTIVITY,
    reads.READS,
    *structured.OPS,
)
LATE = {activity.READ: activity.add_reads, **structured.LATE}
SWEEPS = (activity.forget_old,)
LEG = leg.LEG
CARGO = structured.CARGO
jobs = structured.jobs
purge_namespace = structured.purge_namespace
BUILD = structured.BUILD
ModelBuilder = structured.ModelBuilder
RulesBuilder = structured.RulesBuilder

__all__ = [
    "BUILD",
    "CARGO",
    "LATE",
    "LEG",
    "OPS",
    "SWEEPS",
    "ModelBuilder",
    "RulesBuilder",
    "jobs",
    "purge_namespace",
]
