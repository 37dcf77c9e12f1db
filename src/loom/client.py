"""The Python client.

    from loom.client import Loom

    with Loom(namespace="shop", agent="helper") as loom:
        loom.memory.set(memory_key="team/tea", value="We drink green tea at four.")
        print(loom.search.query(query="when is tea?"))

`AsyncLoom` has the same methods, to be awaited. Errors are the classes of
`loom.errors`; each is a `LoomError`.
"""

from loom.edges.client.drivers import AsyncLoom, Loom
from loom.errors import LoomError

__all__ = ["AsyncLoom", "Loom", "LoomError"]
