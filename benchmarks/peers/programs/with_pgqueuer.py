"""PGQueuer on PostgreSQL: one process of coroutines, woken by LISTEN, with its durable tables."""

import asyncio
import json
import os
import subprocess
import sys

import asyncpg
from peer_program import TEXT, run_job_async
from pgqueuer import PgQueuer, Queries
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job


class Peer:
    packages = ("pgqueuer", "asyncpg")

    def prepare(self) -> None:
        words = ["-m", "pgqueuer", "--pg-dsn", os.environ["PEER_STORE"], "install", "--durability", "durable"]
        subprocess.run([sys.executable, *words], check=True, stdout=sys.stderr)

    def open(self) -> None:
        self.runner = asyncio.Runner()
        self.connection = self.runner.run(asyncpg.connect(os.environ["PEER_STORE"]))
        self.queries = Queries(AsyncpgDriver(self.connection))

    def bulk(self, count: int, seconds: float, tag: int) -> None:
        payload = json.dumps({"tag": tag, "seconds": seconds, "text": TEXT}).encode()
        self.runner.run(self.queries.enqueue(["job"] * count, [payload] * count, [0] * count))

    def one(self, tag: int) -> None:
        self.bulk(1, 0.0, tag)

    def left(self) -> int:
        return self.runner.run(self.connection.fetchval("select count(*) from pgqueuer"))

    def work(self, case: str) -> None:
        asyncio.run(self._work(case))

    async def _work(self, case: str) -> None:
        queuer = PgQueuer(AsyncpgDriver(await asyncpg.connect(os.environ["PEER_STORE"])))

        @queuer.entrypoint("job")
        async def job(job: Job) -> None:
            params = json.loads(job.payload or b"")
            await run_job_async(params["tag"], params["seconds"])

        if case == "drain":
            await queuer.run(batch_size=100)
        else:
            await queuer.run(batch_size=int(case), max_concurrent_tasks=2 * int(case))
