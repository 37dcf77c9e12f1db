"""Builds structured profiles with a language model.

A user's facts are put in the order in which they came to hold and sent in as many calls as the model's context makes
necessary, the properties in groups. Every later call is sent the facts that settled something before, so that it can
take it back or add to it; what it settles replaces what an earlier one did. Of an answer, only values count that the
property's schema allows and that name facts which were sent.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Final

from loom.canonical import Json, encoded
from loom.models.writer import Writer, WriterFailed
from loom.planes.profile.structured import model_answer, model_prompt
from loom.planes.profile.structured.interface import BuildFailed, Fact, Settled
from loom.planes.profile.structured.model_answer import Checker, Read, Settling
from loom.planes.profile.structured.model_prompt import Named

BATCHES_MAX: Final = 64
"""Calls for one group of properties; of a user with more facts, the latest are read."""

VALUE_PARTS: Final = 3
"""One fact's value takes at most this part of the room for facts; the rest of it is not sent."""

FACTS_LENGTH_MIN: Final = 1000
"""Characters of facts that a call must have room for."""


class ModelBuilder:
    """Builds with a language model; safe to use from several threads."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    @property
    def name(self) -> str:
        """What profiles say they were built by."""
        return "model"

    @property
    def space(self) -> str:
        """None: a language model reads the facts themselves."""
        return ""

    def build(self, schema: Mapping[str, Json], facts: Sequence[Fact], timeout_s: float) -> Mapping[str, Settled]:
        """The properties that the facts settle; see `Builder`.

        Raises:
            BuildFailed: no answer in time, or none that the schema allows.
        """
        if not facts:
            return {}
        build = _Build(self._writer, schema, time.monotonic() + timeout_s)
        settled: dict[str, Settling] = {}
        for names in model_prompt.groups(schema, build.schema_length_max):
            settled |= build.group(names, facts)
        return {
            name: Settled(one.value, model_answer.sources(one))
            for name, one in settled.items()
            if one.value is not None
        }


class _Build:
    """One build: the schema, and until when."""

    def __init__(self, writer: Writer, schema: Mapping[str, Json], until_s: float) -> None:
        self._writer = writer
        self._schema = schema
        self._checker = Checker(schema)
        self._until_s = until_s
        room = writer.input_length_max - len(model_prompt.INSTRUCTIONS)
        self.schema_length_max = int(room * model_prompt.SCHEMA_SHARE)

    def group(self, names: Sequence[str], facts: Sequence[Fact]) -> Mapping[str, Settling]:
        """What all the facts settle of some properties, batch by batch, the latest last."""
        about = len(model_prompt.instructions(self._schema, names)) + len(
            encoded(model_prompt.shape(self._schema, names))
        )
        room = self._writer.input_length_max - about
        if room < FACTS_LENGTH_MIN:
            raise BuildFailed("the schema leaves no room for facts in the model's context")
        # Half of what is left over is for mending an answer, which is sent along.
        carried_max = int(room * model_prompt.CARRIED_SHARE / 2)
        settled: dict[str, Settling] = {}
        named = model_prompt.named(facts, room // VALUE_PARTS)
        for batch in model_prompt.batches(named, room // 2 - carried_max)[-BATCHES_MAX:]:
            settled = self._later(settled, names, batch, carried_max)
        return settled

    def _later(
        self, before: Mapping[str, Settling], names: Sequence[str], batch: Sequence[Named], carried_max: int
    ) -> dict[str, Settling]:
        """What is settled once a later batch was read, in smaller parts where it is too much at once."""
        carried = self._carried(before, batch, carried_max)
        try:
            found = self._asked(names, [*carried, *batch])
        except WriterFailed as error:
            if not error.too_long or (len(names) == 1 and len(batch) == 1):
                raise BuildFailed(f"the language model failed: {error}", rest_s=error.rest_s) from None
            after = dict(before)
            half = (len(names) if len(names) > 1 else len(batch)) // 2
            if len(names) > 1:
                for some in (names[:half], names[half:]):
                    mine = {name: one for name, one in before.items() if name in some}
                    after |= self._later(mine, some, batch, carried_max)
                return after
            for part in (batch[:half], batch[half:]):
                after = self._later(after, names, part, carried_max)
            return after
        new = {one.fact_id for one in batch}
        return dict(before) | {
            name: one
            for name, one in found.items()
            # Silence takes nothing back: only a later fact does, and it is named.
            if one.value is not None or any(fact.fact_id in new for fact in one.facts)
        }

    def _asked(self, names: Sequence[str], facts: Sequence[Named]) -> Mapping[str, Settling]:
        """One answer, and once another one when the first does not fit.

        Raises:
            WriterFailed: there was none.
            BuildFailed: neither fits.
        """
        answer = self._written(names, model_prompt.message(facts))
        read = self._read(answer, names, facts)
        if read.problems:
            answer = self._written(names, model_prompt.message(facts, answer, read.problems))
            read = self._read(answer, names, facts)
        if read.problems:
            raise BuildFailed("the language model's answer does not fit the schema, and neither does a second one")
        return read.settled

    def _read(self, answer: Json, names: Sequence[str], facts: Sequence[Named]) -> Read:
        return model_answer.read(answer, names, facts, self._checker)

    def _written(self, names: Sequence[str], message: str) -> Json:
        left_s = self._until_s - time.monotonic()
        if left_s <= 0:
            raise BuildFailed("the language model took too long")
        instructions = model_prompt.instructions(self._schema, names)
        return self._writer.write(instructions, message, model_prompt.shape(self._schema, names), left_s)

    def _carried(self, settled: Mapping[str, Settling], batch: Sequence[Named], length_max: int) -> Sequence[Named]:
        """The facts that settled something before, in their order; where they are too many, the latest."""
        there = {one.fact_id for one in batch}
        known = {fact.fact_id: fact for one in settled.values() for fact in one.facts if fact.fact_id not in there}
        ordered = sorted(known.values(), key=lambda one: int(one.fact_id[1:]))
        kept = model_prompt.batches(list(reversed(ordered)), length_max)[:1]
        return list(reversed(kept[0])) if kept else []
