"""What tests of structured profiles share: a schema, a user, builders that can be held or broken."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fakes import Core
from loom.canonical import Json, encoded
from loom.jobs import outbox
from loom.ledger import embedding
from loom.ledger.rules import DERIVED_KEY
from loom.planes import memory, profile
from loom.planes.profile.structured import job
from loom.planes.profile.structured import schema as schemas
from loom.planes.profile.structured.building import BUILD, Room
from loom.planes.profile.structured.interface import Builder, BuildFailed, Fact, Settled, Source
from loom.planes.profile.structured.schema import Schema
from loom.retrieval import values
from loom.system import transfer

USER = "ada"
KEY = DERIVED_KEY
OPS = (*memory.OPS, *profile.OPS, *transfer.ops((memory.CARGO, profile.CARGO)))
LATE = profile.LATE
WAIT_S = 60.0

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}, "diet": {"enum": ["any", "vegan"]}},
}
OTHER_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "string"}, "city": {"type": "string"}},
}


TAG = "profile:"


class KeyedBuilder:
    """Settles what a memory names by its key or by a tag `profile:` and the property's name: easy to foresee."""

    @property
    def name(self) -> str:
        """The builder's name."""
        return "rules"

    @property
    def space(self) -> str:
        """None: it looks at no vectors."""
        return ""

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


@dataclass
class TestBuilder:
    """The keyed builder, which can be told to fail, to wait, or to pass for one whose sources are not all there is.

    Attributes:
        name: as the build's record shows it.
        fails: whether it fails.
        rest_s: how long it says that its model rests; 0 while it does not.
        during: done inside each build, after the facts were read and before there is an answer.
        builds: how many facts each build was given.
    """

    __test__ = False

    name: str = "rules"
    space: str = ""
    fails: bool = False
    rest_s: float = 0.0
    during: Callable[[], None] | None = None
    builds: list[int] = field(default_factory=list[int])
    _inner: Builder = field(default_factory=KeyedBuilder)

    def build(self, schema: Mapping[str, Json], facts: Sequence[Fact], timeout_s: float) -> Mapping[str, Settled]:
        self.builds.append(len(facts))
        if self.during is not None:
            self.during()
        if self.fails:
            raise BuildFailed("switched off")
        if self.rest_s:
            raise BuildFailed("its model rests", rest_s=self.rest_s)
        return self._inner.build(schema, facts, timeout_s)


class Gate:
    """Holds whoever passes until it is opened."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.open = threading.Event()

    def __call__(self) -> None:
        self.reached.set()
        assert self.open.wait(WAIT_S)


def jobs_of(builder: TestBuilder, room: Room | None = None) -> dict[str, Any]:
    """The handlers of a core with this builder."""
    made = {**embedding.JOBS, **profile.jobs(builder)}
    if room is not None:
        made[BUILD] = job.Builds(builder, room)
    return made


def settle(core: Core) -> None:
    """Let the debounce pass, hand on readers' wishes, and do what is due. A build that fails stays undone."""
    core.later.flush("dev")
    core.clock.step(seconds=2)
    try:
        core.drain()
    except BuildFailed:
        give_up(core)


def give_up(core: Core) -> None:
    """Strike off the builds that failed, as if their retries were over."""
    with core.database.transaction("dev", write=True) as tx:
        outbox.done(tx, outbox.take(tx, core.clock() + outbox.LEASE_US + 1, 500))


def with_user(args: dict[str, Any]) -> dict[str, Any]:
    return {"user_id": USER, **args}


def structured(core: "Core | Scene", **args: Any) -> dict[str, Any]:
    return core.call("profile.structured", **with_user(args))


def remember(core: "Core | Scene", key: str, value: Any, **args: Any) -> dict[str, Any]:
    return core.call("memory.set", memory_key=key, value=value, **with_user(args))


def on(core: "Core | Scene", op: str, key: str, **args: Any) -> dict[str, Any]:
    """A memory operation on a key of the user."""
    return core.call(f"memory.{op}", memory_key=key, **with_user(args))


@dataclass
class Scene:
    """A core, seen from one of its namespaces."""

    core: Core
    namespace: str
    builder: TestBuilder

    def call(self, op: str, /, **args: Any) -> dict[str, Any]:
        known: dict[str, Any] = {"namespace": self.namespace, **args}
        return self.core.call(op, **known)

    def settle(self) -> None:
        settle(self.core)

    def step(self, **span: float) -> None:
        self.core.clock.step(**span)
