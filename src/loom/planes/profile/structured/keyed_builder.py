"""A builder that settles a property from a memory that names it, and nothing else."""

from collections.abc import Mapping, Sequence

from loom.canonical import Json, encoded
from loom.planes.profile.structured import schema as schemas
from loom.planes.profile.structured.interface import Fact, Settled, Source
from loom.planes.profile.structured.schema import Schema
from loom.retrieval import values

TAG = "profile:"


class KeyedBuilder:
    """Implements `Builder`: a memory names a property by its key, or by a tag `profile:` and the property's name."""

    @property
    def name(self) -> str:
        """The builder's name."""
        return "rules"

    def build(self, schema: Mapping[str, Json], facts: Sequence[Fact], timeout_s: float) -> Mapping[str, Settled]:
        """The properties that a memory names; of several, the latest whose value the schema allows."""
        del timeout_s
        opened = schemas.opened(encoded(dict(schema)))
        if opened is None:
            return {}
        settled: dict[str, Settled] = {}
        for fact in sorted(facts, key=lambda one: (one.valid_at or one.created_at, one.created_at)):
            for name in named(opened, fact):
                if opened.fitting({name: fact.value}):
                    text = values.value_text(fact.value)
                    settled[name] = Settled(fact.value, [Source(fact.memory_id, fact.version, text)])
        return settled


def named(schema: Schema, fact: Fact) -> list[str]:
    """Properties that a memory names."""
    tags = {tag.removeprefix(TAG) for tag in fact.tags if tag.startswith(TAG)}
    return [name for name in schema.properties if name in tags or name == fact.memory_key]
