"""Celery on Redis, with processes, late acknowledgement and a large prefetch."""

import os

from celery import Celery
from peer_program import TEXT, run_job

app = Celery("with_celery", broker=os.environ.get("PEER_STORE"))
app.conf.update(
    task_ignore_result=True,
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=int(os.environ.get("PEER_PREFETCH", "128")),
    broker_connection_retry_on_startup=True,
    worker_hijack_root_logger=False,
)


@app.task(name="job")
def job(tag: int, seconds: float, text: str) -> None:
    """The job of every peer."""
    run_job(tag, seconds)


class Peer:
    packages = ("celery", "redis")

    def prepare(self) -> None:
        """Redis needs no tables."""

    def open(self) -> None:
        self.producer = app.amqp.Producer(app.connection_for_write())

    def bulk(self, count: int, seconds: float, tag: int) -> None:
        for _ in range(count):
            job.apply_async((tag, seconds, TEXT), producer=self.producer)

    def one(self, tag: int) -> None:
        job.apply_async((tag, 0.0, TEXT), producer=self.producer)

    def left(self) -> int:
        redis = self.producer.channel.client
        return redis.llen("celery") + redis.hlen("unacked")

    def work(self, case: str) -> None:
        slots = "2" if case == "drain" else case
        words = ["worker", "--concurrency", slots, "--pool", "prefork", "--loglevel", "ERROR"]
        app.worker_main([*words, "--without-gossip", "--without-mingle", "--without-heartbeat"])
