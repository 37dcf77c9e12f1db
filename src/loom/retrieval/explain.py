"""Says where a hit's rank comes from."""

from collections.abc import Mapping

from loom.retrieval.calibrate import Evidence
from loom.retrieval.fuse import Fused


def explained(hit: Fused, evidence: Evidence, probability: float) -> Mapping[str, float | None]:
    """The numbers behind a hit, by name: each leg's raw score, normalised score and share, then the calibration's.

    `words_share` and its like sum to the hit's `rank_score`. A raw score is None when the leg
    did not find the hit. The calibration's numbers are the fields of `Evidence`.
    """
    numbers: dict[str, float | None] = {}
    for leg, part in sorted(hit.components.items()):
        numbers[f"{leg}_raw"] = part.raw
        numbers[f"{leg}_normalised"] = part.normalised
        numbers[f"{leg}_share"] = part.normalised * part.weight
    numbers["rank_score"] = hit.score
    numbers["query_coverage"] = evidence.coverage
    numbers["nearness"] = evidence.nearness
    numbers["nearness_lead"] = evidence.lead
    numbers["score_ahead"] = evidence.ahead
    numbers["score_ahead_of_fifth"] = evidence.ahead_of_fifth
    numbers["candidates"] = float(evidence.candidates)
    numbers["probability"] = probability
    return numbers
