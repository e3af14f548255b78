"""Spinney: one node with two worker processes, or as many as a case has slots."""

import os
import subprocess
import sys

from peer_program import TEXT, run_job

from spinney import Spinney

app = Spinney(os.environ.get("PEER_STORE", "sqlite:///unused.db"))


@app.job
def job(tag: int, seconds: float, text: str) -> None:
    """The job of every peer."""
    run_job(tag, seconds)


class Peer:
    packages = ("spinney",)

    def prepare(self) -> None:
        subprocess.run([*SPINNEY, "init", "--store", os.environ["PEER_STORE"]], check=True, stdout=sys.stderr)

    def open(self) -> None:
        from spinney.store.sql import open_store  # which the worker does not need

        self.store = open_store(os.environ["PEER_STORE"])

    def bulk(self, count: int, seconds: float, tag: int) -> None:
        app.submit_many("job", [{"tag": tag, "seconds": seconds, "text": TEXT}] * count)

    def one(self, tag: int) -> None:
        app.submit("job", tag=tag, seconds=0.0, text=TEXT)

    def left(self) -> int:
        with self.store.database.look() as tx:
            return sum(tx.all("select (select count(*) from ready), (select count(*) from leases)")[0])

    def work(self, case: str) -> None:
        slots = "2" if case == "drain" else case
        words = ["node", "with_spinney:app", "--store", os.environ["PEER_STORE"], "--slots", slots]
        os.execv(sys.executable, [*SPINNEY, *words])


SPINNEY = [sys.executable, "-m", "spinney"]
