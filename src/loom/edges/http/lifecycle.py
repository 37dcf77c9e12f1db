"""Whether the server takes calls, or no more."""

from loom.errors import Unavailable


class Lifecycle:
    """A switch that the runner turns and every call looks at. Health stays reachable all the while."""

    def __init__(self) -> None:
        self._why_closed = ""

    @property
    def why_closed(self) -> str:
        """Why calls are refused; empty while they are served."""
        return self._why_closed

    def stopping(self) -> None:
        """From now on new calls are refused; those that run come to their end."""
        self._why_closed = "the server is stopping; try again in a few seconds"

    def check(self) -> None:
        """Unavailable unless calls are served."""
        if self._why_closed:
            raise Unavailable(self._why_closed, retry_after_s=1)
