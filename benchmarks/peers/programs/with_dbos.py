"""DBOS on PostgreSQL: workflows of one step on a queue, in the threads of one process."""

import os
import threading

from dbos import DBOS, DBOSClient
from peer_program import TEXT, run_job

_STORE = os.environ.get("PEER_STORE", "")


@DBOS.workflow(name="job")
def job(tag: int, seconds: float, text: str) -> None:
    """The job of every peer."""
    run_job(tag, seconds)


def launch() -> None:
    DBOS(
        config={
            "name": "bench",
            "system_database_url": _STORE,
            "log_level": "ERROR",
            "application_version": "1",
        }
    )
    DBOS.launch()


class Peer:
    packages = ("dbos", "psycopg", "SQLAlchemy")

    def prepare(self) -> None:
        launch()
        DBOS.destroy()

    def open(self) -> None:
        self.client = DBOSClient(system_database_url=_STORE)

    def bulk(self, count: int, seconds: float, tag: int) -> None:
        for _ in range(count):
            self._enqueue(tag, seconds)

    def one(self, tag: int) -> None:
        self._enqueue(tag, 0.0)

    def _enqueue(self, tag: int, seconds: float) -> None:
        self.client.enqueue(
            {"queue_name": "bench", "workflow_name": "job", "app_version": "1"}, tag, seconds, TEXT
        )

    def left(self) -> int:
        return len(self.client.list_workflows(status=["ENQUEUED", "PENDING"], limit=1, load_input=False))

    def work(self, case: str) -> None:
        launch()
        concurrency = 32 if case == "drain" else int(case)
        DBOS.register_queue("bench", worker_concurrency=concurrency, polling_interval_sec=0.01)
        threading.Event().wait()
