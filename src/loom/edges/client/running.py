"""What the generated methods need: something that runs an operation and types its answer."""

from collections.abc import Mapping
from typing import Protocol, TypeVar

from loom.ops.spec import Answer

Out = TypeVar("Out", bound=Answer)


class Run(Protocol):
    """Runs an operation and waits for its answer."""

    def __call__(self, op: str, gives: type[Out], fields: Mapping[str, object], /) -> Out:
        """The answer of `op`, as a `gives`."""
        ...


class AsyncRun(Protocol):
    """Runs an operation; to be awaited."""

    async def __call__(self, op: str, gives: type[Out], fields: Mapping[str, object], /) -> Out:
        """The answer of `op`, as a `gives`."""
        ...
