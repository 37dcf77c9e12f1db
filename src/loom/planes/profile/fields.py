"""Types that profile operations share."""

from collections.abc import Callable
from typing import Annotated

from pydantic import AfterValidator, Field

from loom.ops.fields import MemoryKey
from loom.ops.spec import Answer

Label = MemoryKey
"""A section's name: 1 to 512 characters."""


def one_of(*words: str) -> AfterValidator:
    """A check that a text is one of `words`; the schema says text, as the contract does."""

    def check(value: str) -> str:
        if value not in words:
            raise ValueError("should be " + " or ".join(f"'{word}'" for word in words))
        return value

    known: Callable[[str], str] = check
    return AfterValidator(known)


class SectionAnswer(Answer):
    """What every write of a section answers: the section as it now is."""

    version: Annotated[int, Field(description="The number of the section's live version, above 2^53.")]
    memory_id: Annotated[str, Field(description="Names the row that keeps the section and its history.")]
    content_sha256: Annotated[
        str, Field(description="Hash of the section's value now; send it as if_match_sha256 with the next set.")
    ]
    namespace: Annotated[str, Field(description="The namespace that holds the section.")]
    label: Annotated[str, Field(description="The section's name.")]
    char_limit: Annotated[int | None, Field(description="The cap on the section from now on; null for none.")]
    value_length: Annotated[
        int, Field(description="Characters of the value as JSON, which char_limit caps; what is left is the room.")
    ]
