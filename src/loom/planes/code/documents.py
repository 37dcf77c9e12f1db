"""Where a repository's documents go: values that another plane gives, put in by who knows both."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from loom.planes.code.files import is_document
from loom.storage.interface import Transaction

Put = Callable[[Transaction, str, str, str], None]
"""Takes a namespace, a path and a text, in the transaction that keeps the file."""

Remove = Callable[[Transaction, str, str], None]
"""Takes a namespace and a path, in the transaction that forgets the file."""


def _no_put(tx: Transaction, namespace: str, path: str, text: str) -> None:
    del tx, namespace, path, text


def _no_remove(tx: Transaction, namespace: str, path: str) -> None:
    del tx, namespace, path


@dataclass(frozen=True, slots=True)
class Library:
    """Keeps documents.

    Attributes:
        keep: takes a new or changed document.
        forget: takes one that is gone; no error for one that never was.
    """

    keep: Put = _no_put
    forget: Remove = _no_remove

    def put(self, tx: Transaction, namespace: str, path: str, text: str) -> None:
        """Keep a file that is a document; pass over every other."""
        if is_document(path) and text.strip():
            self.keep(tx, namespace, path, text)

    def remove(self, tx: Transaction, namespace: str, path: str) -> None:
        """Forget a file that was a document."""
        if is_document(path):
            self.forget(tx, namespace, path)


NO_LIBRARY: Final = Library()
