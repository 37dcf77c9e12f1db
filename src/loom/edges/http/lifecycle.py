"""Whether the server takes calls: not yet, now, or no more."""

from loom.errors import Unavailable


class Lifecycle:
    """A switch that the runner turns and every call looks at.

    Args:
        starting: begin closed; `serving()` opens. Health stays reachable all the while.
    """

    def __init__(self, *, starting: bool = False) -> None:
        self._why_closed = "the server is starting; try again in a second" if starting else ""

    @property
    def why_closed(self) -> str:
        """Why calls are refused; empty while they are served."""
        return self._why_closed

    def serving(self) -> None:
        """From now on calls are served."""
        self._why_closed = ""

    def stopping(self) -> None:
        """From now on new calls are refused; those that run come to their end."""
        self._why_closed = "the server is stopping; try again in a few seconds"

    def check(self) -> None:
        """Unavailable unless calls are served."""
        if self._why_closed:
            raise Unavailable(self._why_closed, retry_after_s=1)
