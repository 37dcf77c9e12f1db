"""The status of a structured profile after every kind of change, in every state it can be in."""

from collections.abc import Callable, Mapping
from datetime import timedelta

import pytest
from structured_kit import KEY, LATE, OPS, OTHER_SCHEMA, SCHEMA, Scene, TestBuilder, jobs_of, on, remember, structured

from fakes import CoreOf
from loom.errors import LoomError
from loom.planes.profile.structured.building import Room

Step = Callable[[Scene], object]
WORDS = {"r": "ready", "s": "stale", "p": "pending", "n": "no_schema"}
ROOM = Room(facts_max=4)


def facts(scene: Scene) -> None:
    """Two facts, each in its second version; and one sensitive and one deleted memory, which are none."""
    remember(scene, "name", "Adele")
    remember(scene, "name", "Ada")
    remember(scene, "age", 35)
    remember(scene, "age", 36)
    remember(scene, "secret", "x", sensitivity="high")
    remember(scene, "gone", "x")
    on(scene, "delete", "gone")


def schema(scene: Scene) -> None:
    scene.call("profile.schema_set", json_schema=SCHEMA)


def built(scene: Scene) -> None:
    facts(scene)
    schema(scene)
    scene.settle()
    assert structured(scene)["status"] == "ready"


def row_version(scene: Scene) -> str:
    return on(scene, "history", KEY)["versions"][0]["version_text"]


def no_schema(scene: Scene) -> None:
    facts(scene)


def empty(scene: Scene) -> None:
    schema(scene)
    scene.settle()


def unbuilt(scene: Scene) -> None:
    facts(scene)
    schema(scene)


def ready(scene: Scene) -> None:
    built(scene)


def stale(scene: Scene) -> None:
    built(scene)
    remember(scene, "diet", "vegan")


def broken(scene: Scene) -> None:
    built(scene)
    remember(scene, "diet", "vegan")
    scene.builder.fails = True
    scene.settle()
    scene.builder.fails = False


def crowded(scene: Scene) -> None:
    """More facts than a build is given."""
    built(scene)
    for number in range(4):
        remember(scene, f"other/{number}", "x")
    scene.settle()


def locked(scene: Scene) -> None:
    built(scene)
    on(scene, "lock", KEY)


def redacted(scene: Scene) -> None:
    built(scene)
    on(scene, "redact", KEY)


def high(scene: Scene) -> None:
    built(scene)
    on(scene, "update", KEY, sensitivity="high")


def expired(scene: Scene) -> None:
    built(scene)
    on(scene, "touch", KEY, ttl_seconds=5)
    scene.step(seconds=6)


def erased(scene: Scene) -> None:
    """The one version of the row is deleted."""
    built(scene)
    on(scene, "delete_version", KEY, version_text=row_version(scene))


def deleted(scene: Scene) -> None:
    built(scene)
    on(scene, "delete", KEY)


STATES: tuple[Step, ...] = (
    no_schema,
    empty,
    unbuilt,
    ready,
    stale,
    broken,
    crowded,
    locked,
    redacted,
    high,
    expired,
    erased,
    deleted,
)


def nothing(scene: Scene) -> None:
    del scene


def expire(scene: Scene) -> None:
    on(scene, "touch", "age", ttl_seconds=60)
    scene.step(seconds=61)


def end_of_validity(scene: Scene) -> None:
    ends = scene.core.clock.now + timedelta(minutes=30)
    remember(scene, "age", 36, valid_to=ends.isoformat())
    scene.settle()
    scene.step(hours=1)


def head_of(scene: Scene, key: str, place: int) -> str:
    return on(scene, "history", key)["versions"][place]["version_text"]


def restore(scene: Scene) -> None:
    on(scene, "delete", "age")
    scene.settle()
    on(scene, "restore", "age")


def last_gone(scene: Scene) -> None:
    for item in scene.call("memory.list", user_id="ada", read_scope="own_user")["items"]:
        on(scene, "delete", item["memory_key"])


EVENTS: Mapping[str, Step] = {
    "nothing happens": nothing,
    "schema set": lambda scene: scene.call("profile.schema_set", json_schema=SCHEMA),
    "schema edited": lambda scene: scene.call("profile.schema_set", json_schema=OTHER_SCHEMA),
    "schema deleted": lambda scene: scene.call("profile.schema_delete"),
    "new fact": lambda scene: remember(scene, "extra", "x"),
    "same fact again": lambda scene: remember(scene, "name", "Ada"),
    "fact updated": lambda scene: remember(scene, "name", "Ada L."),
    "fact's tags": lambda scene: on(scene, "update", "name", tags=["x"]),
    "fact expired": expire,
    "fact ends to hold": end_of_validity,
    "fact deleted": lambda scene: on(scene, "delete", "name"),
    "fact restored": restore,
    "fact redacted": lambda scene: on(scene, "redact", "name"),
    "fact made high": lambda scene: on(scene, "update", "name", sensitivity="high"),
    "old version erased": lambda scene: on(scene, "delete_version", "name", version_text=head_of(scene, "name", 1)),
    "head version erased": lambda scene: on(scene, "delete_version", "name", version_text=head_of(scene, "name", 0)),
    "fact touched": lambda scene: on(scene, "touch", "name", ttl_seconds=86_400),
    "fact pinned": lambda scene: on(scene, "pin", "name"),
    "fact locked": lambda scene: on(scene, "lock", "name"),
    "last fact gone": last_gone,
    "high fact": lambda scene: remember(scene, "secret", "y", sensitivity="high"),
    "section": lambda scene: scene.call("profile.set", label="persona", value="x", user_id="ada"),
    "another's fact": lambda scene: remember(scene, "name", "Bob", user_id="bob"),
    "nobody's fact": lambda scene: remember(scene, "name", "All", user_id="-"),
    "elsewhere's fact": lambda scene: remember(scene, "name", "Ada", namespace="elsewhere"),
    "rebuild asked": lambda scene: scene.call("profile.rebuild", user_id="ada"),
    "row locked": lambda scene: on(scene, "lock", KEY),
    "row locked softly": lambda scene: on(scene, "lock", KEY, mode="no_delete"),
    "row unlocked": lambda scene: on(scene, "lock", KEY, mode=""),
    "row redacted": lambda scene: on(scene, "redact", KEY),
    "row made high": lambda scene: on(scene, "update", KEY, sensitivity="high"),
    "row made normal": lambda scene: on(scene, "update", KEY, sensitivity="normal"),
    "row expired": lambda scene: (on(scene, "touch", KEY, ttl_seconds=5), scene.step(seconds=6)),
    "row's version erased": lambda scene: on(scene, "delete_version", KEY, version_text=row_version(scene)),
    "row deleted": lambda scene: on(scene, "delete", KEY),
}

TABLE = """
                     no_schema empty unbuilt ready stale broken crowded locked redacted high expired erased deleted
nothing happens      nn        rr    pr      rr    sr    sr     ss      rr     pp       pp   pr      pp     pr
schema set           pr        rr    pr      rr    sr    sr     ss      rr     pp       pp   pr      pp     pr
schema edited        pr        rr    pr      sr    sr    sr     ss      ss     pr       pp   pr      pr     pr
schema deleted       .         nn    nn      nn    nn    nn     nn      nn     nn       nn   nn      nn     nn
new fact             nn        pr    pr      sr    sr    sr     ss      ss     pr       pp   pr      pr     pr
same fact again      nn        pr    pr      rr    sr    sr     ss      rr     pp       pp   pr      pp     pr
fact updated         nn        pr    pr      sr    sr    sr     ss      ss     pr       pp   pr      pr     pr
fact's tags          nn        .     pr      sr    sr    sr     ss      ss     pr       pp   pr      pr     pr
fact expired         nn        .     pr      sr    sr    sr     ss      ss     pp       pp   pr      pp     pr
fact ends to hold    nn        sr    sr      sr    sr    sr     ss      ss     sr       pp   sr      sr     sr
fact deleted         nn        .     pr      sr    sr    sr     ss      ss     pr       pp   pr      pr     pr
fact restored        nn        .     sr      sr    sr    sr     ss      ss     sr       pp   sr      sr     sr
fact redacted        nn        .     pr      sr    sr    sr     ss      ss     pr       pp   pr      pr     pr
fact made high       nn        .     pr      sr    sr    sr     ss      ss     pr       pp   pr      pr     pr
old version erased   nn        .     pr      rr    sr    sr     ss      rr     pp       pp   pr      pp     pr
head version erased  nn        .     pr      sr    sr    sr     ss      ss     pr       pp   pr      pr     pr
fact touched         nn        .     pr      rr    sr    sr     ss      rr     pp       pp   pr      pp     pr
fact pinned          nn        .     pr      rr    sr    sr     ss      rr     pp       pp   pr      pp     pr
fact locked          nn        .     pr      rr    sr    sr     ss      rr     pp       pp   pr      pp     pr
last fact gone       nn        rr    rr      rr    rr    rr     rr      rr     rr       rr   rr      rr     rr
high fact            nn        rr    pr      rr    sr    sr     ss      rr     pp       pp   pr      pp     pr
section              nn        rr    pr      rr    sr    sr     ss      rr     pp       pp   pr      pp     pr
another's fact       nn        rr    pr      rr    sr    sr     ss      rr     pp       pp   pr      pp     pr
nobody's fact        nn        rr    pr      rr    sr    sr     ss      rr     pp       pp   pr      pp     pr
elsewhere's fact     nn        rr    pr      rr    sr    sr     ss      rr     pp       pp   pr      pp     pr
rebuild asked        nn        rr    pr      rr    sr    sr     ss      rr     pr       pp   pr      pr     pr
row locked           .         .     .       rr    ss    ss     ss      rr     .        pp   .       .      .
row locked softly    .         .     .       rr    sr    sr     ss      rr     .        pp   .       .      .
row unlocked         .         .     .       rr    sr    sr     ss      rr     .        pp   .       .      .
row redacted         .         .     .       pp    pr    pr     pp      .      pp       pp   pp      pp     pp
row made high        .         .     .       pp    pp    pp     pp      .      .        pp   .       .      .
row made normal      .         .     .       rr    sr    sr     ss      .      .        rr   .       .      .
row expired          .         .     .       pr    pr    pr     ps      .      .        pr   .       .      .
row's version erased .         .     .       pp    pr    pr     ss      .      .        rr   pp      .      .
row deleted          .         .     .       pr    pr    pr     ps      .      .        pr   .       .      .
"""
"""A word for each: at once, and when the jobs are done that the event or two reads asked for. A dot where there is
nothing the event could happen to. r ready, s stale, p pending, n no_schema.
"""


def cells() -> Mapping[str, Mapping[str, str]]:
    lines = [line for line in TABLE.splitlines() if line]
    states = lines[0].split()
    assert states == [state.__name__ for state in STATES]
    return {line[:21].strip(): dict(zip(states, line[21:].split(), strict=True)) for line in lines[1:]}


CELLS = cells()


def test_every_event_has_a_row() -> None:
    assert list(CELLS) == list(EVENTS)


@pytest.mark.parametrize("event", EVENTS)
def test_the_status_after(event: str, core_of: CoreOf) -> None:
    builder = TestBuilder()
    core = core_of(OPS, jobs_of(builder, ROOM), LATE)
    found: dict[str, str] = {}
    for state in STATES:
        scene = Scene(core, f"{state.__name__}", builder)
        state(scene)
        found[state.__name__] = outcome(scene, EVENTS[event])
    assert found == CELLS[event]


def outcome(scene: Scene, event: Step) -> str:
    try:
        event(scene)
    except LoomError:
        return "."
    at_once = letter_of(scene)
    scene.settle()
    letter_of(scene)
    scene.settle()
    return at_once + letter_of(scene)


def letter_of(scene: Scene) -> str:
    """The status as a letter, once the rest of the answer fits it."""
    answer = structured(scene)
    status, row = answer["status"], answer["memory_id"]
    schema_now = scene.call("profile.schema_get")
    assert answer["schema_sha256"] == schema_now["schema_sha256"]
    assert answer["version_text"] == str(answer["version"])
    assert (row == "") == (answer["version"] == 0) == (answer["built_at"] is None)
    wanted = list(schema_now["json_schema"]["properties"]) if schema_now["found"] else []
    assert list(answer["profile"]) == wanted
    assert not row or status in ("ready", "stale")
    assert row or status != "stale"
    assert row or not any(value is not None for value in answer["profile"].values())
    return {word: letter for letter, word in WORDS.items()}[status]
