"""Constants of `scoring`, written by `benchmarks/fit_profiles.py`."""

from typing import Final

from loom.planes.profile.structured.scoring import Model

FITTED_ON_SHA256: Final = "f5395faf45d4970e9caddde15bd59e8855c9cb53dca6cce8b1f353daf060a088"
"""Of the statements that the constants were fitted on."""

MODEL: Final = Model(
    bias=-3.47,
    weights=(
        0.96,  # name_in_clause
        1.77,  # name_in_fact
        3.6,  # described
        6.08,  # nearness
        0.63,  # lead
        0.0,  # unit
        1.55,  # plain
        0.13,  # beside
        0.44,  # rivals
        1.79,  # subject
        1.13,  # label
        0.19,  # stance
        -2.67,  # number
        -0.18,  # date
        1.6,  # choice
        1.19,  # boolean
        -0.82,  # code
        0.89,  # address
        -1.03,  # own_address
    ),
    taken_from=0.85,
)
