"""Procrastinate on PostgreSQL: one process of coroutines, woken by LISTEN."""

import asyncio
import os
import subprocess
import sys
from contextlib import ExitStack

import procrastinate
from peer_program import TEXT, run_job_async

_STORE = os.environ.get("PEER_STORE", "")
app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=_STORE))


@app.task(name="job")
async def job(tag: int, seconds: float, text: str) -> None:
    """The job of every peer."""
    await run_job_async(tag, seconds)


class Peer:
    packages = ("procrastinate", "psycopg")

    def prepare(self) -> None:
        words = ["--app", "with_procrastinate.app", "schema", "--apply"]
        subprocess.run([sys.executable, "-m", "procrastinate", *words], check=True, stdout=sys.stderr)

    def open(self) -> None:
        connector = procrastinate.SyncPsycopgConnector(conninfo=_STORE)
        self.stack = ExitStack()  # as long as the process
        self.app = self.stack.enter_context(app.replace_connector(connector))
        self.app.open()

    def bulk(self, count: int, seconds: float, tag: int) -> None:
        job.batch_defer(*[{"tag": tag, "seconds": seconds, "text": TEXT}] * count)

    def one(self, tag: int) -> None:
        job.defer(tag=tag, seconds=0.0, text=TEXT)

    def left(self) -> int:
        sql = "select count(*) as n from procrastinate_jobs where status in ('todo', 'doing')"
        return self.app.connector.execute_query_one(sql)["n"]

    def work(self, case: str) -> None:
        concurrency = 32 if case == "drain" else int(case)
        asyncio.run(self._work(concurrency))

    async def _work(self, concurrency: int) -> None:
        async with app.open_async():
            await app.run_worker_async(concurrency=concurrency)
