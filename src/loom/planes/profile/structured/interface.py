"""What a builder of structured profiles is given, and what it gives back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from loom.canonical import Json
from loom.jobs.handlers import NotDone
from loom.storage.indexes import Vector


class BuildFailed(NotDone):
    """A builder could not do its work now; trying again may help. The message holds no stored text.

    Attributes:
        rest_s: how long the model will not be asked, since it failed several times in a row; 0 when it may be at once.
    """

    def __init__(self, message: str, *, rest_s: float = 0.0) -> None:
        super().__init__(message)
        self.rest_s = rest_s


@dataclass(frozen=True, slots=True)
class Fact:
    """One memory of the user: live, served and of normal sensitivity when the sources were read.

    Attributes:
        memory_id: its row, as answers name it.
        memory_key: its key.
        value: what it says, any JSON.
        memory_type: `semantic`, `episodic`...
        tags: its tags.
        valid_at: when it began to be true, microseconds UTC; None when nothing says so.
        created_at: when this version was written, microseconds UTC.
        version: the version that was read.
        vector: of the first passage of its text, in the builder's space; None where there is none yet.
    """

    memory_id: str
    memory_key: str
    value: Json
    memory_type: str
    tags: Sequence[str]
    valid_at: int | None
    created_at: int
    version: int
    vector: Vector | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Source:
    """A memory that a value comes from.

    Attributes:
        memory_id: the memory's row.
        version: the version that was read.
        text: the part of the memory that gave the value.
    """

    memory_id: str
    version: int
    text: str


@dataclass(frozen=True, slots=True)
class Settled:
    """The value of one property, and why.

    Attributes:
        value: a value that the property's schema allows; never None.
        sources: where it comes from, the strongest first; at least one.
    """

    value: Json
    sources: Sequence[Source]


class Builder(Protocol):
    """Turns a user's facts into values of a schema's properties. Called outside any transaction."""

    @property
    def name(self) -> str:
        """A short name kept with each profile it built, for example `rules` or `model`."""
        ...

    @property
    def space(self) -> str:
        """The fingerprint of the embedding space whose vectors of facts it uses; empty for none."""
        ...

    def build(self, schema: Mapping[str, Json], facts: Sequence[Fact], timeout_s: float) -> Mapping[str, Settled]:
        """The properties that the facts settle. One that they do not settle is left out.

        Args:
            schema: a valid JSON Schema, draft 2020-12, of type object.
            facts: the user's facts, in any order.
            timeout_s: how long this may take, the models it calls included.

        Raises:
            BuildFailed: no answer in time, or none that the schema allows.
        """
        ...
