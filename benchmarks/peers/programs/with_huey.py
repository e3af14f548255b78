"""huey, on a SQLite file or on Redis."""

import os
import sys

from huey import RedisHuey, SqliteHuey
from huey.bin.huey_consumer import consumer_main
from peer_program import TEXT, run_job

_STORE = os.environ.get("PEER_STORE", "unused.db")
if _STORE.startswith("redis"):
    huey = RedisHuey("bench", url=_STORE)
else:
    huey = SqliteHuey("bench", filename=_STORE, fsync=True)


@huey.task()
def job(tag: int, seconds: float, text: str) -> None:
    """The job of every peer."""
    run_job(tag, seconds)


class Peer:
    packages = ("huey", "redis") if _STORE.startswith("redis") else ("huey",)

    def prepare(self) -> None:
        """Its tables are made when it is first used."""

    def open(self) -> None:
        """Nor is there anything to open."""

    def bulk(self, count: int, seconds: float, tag: int) -> None:
        for _ in range(count):
            job(tag, seconds, TEXT)

    def one(self, tag: int) -> None:
        job(tag, 0.0, TEXT)

    def left(self) -> int:
        return huey.pending_count()

    def work(self, case: str) -> None:
        workers = "2" if case == "drain" else case
        sys.argv[1:] = ["with_huey.huey", "-w", workers, "-k", "process", "-n", "-q", "-d", "0.01"]
        consumer_main()
