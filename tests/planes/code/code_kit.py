"""Small invented repositories, and a core that indexes them."""

import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fakes import Core
from loom.access.caller import LOCAL, Caller

CODE_ORG = "dev"
READY_TURNS_MAX = 200

SHOP: Mapping[str, str] = {
    "shop/prices.py": '''"""What things cost."""

TAX_RATE = 0.2


def with_tax(amount: float) -> float:
    """Add the tax to a net amount."""
    return amount * (1 + TAX_RATE)


class Basket:
    """Holds what a customer wants to buy."""

    def __init__(self) -> None:
        self.items = []

    def add(self, item: str, amount: float) -> None:
        self.items.append((item, with_tax(amount)))

    def total(self) -> float:
        """The sum of all items."""
        return sum(amount for _, amount in self.items)
''',
    "shop/checkout.py": """from shop.prices import Basket, with_tax


def pay(basket: Basket) -> str:
    # The customer hands over the money.
    amount = basket.total()
    return receipt(amount)


def receipt(amount: float) -> str:
    return f"paid {with_tax(amount)}"


def main() -> None:
    print(pay(Basket()))
""",
    "README.md": "# The shop\n\nSells kettles and other things that boil water.\n",
    "tools/run.sh": "#!/bin/sh\necho sweeping the warehouse floor with a broom\n",
}


def written(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """Files in a folder, which is made."""
    root.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def git(folder: Path, *words: str) -> str:
    """Run git as a person would."""
    person = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com"}
    committer = {"GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.com"}
    known = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "PATH": os.defpath}
    done = subprocess.run(
        ["git", "-C", str(folder), *words],
        env={**known, **person, **committer},
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.stdout.strip()


def repository(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """A git repository with one commit of these files."""
    written(root, files)
    git(root, "init", "--quiet", "--initial-branch=main")
    committed(root)
    return root


def committed(root: Path) -> str:
    """Commit everything; the commit."""
    git(root, "add", "--all", "--force")
    git(root, "commit", "--quiet", "--message=a change")
    return git(root, "rev-parse", "HEAD")


@dataclass
class Shelf:
    """A core and one namespace of code."""

    core: Core
    namespace: str = "shop"

    def call(self, op: str, /, *, caller: Caller = LOCAL, **args: Any) -> dict[str, Any]:
        """An operation on the namespace."""
        return self.core.call(op, caller=caller, **{"org": CODE_ORG, "namespace": self.namespace, **args})

    def index(self, source: Path | str, **args: Any) -> dict[str, Any]:
        """Index a source and do all the work; the status."""
        self.call("code.index", source=str(source), **args)
        return self.finish()

    def finish(self) -> dict[str, Any]:
        """Do what jobs there are; the status."""
        for _ in range(READY_TURNS_MAX):
            if not self.core.drain(CODE_ORG):
                break
        return self.call("code.index_status")

    def names(self, query: str, **args: Any) -> list[str]:
        """The qualified names that a search finds."""
        return [hit["qualified_name"] for hit in self.call("code.search", query=query, **args)["results"]]

    def callers(self, name: str, **args: Any) -> set[tuple[str, str]]:
        """Who uses a symbol, and what speaks for it; mentions left out."""
        found = self.call("code.callers", name=name, **args)["callers"]
        return {(one["qualified_name"], one["match"]) for one in found if one["how"] != "mention"}


ShelfOf = Callable[..., Shelf]
