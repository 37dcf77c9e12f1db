"""Writes to a store until it is killed or has done its share; prints each acknowledged id."""

import sys
from pathlib import Path
from threading import Thread

from store_kit import INSERT, MIGRATIONS, ORG, SHELF, text, unit

from loom.storage.sqlite import SqliteDatabase


def write(database: SqliteDatabase, count: int) -> None:
    for _ in range(count):
        with database.transaction(ORG, write=True) as transaction:
            item_id = transaction.stamp()
            transaction.run(INSERT, id=item_id, body=f"w{item_id}")
            transaction.text.put(SHELF, item_id, text(f"shared w{item_id}"))
            transaction.vectors.put(SHELF, item_id, "s", [unit(1, item_id % 97)])
        sys.stdout.write(f"{item_id}\n")
        sys.stdout.flush()


def main() -> None:
    folder, threads, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    database = SqliteDatabase(folder, MIGRATIONS)
    workers = [Thread(target=write, args=(database, count), daemon=True) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    database.close()


if __name__ == "__main__":
    main()
