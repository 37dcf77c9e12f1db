"""Constants of `scoring`, written by `benchmarks/fit_profiles.py`."""

from typing import Final

from loom.planes.profile.structured.scoring import Model

FITTED_ON_SHA256: Final = "f5395faf45d4970e9caddde15bd59e8855c9cb53dca6cce8b1f353daf060a088"
"""Of the statements that the constants were fitted on."""

MODEL: Final = Model(
    bias=-3.2,
    weights=(
        0.91,  # name_in_clause
        1.81,  # name_in_fact
        3.85,  # described
        6.02,  # nearness
        0.6,  # lead
        0.0,  # unit
        1.23,  # plain
        0.24,  # beside
        0.49,  # rivals
        1.57,  # subject
        1.19,  # label
        0.14,  # stance
        1.07,  # whole_name
        0.22,  # phrase
        -2.92,  # number
        -0.11,  # date
        1.71,  # choice
        1.2,  # boolean
        -0.76,  # code
        0.88,  # address
        -0.83,  # own_address
    ),
    taken_from=0.767,
)
