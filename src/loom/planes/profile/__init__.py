"""The profile: named sections that every agent reads first.

`rules` says what may become of a section, `writing` and `reading` are the
operations, `render` the prompt fragment, `activity` and `reads` who read it, `leg` the
profile's part of search.query, `store` its queries. Rows are the ledger's.
"""

from loom.planes.profile import activity, leg, reading, reads, writing

OPS = (
    writing.SET,
    writing.APPEND,
    writing.REPLACE,
    reading.RENDER,
    reading.STRUCTURED,
    activity.ACTIVITY,
    reads.READS,
)
LATE = {activity.READ: activity.add_reads}
SWEEPS = (activity.forget_old,)
LEG = leg.LEG

__all__ = ["LATE", "LEG", "OPS", "SWEEPS"]
