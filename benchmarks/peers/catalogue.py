"""The peers: where each keeps its jobs, with which settings it runs, and what it keeps of a job that has passed."""

from collections.abc import Sequence
from dataclasses import dataclass

PYTHON, NODE, OWN = "python", "node", "own"


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """One line of the table."""

    name: str
    program: str
    """In ``programs``."""
    store: str
    """``sqlite``, ``postgresql`` or ``redis``."""
    runs_in: str = PYTHON
    settings: str
    keeps: str


_SPINNEY = "node of 2 worker processes (fairness: 8), every setting its default"
_SPINNEY_KEEPS = "the job with parameters, submitter and result, and each attempt with times and outcome"

PEERS: Sequence[Peer] = (
    Peer(
        name="Spinney, SQLite",
        program="with_spinney.py",
        store="sqlite",
        runs_in=OWN,
        settings=f"{_SPINNEY}; synchronous=FULL",
        keeps=_SPINNEY_KEEPS,
    ),
    Peer(
        name="Spinney, PostgreSQL",
        program="with_spinney.py",
        store="postgresql",
        runs_in=OWN,
        settings=_SPINNEY,
        keeps=_SPINNEY_KEEPS,
    ),
    Peer(
        name="graphile-worker",
        program="with_graphile_worker.mjs",
        store="postgresql",
        runs_in=NODE,
        settings="addJobs; 1 process, 24 concurrentJobs, localQueue 500, completeJobBatchDelay 0 (fairness: 8, none)",
        keeps="nothing: the row is deleted",
    ),
    Peer(
        name="PGQueuer",
        program="with_pgqueuer.py",
        store="postgresql",
        settings="enqueue of lists; 1 process, asyncpg, durable tables, batch_size 100 (fairness: 8, at most 16 tasks)",
        keeps="its row is deleted; a line of a log without parameters",
    ),
    Peer(
        name="Procrastinate",
        program="with_procrastinate.py",
        store="postgresql",
        settings="batch_defer; 1 process, concurrency 32 (fairness: 8), delete_jobs never",
        keeps="the job with parameters, and its events",
    ),
    Peer(
        name="huey, SQLite",
        program="with_huey.py",
        store="sqlite",
        settings="2 processes (fairness: 8), fsync=True, polls every 0.01 s and less often while idle",
        keeps="nothing: the message is deleted before the job runs, and lost with its worker",
    ),
    Peer(
        name="huey, Redis",
        program="with_huey.py",
        store="redis",
        settings="2 processes (fairness: 8), blocking pop",
        keeps="nothing: the message is deleted before the job runs, and lost with its worker",
    ),
    Peer(
        name="Celery, Redis",
        program="with_celery.py",
        store="redis",
        settings="prefork of 2 (fairness: 8), acks_late, prefetch 128, ignore_result",
        keeps="nothing: the message is deleted",
    ),
    Peer(
        name="Dramatiq, Redis",
        program="with_dramatiq.py",
        store="redis",
        settings="group; 2 processes of 8 threads (fairness: 1 of 8)",
        keeps="nothing: the message is deleted",
    ),
    Peer(
        name="DBOS",
        program="with_dbos.py",
        store="postgresql",
        settings="client.enqueue one by one; 1 process, worker_concurrency 32 (fairness: 8), polls every 0.01 s",
        keeps="the workflow with its input and output",
    ),
)


def choose(words: Sequence[str]) -> list[Peer]:
    """Return the peers whose names contain one of these words, or all; raises ValueError for a word that fits none."""
    for word in words:
        if not any(word.lower() in peer.name.lower() for peer in PEERS):
            raise ValueError(f"no peer {word!r}; choose from: {', '.join(peer.name for peer in PEERS)}")
    return [peer for peer in PEERS if not words or any(word.lower() in peer.name.lower() for word in words)]
