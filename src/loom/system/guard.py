"""An embedder that gives vectors only while the store is of its space.

A reindex may switch the store to another model while a server runs. That server's questions would then be compared
with vectors that are about to go, and what it writes would have none that others can use. So it looks at the record
about every second, before and after it embeds, and fails once the record names another space: searches go by words and
say so, writes leave their vectors to a job, and the worker takes no jobs. Others do them, or this server once it is
started with the new setting.
"""

import logging
import time
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Final

from loom.models.interface import Embedder, EmbedderFailed
from loom.models.wrapping import WrappingEmbedder
from loom.storage.indexes import Vector
from loom.storage.interface import StoreError
from loom.system.spaces import Spaces, told

LOOK_S: Final = 1.0
"""How old may be what is known of the record."""

NOTE_S: Final = 60.0
"""How often it notes that it makes vectors: see `spaces.IN_USE_US`."""

RETIRED: Final = (
    "the store's vectors are of another model now than this server's; start it again with the setting embedder"
    " (LOOM_EMBEDDER) that they were made with"
)

log = logging.getLogger(__name__)


class SpaceGuard(WrappingEmbedder):
    """An `Embedder` around another one. Safe for threads; like every embedder it is called in no transaction.

    Args:
        inner: makes the vectors.
        spaces: the store's record.
        look_s: how old may be what is known of the record.
        clock_s: a steady clock.
    """

    def __init__(
        self,
        inner: Embedder,
        spaces: Spaces,
        look_s: float = LOOK_S,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(inner)
        self._spaces = spaces
        self._look_s = look_s
        self._clock_s = clock_s
        self._looking = Lock()
        self._looked_s = float("-inf")
        self._noting = Lock()
        self._noted_s = float("-inf")
        self._served = ""
        self._told = False

    def fits(self) -> bool:
        """Whether the store is of this space, or of none yet."""
        self._look()
        return self._served in ("", self.space.fingerprint)

    def embed_query(self, text: str, timeout_s: float) -> Vector:
        """The vector of a query; see `Embedder`."""
        self._need()
        vector = self._inner.embed_query(text, timeout_s)
        self._need()
        return vector

    def embed_passages(self, texts: Sequence[str], timeout_s: float) -> list[Vector]:
        """One vector for each passage; a store of no space is of this one from now on. See `Embedder`."""
        until_s = time.monotonic() + timeout_s
        self._need()
        if texts:
            self._note(until_s)
        vectors = self._inner.embed_passages(texts, max(0.0, until_s - time.monotonic()))
        self._need()
        return vectors

    def _need(self) -> None:
        if not self.fits():
            raise EmbedderFailed(RETIRED)

    def _look(self) -> None:
        """Read the record when it is time. While one thread does, the others go by what was known."""
        if self._clock_s() - self._looked_s < self._look_s or not self._looking.acquire(blocking=False):
            return
        try:
            served = self._spaces.served()
        except StoreError:
            return  # whoever wants vectors of a store that cannot be read meets that trouble anyway
        else:
            self._served, self._looked_s = served, self._clock_s()
            self._tell()
        finally:
            self._looking.release()

    def _note(self, until_s: float) -> None:
        """See that the record says that vectors of this space are made; a store of none is of this one from now on.

        While one thread does, the others go on; but in a store of none they wait for it, up to `until_s`.
        """
        first = not self._served
        if not first and self._clock_s() - self._noted_s < NOTE_S:
            return
        if not self._noting.acquire(timeout=max(0.0, until_s - time.monotonic()) if first else 0.0):
            if first:
                raise EmbedderFailed("the store did not note in time which model its vectors are of")
            return
        try:
            if self._served and self._clock_s() - self._noted_s < NOTE_S:
                return
            now_s = self._clock_s()
            try:
                if not self._served or not self._spaces.use(self.space):
                    self._served = self._spaces.adopt(self.space)
            except StoreError as error:
                raise EmbedderFailed("the store cannot note which model its vectors are of") from error
            self._noted_s = now_s
        finally:
            self._noting.release()
        self._tell()
        self._need()

    def _tell(self) -> None:
        fits = self._served in ("", self.space.fingerprint)
        if not fits and not self._told:
            log.error("%s; until then it finds by words alone. Its own vectors are of %s", RETIRED, told(self.space))
        elif fits and self._told:
            log.warning("the store's vectors are of this server's model again")
        self._told = not fits
