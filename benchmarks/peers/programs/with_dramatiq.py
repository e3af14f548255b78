"""Dramatiq on Redis, with its own command line: processes of threads."""

import os

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from dramatiq.cli import main as command_line
from dramatiq.cli import make_argument_parser
from peer_program import TEXT, run_job

broker = RedisBroker(url=os.environ.get("PEER_STORE", "redis://127.0.0.1:1"))
dramatiq.set_broker(broker)


@dramatiq.actor(actor_name="job")
def job(tag: int, seconds: float, text: str) -> None:
    """The job of every peer."""
    run_job(tag, seconds)


class Peer:
    packages = ("dramatiq", "redis")

    def prepare(self) -> None:
        """Redis needs no tables."""

    def open(self) -> None:
        """The first message connects."""

    def bulk(self, count: int, seconds: float, tag: int) -> None:
        dramatiq.group([job.message(tag, seconds, TEXT) for _ in range(count)]).run()

    def one(self, tag: int) -> None:
        job.send(tag, 0.0, TEXT)

    def left(self) -> int:
        return broker.client.hlen("dramatiq:default.msgs")

    def work(self, case: str) -> None:
        processes, threads = ("2", "8") if case == "drain" else ("1", case)
        words = ["with_dramatiq", "--processes", processes, "--threads", threads, "--skip-logging"]
        command_line(make_argument_parser().parse_args(words))
