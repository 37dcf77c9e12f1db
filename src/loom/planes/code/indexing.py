"""The job that indexes a repository, a slice at a time.

First the files that changed are put down, then they are read and written in small
batches, each with its symbols in one transaction. Between slices other jobs have their turn,
and after a restart the next slice goes on with what is left.
"""

import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from loom.access import namespaces
from loom.jobs import outbox
from loom.jobs.handlers import Bench
from loom.planes.code import embeds, files, git, store, symbols, texts, within
from loom.planes.code.documents import NO_LIBRARY, Library
from loom.planes.code.extract import Extracted, extracted
from loom.planes.code.files import Text
from loom.planes.code.folder import Folder
from loom.planes.code.git import Fetched, Fetches
from loom.planes.code.languages import grammar_of
from loom.planes.code.sources import CLOSED, GIT, Entry, Source, SourceFailed, Yard
from loom.planes.code.store import FAILED, INDEXING, READY, WAITING, Repository
from loom.planes.code.symbols import Made
from loom.storage.interface import Transaction

INDEX: Final = "code.index"
SLICE_S: Final = 5.0
FETCH_SLICE_S: Final = 10.0
FETCH_AGAIN_US: Final = 1_000_000
BATCH_FILES: Final = 64
BATCH_BYTES: Final = 2 * 1024 * 1024
TRIES_MAX: Final = 3
"""How often a file is begun that brings down whoever reads it."""


@dataclass(frozen=True, slots=True)
class Indexer:
    """Indexes repositories.

    Attributes:
        yard: how repositories are fetched.
        fetches: those under way in this process.
        library: where documents go.
        slice_s: how long one turn may work.
    """

    yard: Yard
    fetches: Fetches
    library: Library = NO_LIBRARY
    slice_s: float = SLICE_S

    def step(self, bench: Bench, org: str, subjects: Sequence[str]) -> None:
        """The job `code.index`: subjects are repositories' numbers."""
        for subject in subjects:
            with bench.database.transaction(org, write=False) as tx:
                repository = store.by_id(tx, int(subject))
            if repository is not None and repository.state in (WAITING, INDEXING):
                self._go_on(bench, org, repository)

    def _go_on(self, bench: Bench, org: str, repository: Repository) -> None:
        try:
            source = self._source(org, repository)
            if source is None:
                self._again(bench, org, repository, FETCH_AGAIN_US)
                return
            if repository.state == WAITING:
                self._plan(bench, org, repository, source)
            whole = self._work(bench, org, repository, source)
        except SourceFailed as failure:
            self._end(bench, org, repository, FAILED, str(failure))
            return
        if whole:
            self._end(bench, org, repository, READY, "")
        else:
            self._again(bench, org, repository, 0)

    def _source(self, org: str, repository: Repository) -> Source | None:
        """The repository's files; None while they are still fetched."""
        local = git.local_path(repository.source) if repository.source_kind == GIT else Path(repository.source)
        if local is not None:
            self._check_local(repository, local)
        if repository.source_kind != GIT:
            return Folder(Path(repository.source), self.yard, None if repository.trusted else self.yard.folders)
        key = f"{org}/{repository.repository_id}"
        if repository.state == WAITING:
            asked = (key, repository.source, repository.revision)
            if not self.fetches.step(*asked, FETCH_SLICE_S, trusted=repository.trusted):
                return None
        return Fetched(self.fetches.place(key), self.yard)

    def _check_local(self, repository: Repository, local: Path) -> None:
        """SourceFailed for a folder that is not read, or not for a token."""
        why = "" if repository.trusted else within.refusal(local, self.yard.folders)
        if why:
            raise SourceFailed(why)
        if self.yard.is_closed(local.resolve()):
            raise SourceFailed(CLOSED)
        if repository.trusted or repository.state != WAITING:
            return
        if repository.source_kind == GIT:
            within.check_repository(local, self.yard.folders)
            return
        # What is around a part of a repository says which files are the repository's, and its commit.
        _, top = within.around(local, self.yard.folders)
        within.check_repository(top or local, self.yard.folders, within.OF_FOLDER)

    def _plan(self, bench: Bench, org: str, repository: Repository, source: Source) -> None:
        listing = source.listed()
        with bench.database.transaction(org, write=True) as tx:
            if store.current(tx, repository) is None:
                return
            known = store.digests(tx, repository.namespace)
            changed = [entry for entry in listing.entries if known.get(entry.path) != entry.digest]
            gone = known.keys() - {entry.path for entry in listing.entries}
            store.plan(tx, repository, [*changed, *(Entry(path, 0, "") for path in gone)])
            tx.run(
                store.PLANNED,
                repository_id=repository.repository_id,
                generation=repository.generation,
                commit_id=listing.commit_id,
                total=len(listing.entries),
                done=len(listing.entries) - len(changed),
                skipped=json.dumps(listing.skipped, sort_keys=True),
            )

    def _work(self, bench: Bench, org: str, repository: Repository, source: Source) -> bool:
        """Read and write files until the slice is over; whether none is left."""
        until_s = time.monotonic() + self.slice_s
        while True:
            with bench.database.transaction(org, write=True) as tx:
                now = store.current(tx, repository)
                if now is None:
                    return False
                batch = _batch(store.pending(tx, now.namespace, BATCH_FILES if now.tries == 0 else 1))
                if not batch:
                    return True
                tx.run(store.TRYING, repository_id=now.repository_id, generation=now.generation)
            give_up = now.tries >= TRIES_MAX
            made = [] if give_up else [made_of(entry, content) for entry, content in _contents(source, batch)]
            outcome = {entry.path: files.UNREADABLE for entry in batch} if give_up else {}
            with bench.database.transaction(org, write=True) as tx:
                now = store.current(tx, repository)
                if now is None:
                    return False
                self._keep(tx, now, batch, made, outcome)
            if time.monotonic() > until_s:
                return False

    def _keep(
        self,
        tx: Transaction,
        repository: Repository,
        batch: Sequence[Entry],
        made: Sequence["Made | Left"],
        outcome: dict[str, str],
    ) -> None:
        skipped = Counter(repository.skipped)
        namespace = repository.namespace
        for one in made:
            if isinstance(one, Made):
                symbols.put(tx, namespace, one)
                self.library.put(tx, namespace, one.path, one.text.content)
            else:
                outcome[one.path] = one.reason
        for path, reason in outcome.items():
            symbols.drop(tx, namespace, path)
            self.library.remove(tx, namespace, path)
            if reason:
                skipped[reason] += 1
        tx.run(store.DONE_PENDING, namespace=namespace, paths=[entry.path for entry in batch])
        tx.run(
            store.WENT_ON,
            repository_id=repository.repository_id,
            generation=repository.generation,
            done=repository.files_done + sum(bool(entry.digest) for entry in batch),
            skipped=json.dumps(dict(skipped), sort_keys=True),
        )

    def _again(self, bench: Bench, org: str, repository: Repository, delay_us: int) -> None:
        with bench.database.transaction(org, write=True) as tx:
            if store.by_id(tx, repository.repository_id) is not None:
                outbox.enqueue(tx, INDEX, str(repository.repository_id), delay_us)

    def _end(self, bench: Bench, org: str, repository: Repository, state: str, problem: str) -> None:
        with bench.database.transaction(org, write=True) as tx:
            if store.current(tx, repository) is None:
                return
            tx.run(
                store.ENDED,
                repository_id=repository.repository_id,
                generation=repository.generation,
                state=state,
                problem=problem,
                now=bench.clock_us(),
            )
            namespaces.touch(tx, repository.namespace, tx.stamp(), "code")
            if state == READY and repository.vectors:
                outbox.enqueue(tx, embeds.EMBED, str(repository.repository_id))


@dataclass(frozen=True, slots=True)
class Left:
    """A file that is not kept, and why; without a reason it is not there any more."""

    path: str
    reason: str


def _batch(entries: Sequence[Entry]) -> list[Entry]:
    """The first of them, as many as are read at once."""
    batch: list[Entry] = []
    total = 0
    for entry in entries:
        total += entry.byte_size
        if batch and total > BATCH_BYTES:
            break
        batch.append(entry)
    return batch


def _contents(source: Source, batch: Sequence[Entry]) -> list[tuple[Entry, bytes | None]]:
    wanted = [entry for entry in batch if entry.digest]
    gone: list[tuple[Entry, bytes | None]] = [(entry, None) for entry in batch if not entry.digest]
    return [*source.read(wanted), *gone] if wanted else gone


def made_of(entry: Entry, content: bytes | None) -> Made | Left:
    """A file ready to be written, or why it is not kept."""
    if content is None:
        return Left(entry.path, files.UNREADABLE if entry.digest else "")
    text = files.read(entry.path, content)
    return read_again(entry.path, entry.digest, text) if isinstance(text, Text) else Left(entry.path, text)


def read_again(path: str, digest: str, text: Text) -> Made:
    """A file's text, read for what it defines and uses."""
    grammar = grammar_of(path, text.content[: files.HEAD_CHARACTERS])
    found = extracted(grammar, text.content) if grammar is not None else Extracted()
    lines = store.lines_of(text.content)
    document = grammar is None and files.is_document(path)  # then it is searched as one
    own = [] if document else texts.with_file(path, lines, found)
    return Made(path, digest, text, found.broken, own, texts.words_of(path, lines, own), found.uses)
