"""The ways in which the choices of a property are written."""

from collections.abc import Mapping
from functools import cached_property
from typing import Final

from loom.planes.profile.structured import words

ACRONYM_MAX: Final = 3
"""A word of so few letters says little by being there, and is not stemmed."""


class Phrases(dict[str, str]):
    """From each way of writing a choice, without case and punctuation, to the choice. Not to be changed."""

    @cached_property
    def stemmed(self) -> Mapping[str, str]:
        """From the stems of those that are one longer word to the choice."""
        made: dict[str, str] = {}
        for phrase, choice in self.items():
            if len(phrase) > ACRONYM_MAX and phrase.isascii() and phrase.isalpha():
                for stem in words.stems(phrase):
                    made.setdefault(stem, choice)
        return made
