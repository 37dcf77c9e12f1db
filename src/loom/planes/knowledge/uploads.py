"""Files that are sent in parts, and how base64 is read."""

import base64
import binascii
import secrets
from typing import Final, cast

from loom.errors import Rejected
from loom.storage.interface import Transaction

PART_BYTES_MAX: Final = 2 * 1024 * 1024
PART_LENGTH_MAX: Final = 4 * -(-PART_BYTES_MAX // 3)
PARTS_MAX: Final = 1024
OPEN_MAX: Final = 16
"""Uploads that one caller may have under way."""

UPLOAD_ID_LENGTH_MAX: Final = 64
_ID_BYTES: Final = 16

PUT = """
INSERT INTO knowledge_upload (org, upload_id, part, principal, namespace, user_id, byte_count, content, created_at)
VALUES (:org, :upload_id, :part, :principal, :namespace, :user_id, :byte_count, :content, :created_at)
ON CONFLICT (org, upload_id, part) DO UPDATE
SET byte_count = excluded.byte_count, content = excluded.content, created_at = excluded.created_at
"""
SIZE = """
SELECT part, byte_count FROM knowledge_upload
WHERE org = :org AND upload_id = :upload_id AND principal = :principal AND namespace = :namespace
    AND user_id = :user_id
ORDER BY part
"""
PART = "SELECT content FROM knowledge_upload WHERE org = :org AND upload_id = :upload_id AND part = :part"
OPEN = "SELECT count(DISTINCT upload_id) AS count FROM knowledge_upload WHERE org = :org AND principal = :principal"
DROP = """
DELETE FROM knowledge_upload
WHERE org = :org AND upload_id = :upload_id AND principal = :principal AND namespace = :namespace
    AND user_id = :user_id
"""

Owner = tuple[str, str, str]
"""Principal, namespace and user: nobody else may add to an upload or use it."""


def decoded(text: str, field: str) -> bytes:
    """What the base64 stands for; line breaks in it are passed over.

    Raises:
        Rejected: it is no base64.
    """
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        raise Rejected(f"{field}: is not base64", field=field) from None


def new_id() -> str:
    """A name that nobody guesses."""
    return secrets.token_hex(_ID_BYTES)


def sizes(tx: Transaction, owner: Owner, upload_id: str) -> dict[int, int]:
    """Bytes of each part that is there."""
    rows = tx.rows(SIZE, upload_id=upload_id, **_owned(owner))
    return {cast("int", row["part"]): cast("int", row["byte_count"]) for row in rows}


def put(tx: Transaction, owner: Owner, at: tuple[str, int], content: bytes, now_us: int) -> None:
    """Keep one part, in place of what was there."""
    upload_id, part = at
    text = base64.b64encode(content).decode("ascii")
    params = _owned(owner)
    tx.run(PUT, upload_id=upload_id, part=part, byte_count=len(content), content=text, created_at=now_us, **params)


def content(tx: Transaction, owner: Owner, upload_id: str) -> bytes:
    """The whole file.

    Raises:
        Rejected: there is no such upload of this caller, or a part is missing.
    """
    known = sizes(tx, owner, upload_id)
    if not known:
        raise Rejected("upload_id: there is no such upload; begin one with knowledge.upload", field="upload_id")
    missing = next((part for part in range(max(known) + 1) if part not in known), None)
    if missing is not None:
        raise Rejected(f"upload_id: part {missing} is missing; send it", field="upload_id")
    whole = bytearray()
    for part in sorted(known):
        row = tx.row(PART, upload_id=upload_id, part=part)
        if row is not None:
            whole += base64.b64decode(cast("str", row["content"]))
    return bytes(whole)


def open_count(tx: Transaction, principal: str) -> int:
    """How many uploads a caller has under way."""
    row = tx.row(OPEN, principal=principal)
    return cast("int", row["count"]) if row else 0


def drop(tx: Transaction, owner: Owner, upload_id: str) -> int:
    """Forget an upload; how many parts it had."""
    return tx.run(DROP, upload_id=upload_id, **_owned(owner))


def _owned(owner: Owner) -> dict[str, str]:
    return dict(zip(("principal", "namespace", "user_id"), owner, strict=True))
