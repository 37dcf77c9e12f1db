"""memory.set_many: up to a thousand memories in one call, each with an answer of its own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, WithJsonSchema

from loom.access.caller import Role
from loom.errors import LoomError, Rejected
from loom.ledger import store
from loom.ledger.rules import Item, Place
from loom.ops.fields import EMBEDDER, MEMORY_KEY_LENGTH_MAX
from loom.ops.identity import check_one_agent
from loom.ops.spec import Answer, Context, Kind, Op, Prepare, Request, prepared_as
from loom.planes.memory import embeds, rules
from loom.planes.memory.embeds import Ready
from loom.planes.memory.fields import SetFields, place_of
from loom.planes.memory.ops_write import draft_of, put, set_answer

ITEMS_MAX = 1000
NAME_SHOWN_MAX = 64
"""Characters of an unknown field's name that are shown."""

NAMES_SHOWN_MAX = 100
"""Unknown names of items that are shown."""

SHOWN = {"memory_key", "memory_id", "version", "version_text", "content_sha256", "value_length", "created", "changed"}
"""What an item's answer has of an answer of memory.set."""

ITEMS_SCHEMA: Mapping[str, object] = {
    "type": "array",
    "maxItems": ITEMS_MAX,
    "minItems": 1,
    "items": {
        "type": "object",
        "required": ["memory_key", "value"],
        "properties": {
            name: {key: told for key, told in part.items() if key != "$ref"}  # the only reference is to "any JSON"
            for name, part in SetFields.model_json_schema()["properties"].items()
        },
    },
}


class SetManyRequest(Request):
    """What memory.set_many takes."""

    items: Annotated[
        list[JsonValue],
        Field(min_length=1, max_length=ITEMS_MAX, description="The memories, each with the fields of memory.set."),
        WithJsonSchema(dict(ITEMS_SCHEMA)),
    ]


class ItemError(BaseModel):
    """Why one item was refused; the others are not touched by it."""

    model_config = ConfigDict(frozen=True)

    code: Annotated[str, Field(description="As in an error of memory.set.")]
    message: Annotated[str, Field(description="Names the field and the way out.")]
    retryable: Annotated[bool, Field(description="Whether sending the item again may help.")]
    extras: Annotated[dict[str, JsonValue], Field(description="More help, for instance field or current_sha256.")]


class ItemAnswer(BaseModel):
    """What became of one item."""

    model_config = ConfigDict(frozen=True)

    index: Annotated[int, Field(description="Its place in items, from 0.")]
    memory_key: Annotated[str, Field(description="Its key, as far as it has one.")]
    memory_id: Annotated[str, Field(description="The row's id; empty when it was refused.")] = ""
    version: Annotated[int | None, Field(description="Number of the live version; null when it was refused.")] = None
    version_text: Annotated[str, Field(description="The same number as text.")] = ""
    content_sha256: Annotated[str, Field(description="Hash of the value; empty when it was refused.")] = ""
    value_length: Annotated[int, Field(description="Characters of the value as canonical JSON.")] = 0
    created: Annotated[bool, Field(description="Whether no live memory had the key before.")] = False
    changed: Annotated[bool, Field(description="Whether a version was written.")] = False
    error: Annotated[ItemError | None, Field(description="Why it was refused; null when it was written.")] = None


class SetManyAnswer(Answer):
    """What memory.set_many answers."""

    ABSENT_WHEN_NONE: ClassVar[frozenset[str]] = frozenset({"degraded", "ignored_args"})

    items: Annotated[list[ItemAnswer], Field(description="One for each item, in their order.")]
    written: Annotated[int, Field(description="How many wrote a version.")]
    unchanged: Annotated[int, Field(description="How many said nothing new.")]
    refused: Annotated[int, Field(description="How many were refused.")]
    degraded: Annotated[
        list[str] | None,
        Field(description="embedder when it was not ready: search by meaning follows. Absent when nothing was lost."),
    ] = None
    ignored_args: Annotated[
        list[str] | None,
        Field(description="Fields that are not known; items.colour for one of an item. Absent when all are."),
    ] = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """One item: its fields, or why they do not fit."""

    memory_key: str
    fields: SetFields | None
    refusal: Rejected | None


@dataclass(frozen=True, slots=True)
class Batch:
    """Every item, parsed once, and what was made ready for it."""

    wanted: Sequence[Wanted]
    ready: Sequence[Ready]


def wanted_of(raw: JsonValue) -> Wanted:
    """One item, parsed."""
    key = raw.get("memory_key") if isinstance(raw, dict) else None
    shown = key[:MEMORY_KEY_LENGTH_MAX] if isinstance(key, str) else ""
    try:
        return Wanted(shown, rules.parsed(SetFields, raw), None)
    except Rejected as refusal:
        return Wanted(shown, None, refusal)


def ready_to_set_many(prepare: Prepare, request: SetManyRequest) -> Batch:
    """Embed every item that will be written, all together."""
    check_one_agent(request)
    wanted = [wanted_of(raw) for raw in request.items]
    place = place_of(request)
    with prepare.read(request.org) as tx:
        there = {one.memory_key: store.exact(tx, place, one.memory_key) for one in wanted if one.fields}
    texts = [text_to_embed(prepare, request, one, there.get(one.memory_key)) for one in wanted]
    return Batch(wanted, embeds.made_ready(prepare.embedder, texts, embeds.MANY_TIMEOUT_S))


def text_to_embed(prepare: Prepare, request: SetManyRequest, wanted: Wanted, there: Item | None) -> str:
    """The item's searchable text; empty when it will not be written, or need not be found."""
    if wanted.fields is None:
        return ""
    try:
        made = draft_of(wanted.fields, request, prepare.now_us)
    except LoomError:  # the item's own answer says it
        return ""
    if there is not None and there.is_live(prepare.now_us) and rules.says_nothing_new(there, made):
        return ""
    return embeds.text_of(wanted.memory_key, made)


def set_many(ctx: Context, request: SetManyRequest) -> SetManyAnswer:
    """Write each item that can be; locks are taken in one order, so that two such calls never wait in a ring."""
    batch = prepared_as(ctx, Batch)
    place: Place = place_of(request)
    for key in sorted({one.memory_key for one in batch.wanted if one.fields}):
        store.lock(ctx.tx, place, key)
    answers = [
        answer_of(ctx, request, index, one, ready)
        for index, (one, ready) in enumerate(zip(batch.wanted, batch.ready, strict=True))
    ]
    changed = [one.changed for one in answers]
    failed = any(ready.failed and its for ready, its in zip(batch.ready, changed, strict=True))
    refused = sum(one.error is not None for one in answers)
    return SetManyAnswer(
        items=answers,
        written=sum(changed),
        unchanged=len(answers) - sum(changed) - refused,
        refused=refused,
        degraded=[EMBEDDER] if failed else None,
        ignored_args=unknown_in(request.items),
    )


def unknown_in(items: Sequence[JsonValue]) -> list[str] | None:
    """Names of fields in the items that are not known, each once; None when all are. They may be long: they are cut."""
    known = SetFields.model_fields
    named = {
        f"items.{name[:NAME_SHOWN_MAX]}"
        for item in items
        if isinstance(item, dict)
        for name in item
        if name not in known
    }
    return sorted(named)[:NAMES_SHOWN_MAX] or None


def answer_of(ctx: Context, request: SetManyRequest, index: int, wanted: Wanted, ready: Ready) -> ItemAnswer:
    """Write one item. `put` refuses before it changes anything, so a refusal leaves nothing half done."""
    if wanted.fields is None:
        return ItemAnswer(index=index, memory_key=wanted.memory_key, error=error_of(wanted.refusal))
    try:
        outcome = put(ctx, request, wanted.fields, ready, dry_run=False)
    except LoomError as refusal:
        return ItemAnswer(index=index, memory_key=wanted.memory_key, error=error_of(refusal))
    answer = set_answer(ctx, request, wanted.fields, outcome)
    return ItemAnswer.model_validate({**answer.model_dump(include=SHOWN), "index": index})


def error_of(refusal: LoomError | None) -> ItemError | None:
    """A refusal as an item's answer shows it."""
    if refusal is None:
        return None
    return ItemError.model_validate(
        {
            "code": refusal.code,
            "message": refusal.message,
            "retryable": refusal.retryable,
            "extras": dict(refusal.extras),
        }
    )


SET_MANY = Op(
    name="memory.set_many",
    summary="Remember up to 1,000 claims in one call; each has its own answer, and one that is refused stops no other.",
    takes=SetManyRequest,
    gives=SetManyAnswer,
    role=Role.WRITER,
    kind=Kind.IDEMPOTENT,
    run=set_many,
    example={"items": [{"memory_key": "team/lead", "value": "Ana leads the team."}]},
    prepare=ready_to_set_many,
    destructive=True,
)
