"""knowledge.upload: a file too large for one request, in parts."""

from typing import Annotated

from pydantic import Field

from loom.access.caller import Role
from loom.errors import Conflict, Rejected, TooLong
from loom.extraction.reading import FILE_BYTES_MAX
from loom.ops.spec import Answer, Context, Kind, Op, OpenRequest
from loom.planes.knowledge import uploads
from loom.planes.knowledge.uploads import PART_LENGTH_MAX, PARTS_MAX, UPLOAD_ID_LENGTH_MAX


class UploadRequest(OpenRequest):
    """What knowledge.upload takes."""

    upload_id: Annotated[
        str, Field(max_length=UPLOAD_ID_LENGTH_MAX, description="The upload, as the first part's answer named it.")
    ] = ""
    part: Annotated[int, Field(ge=0, lt=PARTS_MAX, description="The part's place, from 0; sent again it replaces.")] = 0
    content_base64: Annotated[
        str, Field(max_length=PART_LENGTH_MAX, description="The part, in base64; at most 2 MiB of the file.")
    ] = ""
    discard: Annotated[bool, Field(description="Forget the upload instead; content_base64 is not needed.")] = False


class UploadAnswer(Answer):
    """What knowledge.upload answers."""

    upload_id: Annotated[str, Field(description="Send it with the next parts, then with knowledge.add.")]
    part_count: Annotated[int, Field(description="Parts that are there now.")]
    byte_count: Annotated[int, Field(description="Bytes of the file that are there now; at most 67,108,864.")]


def upload(ctx: Context, request: UploadRequest) -> UploadAnswer:
    """Keep one part, or forget all of them."""
    owner = (ctx.caller.principal, request.namespace, request.user_id)
    if request.discard:
        uploads.drop(ctx.tx, owner, request.upload_id)
        return UploadAnswer(upload_id=request.upload_id, part_count=0, byte_count=0)
    content = uploads.decoded(request.content_base64, "content_base64")
    if not content:
        raise Rejected("content_base64: is empty", field="content_base64")
    ctx.tx.lock("knowledge.upload", ctx.caller.principal)
    upload_id = request.upload_id or uploads.new_id()
    known = uploads.sizes(ctx.tx, owner, upload_id)
    if request.upload_id and not known:
        raise Rejected("upload_id: there is no such upload; leave it out to begin one", field="upload_id")
    if not known and uploads.open_count(ctx.tx, ctx.caller.principal) >= uploads.OPEN_MAX:
        raise Conflict("upload_id: too many uploads are under way; add or discard one first", field="upload_id")
    known[request.part] = len(content)
    total = sum(known.values())
    if total > FILE_BYTES_MAX:
        raise TooLong(f"content_base64: a file may have {FILE_BYTES_MAX} bytes; split it", field="content_base64")
    uploads.put(ctx.tx, owner, (upload_id, request.part), content, ctx.now_us)
    return UploadAnswer(upload_id=upload_id, part_count=len(known), byte_count=total)


UPLOAD = Op(
    name="knowledge.upload",
    summary="Send a file of over 2 MiB in parts, before knowledge.add takes it; kept for an hour.",
    takes=UploadRequest,
    gives=UploadAnswer,
    role=Role.WRITER,
    kind=Kind.WRITE,
    run=upload,
    example={"content_base64": "IyBHdWlkZQoKRmlyc3QgcGFydC4="},
    raises=(Conflict,),
    toolsets=frozenset(),
)
