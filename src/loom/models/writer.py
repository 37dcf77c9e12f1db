"""What the rest of Loom asks of a language model: JSON of a given shape, made from given text."""

from collections.abc import Mapping
from typing import Protocol

from loom.canonical import Json


class WriterFailed(Exception):
    """The model gave no usable answer.

    The message holds no text of a caller.

    Attributes:
        retryable: whether asking again later may help.
        too_long: whether asking for less at once may help: the text or the answer did not fit.
        misconfigured: whether the settings or the account are to blame, whatever is asked.
        tells_nothing: whether this says nothing of the model: it was not asked, or given too little time.
        rest_s: how long it will not be asked, since it failed several times in a row; 0 when it may be at once.
    """

    def __init__(
        self,
        message: str,
        *,
        retryable: bool,
        too_long: bool = False,
        misconfigured: bool = False,
        tells_nothing: bool = False,
        rest_s: float = 0.0,
    ) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.too_long = too_long
        self.misconfigured = misconfigured
        self.tells_nothing = tells_nothing
        self.rest_s = rest_s


class Writer(Protocol):
    """A language model. Safe to call from several threads; never called inside a transaction."""

    @property
    def endpoint(self) -> str:
        """Where text goes, for a person to read; holds no secret."""
        ...

    @property
    def model(self) -> str:
        """The model's name."""
        ...

    @property
    def input_length_max(self) -> int:
        """Characters of instructions, text and shape together that one call takes."""
        ...

    def write(self, instructions: str, text: str, shape: Mapping[str, Json], timeout_s: float) -> Json:
        """JSON that was parsed, and that the model was held to make in `shape`; the caller validates it.

        Args:
            instructions: what to do; trusted.
            text: what to do it with; data, whatever it says.
            shape: a JSON Schema.
            timeout_s: how long this may take, retries included.

        Raises:
            WriterFailed: no answer in time, a refusal, an error of the endpoint, or an answer that is not JSON.
        """
        ...
