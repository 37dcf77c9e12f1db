"""An object as its model, and what a field that does not fit is told: what it should be, what to send instead."""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from loom.errors import Rejected

NAME_LENGTH_MAX = 64
UNKNOWN_MAX = 8
IDENTITY_HINTS = {
    "namespace": "; name one, since the token does not",
    "agent": "; name the agent that calls, or - for none",
}
"""What is added where a token's call lacks what a single user's install fills in."""

NOT_MEANT = ("", "-", None)
"""What clients send in optional fields that they do not want to use."""


Model = TypeVar("Model", bound=BaseModel)


def parsed(model: type[Model], given: Mapping[str, object], whole: str) -> Model:
    """`given` as a `model`. Null stands for "left out" where that is allowed; unknown fields are left out.

    Raises:
        Rejected: naming the first field that does not fit, or `whole` where none is at fault.
    """
    fields = model.model_fields
    kept = {
        name: value
        for name, value in given.items()
        if name in fields and not (value is None and not fields[name].is_required())
    }
    try:
        return model.model_validate(kept)
    except ValidationError as error:
        raise rejected(error, model, whole, given.keys() - fields.keys()) from None


def rejected(error: ValidationError, model: type[BaseModel], whole: str, unknown: Iterable[str] = ()) -> Rejected:
    """The refusal of the first field that does not fit. Of what was sent it tells names and types, never values.

    Args:
        error: what validation found.
        model: whose fields they are.
        whole: the name of the thing that was sent, where no field is at fault.
        unknown: fields that were sent and are none of the model's; named when one is missing.
    """
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part)[:NAME_LENGTH_MAX] for part in first["loc"]) or whole
    message = _message(first)
    if first["type"] == "missing":
        names = sorted(name[:NAME_LENGTH_MAX] for name in unknown)[:UNKNOWN_MAX]
        message += f"; there is no field {', '.join(names)}" if names else ""
        message += IDENTITY_HINTS.get(where, "")
    elif first["input"] in NOT_MEANT and len(first["loc"]) == 1:
        field = model.model_fields.get(str(first["loc"][0]))
        message += "; leave it out for its default" if field is not None and not field.is_required() else ""
    return Rejected(f"{where}: {message}", field=where)


def _message(found: ErrorDetails) -> str:
    say = MESSAGES.get(found["type"])
    if say is None:
        return found["msg"].removeprefix("Value error, ").removeprefix("Input ")
    return say(found.get("ctx", {}), found["input"])


def _typed(wanted: str, from_text: str) -> Callable[[Mapping[str, object], object], str]:
    """A message for a value of another type; `from_text` is what to do when it came as a text."""

    def say(limits: Mapping[str, object], given: object) -> str:
        del limits
        return f"should be {wanted}, {from_text}" if isinstance(given, str) else f"should be {wanted}{_instead(given)}"

    return say


def _instead(given: object) -> str:
    """What came, by its JSON type."""
    if given is None:
        return ", not null"
    if isinstance(given, bool):
        return ", not true or false"
    if isinstance(given, int | float):
        return ", not a number"
    if isinstance(given, list):
        return ", not a list"
    return ", not an object" if isinstance(given, dict) else ""


def _bounded(template: str) -> Callable[[Mapping[str, object], object], str]:
    def say(limits: Mapping[str, object], given: object) -> str:
        del given
        return template.format_map(limits)

    return say


def _too_short(limits: Mapping[str, object], given: object) -> str:
    del given
    return "may not be empty" if limits["min_length"] == 1 else f"at least {limits['min_length']} long"


_WHOLE = _typed("a whole number", "not a text; send it without quotes")
_OBJECT = _typed("an object", 'not a text; send it as JSON, like {"field": "value"}')

MESSAGES: Mapping[str, Callable[[Mapping[str, object], object], str]] = {
    "missing": _bounded("is required"),
    "string_type": _typed("a text", "not bytes"),
    "int_type": lambda limits, given: (
        "should be a whole number, without a fraction" if isinstance(given, float) else _WHOLE(limits, given)
    ),
    "int_from_float": _bounded("should be a whole number, without a fraction"),
    "float_type": _typed("a number", "not a text; send it without quotes"),
    "bool_type": _typed("true or false", "not a text; send it without quotes"),
    "list_type": _typed("a list", 'not a text; send it as JSON, like ["a", "b"]'),
    "dict_type": _OBJECT,
    "model_type": _OBJECT,
    "model_attributes_type": _OBJECT,
    "literal_error": _bounded("should be {expected}"),
    "string_too_short": _too_short,
    "string_too_long": _bounded("at most {max_length} characters"),
    "too_short": _bounded("needs at least {min_length} in the list"),
    "too_long": _bounded("at most {max_length} in the list"),
    "greater_than_equal": _bounded("should be {ge} or more"),
    "less_than_equal": _bounded("should be {le} or less"),
    "greater_than": _bounded("should be more than {gt}"),
    "less_than": _bounded("should be less than {lt}"),
}
"""By the validator's own name of what it found."""
