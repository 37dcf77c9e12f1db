"""Constants of `scoring`, written by `benchmarks/fit_profiles.py`."""

from typing import Final

from loom.planes.profile.structured.scoring import Model

FITTED_ON_SHA256: Final = "f5395faf45d4970e9caddde15bd59e8855c9cb53dca6cce8b1f353daf060a088"
"""Of the statements that the constants were fitted on."""

MODEL: Final = Model(
    bias=-3.17,
    weights=(
        0.91,  # name_in_clause
        1.8,  # name_in_fact
        3.83,  # described
        6.0,  # nearness
        0.6,  # lead
        0.0,  # unit
        1.23,  # plain
        0.23,  # beside
        0.49,  # rivals
        1.56,  # subject
        1.2,  # label
        0.15,  # stance
        1.08,  # whole_name
        0.23,  # phrase
        -2.92,  # number
        -0.07,  # date
        1.7,  # choice
        1.2,  # boolean
        -0.76,  # code
        0.86,  # address
        -0.82,  # own_address
    ),
    taken_from=0.765,
)
