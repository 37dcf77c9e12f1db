"""The last handler: what no layer below expected becomes a logged, bare INTERNAL error."""

import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from starlette.requests import ClientDisconnect

from loom.errors import Internal, LoomError

logger = logging.getLogger("loom.edges")

Made = TypeVar("Made")


async def guarded(work: Callable[[], Awaitable[Made]], request_id: str) -> Made:
    """What `work` gives; any error that is not meant for the caller is logged and hidden.

    Raises:
        LoomError: what `work` raised, or Internal in place of anything else.
        ClientDisconnect: the client left before it had sent its request.
    """
    try:
        return await work()
    except (LoomError, ClientDisconnect):
        raise
    except Exception:
        logger.exception("unexpected error", extra={"request_id": request_id})
    raise Internal("the server failed; its log has the cause under the request id", request_id=request_id)
