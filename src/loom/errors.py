"""Every error a caller can meet, and the one place each gets its HTTP status.

* LoomError
  + BadRequest            400  BAD_REQUEST
    - MalformedJson       400  MALFORMED_JSON
    - InvalidText         400  INVALID_TEXT
  + Unauthenticated       401  UNAUTHENTICATED
  + Denied                403  DENIED
    - WrongOrigin         403  WRONG_ORIGIN
  + NotFound              404  NOT_FOUND
    - UnknownOp           404  UNKNOWN_OP
  + MethodNotAllowed      405  METHOD_NOT_ALLOWED
  + Conflict              409  CONFLICT
    - ShaMismatch         409  SHA_MISMATCH
    - PinnedConflict      409  PINNED_CONFLICT
    - AmbiguousKey        409  AMBIGUOUS_KEY
    - KeyReused           409  KEY_REUSED
    - KindConflict        409  KIND_CONFLICT
  + BodyTooLarge          413  BODY_TOO_LARGE
  + WrongMedia            415  WRONG_MEDIA
  + WrongHost             421  WRONG_HOST
  + Rejected              422  VALIDATION
    - TooLong             422  TOO_LONG
    - TextNotFound        422  TEXT_NOT_FOUND
  + Locked                423  LOCKED
  + RateLimited           429  RATE_LIMITED
  + HeadTooLarge          431  HEAD_TOO_LARGE
  + Internal              500  INTERNAL
  + ModelFailed           502  MODEL_FAILED
  + Unavailable           503  UNAVAILABLE

A class's docstring says what happened; the message of an instance says which
field and what to do. Messages never repeat stored text or secrets.
"""

from collections.abc import Mapping
from typing import ClassVar

Extra = str | int | float | bool | None | list[str]


class LoomError(Exception):
    """Something the caller did or met; its message is safe to show.

    Args:
        message: one or two sentences that name the field and the way out.
        retry_after_s: seconds after which the same call may succeed.
        extras: machine-readable help, for example `current_sha256`.
    """

    status: ClassVar[int] = 500
    code: ClassVar[str] = "INTERNAL"
    category: ClassVar[str] = "server"
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, retry_after_s: float | None = None, **extras: Extra) -> None:
        super().__init__(message)
        self.message = message
        self.retry_after_s = retry_after_s
        self.extras: Mapping[str, Extra] = extras

    def body(self) -> dict[str, object]:
        """The error as every face shows it: `{"detail": {code, message, ...}}`."""
        detail: dict[str, object] = {
            "code": self.code,
            "message": self.message,
            "category": self.category,
            "retryable": self.retryable,
            **self.extras,
        }
        if self.retry_after_s is not None:
            detail["retry_after_s"] = self.retry_after_s
        return {"detail": detail}


class BadRequest(LoomError):
    """The request cannot be read."""

    status = 400
    code = "BAD_REQUEST"
    category = "request"


class MalformedJson(BadRequest):
    """The body is not a JSON object, or holds NaN or Infinity."""

    code = "MALFORMED_JSON"


class InvalidText(BadRequest):
    """A text is not valid Unicode (a lone surrogate) or a number is not finite."""

    code = "INVALID_TEXT"


class Unauthenticated(LoomError):
    """No token was sent where one is needed, or the token is unknown, expired or revoked."""

    status = 401
    code = "UNAUTHENTICATED"
    category = "auth"


class Denied(LoomError):
    """The caller's role, pins, namespaces or read scope do not reach this far."""

    status = 403
    code = "DENIED"
    category = "auth"


class WrongOrigin(Denied):
    """A web page of another origin sent this request."""

    code = "WRONG_ORIGIN"


class NotFound(LoomError):
    """What the request names does not exist, or is not visible to this caller."""

    status = 404
    code = "NOT_FOUND"
    category = "not_found"


class UnknownOp(NotFound):
    """No operation has this name."""

    code = "UNKNOWN_OP"


class MethodNotAllowed(LoomError):
    """The path does not answer to this HTTP method."""

    status = 405
    code = "METHOD_NOT_ALLOWED"
    category = "request"


class Conflict(LoomError):
    """The stored state is not the state the request expected."""

    status = 409
    code = "CONFLICT"
    category = "conflict"


class ShaMismatch(Conflict):
    """`if_match_sha256` is not the hash of the live value; `current_sha256` is."""

    code = "SHA_MISMATCH"


class PinnedConflict(Conflict):
    """The memory is pinned, and the request would delete it or let it expire."""

    code = "PINNED_CONFLICT"


class AmbiguousKey(Conflict):
    """Several agents or users wrote this key; name one of `writers`."""

    code = "AMBIGUOUS_KEY"


class KeyReused(Conflict):
    """The idempotency key was used with another body."""

    code = "KEY_REUSED"


class KindConflict(Conflict):
    """The key holds another kind of row (a profile section, or a plain memory)."""

    code = "KIND_CONFLICT"


class BodyTooLarge(LoomError):
    """The request body is over the server's limit."""

    status = 413
    code = "BODY_TOO_LARGE"
    category = "limit"


class WrongMedia(LoomError):
    """The body is not sent as JSON, or is compressed."""

    status = 415
    code = "WRONG_MEDIA"
    category = "request"


class WrongHost(LoomError):
    """The request names a host that this server does not answer for."""

    status = 421
    code = "WRONG_HOST"
    category = "request"


class Rejected(LoomError):
    """The request is well formed JSON but not acceptable; `field` says where."""

    status = 422
    code = "VALIDATION"
    category = "request"


class TooLong(Rejected):
    """A value would be over its size cap."""

    code = "TOO_LONG"


class TextNotFound(Rejected):
    """The text to replace does not occur."""

    code = "TEXT_NOT_FOUND"


class Locked(LoomError):
    """The row is locked against this change."""

    status = 423
    code = "LOCKED"
    category = "conflict"


class RateLimited(LoomError):
    """Too many calls of this kind; wait `retry_after_s` seconds."""

    status = 429
    code = "RATE_LIMITED"
    category = "limit"
    retryable = True


class HeadTooLarge(LoomError):
    """The request's headers are over the server's limit."""

    status = 431
    code = "HEAD_TOO_LARGE"
    category = "limit"


class Internal(LoomError):
    """The server failed; the log has the cause under the request id."""


class ModelFailed(LoomError):
    """The configured language model gave no usable answer, and asking again will not help; nothing was written."""

    status = 502
    code = "MODEL_FAILED"


class Unavailable(LoomError):
    """The server cannot serve this now (starting, stopping, disk full); nothing was written."""

    status = 503
    code = "UNAVAILABLE"
    category = "server"
    retryable = True
