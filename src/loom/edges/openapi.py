"""The OpenAPI 3.1 document of the HTTP face, made from the registry."""

from collections.abc import Iterable, Mapping
from typing import Any, cast

from loom.errors import (
    BadRequest,
    BodyTooLarge,
    Conflict,
    Denied,
    Internal,
    LoomError,
    NotFound,
    RateLimited,
    Rejected,
    Unauthenticated,
    Unavailable,
    WrongHost,
    WrongMedia,
)
from loom.ops.registry import Registry
from loom.ops.schema import answer_schema, request_schema
from loom.ops.spec import IDENTITY_FIELDS, AnyOp, Kind, plane_of

ALWAYS: tuple[type[LoomError], ...] = (
    BadRequest,
    Unauthenticated,
    Denied,
    NotFound,
    BodyTooLarge,
    WrongMedia,
    WrongHost,
    Rejected,
    RateLimited,
    Internal,
    Unavailable,
)
"""What any call can end in, whatever the operation."""

FILLED = frozenset({"org", "namespace", "agent"})

KIND_MEANS: Mapping[Kind, str] = {
    Kind.READ: "Reads; changes nothing.",
    Kind.WRITE: "Writes; a repeat writes again, unless both carry the same `Idempotency-Key`.",
    Kind.IDEMPOTENT: "Writes; a repeat changes nothing more.",
}

INTRODUCTION = """\
Every operation is `POST /v1/<name>` with a flat JSON object, and answers with one.

`org`, `namespace` and `agent` may be left out where the token, the transport or the install knows them. Fields that an
operation does not have are served all the same and named in `ignored_args`. Every error is
`{"detail": {"code", "message", "category", "retryable", ...}}`, and every answer carries `X-Request-Id`."""

ERROR_SCHEMA: Mapping[str, object] = {
    "type": "object",
    "required": ["detail"],
    "properties": {
        "detail": {
            "type": "object",
            "required": ["code", "message", "category", "retryable"],
            "properties": {
                "code": {"type": "string", "description": "A stable name in upper snake case."},
                "message": {"type": "string", "description": "Which field it is about and what to do."},
                "category": {"type": "string", "description": "request, auth, not_found, conflict, limit or server."},
                "retryable": {"type": "boolean", "description": "Whether the same call may succeed later."},
                "retry_after_s": {"type": "number", "description": "Seconds to wait before that."},
            },
            "additionalProperties": {"description": "Help for programs, such as `current_sha256` or `field`."},
        }
    },
}


def document(registry: Registry, version: str) -> dict[str, Any]:
    """The whole document: a path for each operation, one shared error."""
    schemas: dict[str, Any] = {"Error": dict(ERROR_SCHEMA)}
    paths = {f"/v1/{op.name}": {"post": _operation(op, schemas)} for op in registry}
    planes = sorted({plane_of(op) for op in registry})
    return {
        "openapi": "3.1.0",
        "info": {"title": "Loom", "version": version, "description": INTRODUCTION},
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "tags": [{"name": plane} for plane in planes],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "headers": {
                "RequestId": {"description": "Names this call in the server's log.", "schema": {"type": "string"}},
                "RetryAfter": {"description": "Seconds to wait.", "schema": {"type": "integer"}},
            },
            "parameters": _parameters(),
            "responses": dict(_shared_responses()),
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A Loom token. Not needed on a server for a single user, as long as none was made.",
                }
            },
        },
        "security": [{"token": []}, {}],
    }


def errors_of(op: AnyOp) -> list[type[LoomError]]:
    """Every error `op` can end in, by status and code."""
    found = {*ALWAYS, *op.raises}
    if op.kind is not Kind.READ:
        found.add(Conflict)
    return sorted(found, key=lambda error: (error.status, error.code))


def _operation(op: AnyOp, schemas: dict[str, Any]) -> dict[str, Any]:
    request = request_schema(op, listed=False)
    required = [name for name in request.pop("required", []) if name not in FILLED]
    if required:
        request["required"] = required
    takes, gives = f"{op.name}.request", f"{op.name}.answer"
    schemas[takes] = _hoisted(request, takes, schemas)
    schemas[gives] = _hoisted(answer_schema(op), gives, schemas)
    return {
        "operationId": op.name,
        "tags": [plane_of(op)],
        "summary": op.summary,
        "description": _description(op),
        "parameters": [{"$ref": f"#/components/parameters/{name}"} for name in _parameter_names(op)],
        "requestBody": {
            "required": bool(required),
            "content": {
                "application/json": {
                    "schema": {"$ref": f"#/components/schemas/{takes}"},
                    "example": dict(op.example),
                }
            },
        },
        "responses": {
            "200": {
                "description": "The answer.",
                "headers": {"X-Request-Id": {"$ref": "#/components/headers/RequestId"}},
                "content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{gives}"}}},
            },
            **_error_responses(op),
        },
        "x-loom-role": op.role.word,
        "x-loom-kind": op.kind.value,
    }


def _description(op: AnyOp) -> str:
    filled = ", ".join(f"`{name}`" for name in IDENTITY_FIELDS if name in FILLED)
    lines = [
        op.summary,
        f"Needs the `{op.role.word}` role. {KIND_MEANS[op.kind]}",
        f"{filled} are filled in where they are left out and known.",
    ]
    if op.raises:
        lines.append("Errors of its own: " + ", ".join(sorted(f"`{error.code}`" for error in op.raises)) + ".")
    return "\n\n".join(lines)


def _parameter_names(op: AnyOp) -> Iterable[str]:
    yield from ("Agent", "Session", "RequestId")
    if op.kind is not Kind.READ and op.replayable:
        yield "IdempotencyKey"


def _parameters() -> dict[str, Any]:
    described = {
        "Agent": ("X-Loom-Agent", "The agent that calls, where the body names none.", 256),
        "Session": ("X-Loom-Session", "The conversation the call belongs to, where the body names none.", 256),
        "RequestId": ("X-Request-Id", "An id of your own for this call; letters, digits, `.`, `_`, `-`.", 64),
        "IdempotencyKey": ("Idempotency-Key", "The same key again within 24 hours gives the first answer again.", 255),
    }
    return {
        key: {
            "name": name,
            "in": "header",
            "required": False,
            "description": meaning,
            "schema": {"type": "string", "minLength": 1, "maxLength": length_max},
        }
        for key, (name, meaning, length_max) in described.items()
    }


def _error_responses(op: AnyOp) -> dict[str, Any]:
    by_status: dict[int, list[type[LoomError]]] = {}
    for error in errors_of(op):
        by_status.setdefault(error.status, []).append(error)
    return {
        str(status): (
            {"$ref": f"#/components/responses/{status}"}
            if set(errors) <= set(ALWAYS)
            else _error_response(status, errors)
        )
        for status, errors in by_status.items()
    }


def _shared_responses() -> Iterable[tuple[str, dict[str, Any]]]:
    by_status: dict[int, list[type[LoomError]]] = {}
    for error in ALWAYS:
        by_status.setdefault(error.status, []).append(error)
    for status, errors in sorted(by_status.items()):
        yield str(status), _error_response(status, errors)


def _error_response(status: int, errors: list[type[LoomError]]) -> dict[str, Any]:
    headers = {"X-Request-Id": {"$ref": "#/components/headers/RequestId"}}
    if status in (RateLimited.status, Unavailable.status):
        headers["Retry-After"] = {"$ref": "#/components/headers/RetryAfter"}
    meanings = [f"`{error.code}`: {(error.__doc__ or '').strip().splitlines()[0]}" for error in errors]
    return {
        "description": "\n\n".join(meanings),
        "headers": headers,
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
    }


def _hoisted(schema: dict[str, Any], name: str, schemas: dict[str, Any]) -> dict[str, Any]:
    """`schema` with its `$defs` moved among the document's own schemas, under names that begin with `name`."""
    definitions: dict[str, Any] = schema.pop("$defs", {})
    for key, value in definitions.items():
        schemas[f"{name}.{key}"] = _repointed(value, name)
    moved: dict[str, Any] = _repointed(schema, name)
    return moved


def _repointed(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value)
        return {
            key: (
                f"#/components/schemas/{name}.{part.removeprefix('#/$defs/')}"
                if key == "$ref" and isinstance(part, str)
                else _repointed(part, name)
            )
            for key, part in pairs.items()
        }
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return [_repointed(part, name) for part in items]
    return value
