"""The application under fire: every kind of job whose promises can be broken, each noting what it really does."""

import errno
import os
import sys
from pathlib import Path

from chaos_notes import linger, note, noted

from spinney import Backoff, Hold, Job, Spinney

app = Spinney()
SOON = Backoff(base_s=0.05, factor=1.5, cap_s=0.5)
NARROW, PRESSES = 2, 3
"""The limit of the queue ``narrow``; how many presses there are, each for one at a time."""
app.queue("narrow", limit=NARROW)


@app.job(max_attempts=1000, poison_after=1000, backoff=SOON)
def plain(job: Job, seconds: float = 0.0) -> None:
    with noted(job):
        linger(job, seconds)


@app.job(isolation="thread", max_attempts=1000, poison_after=1000, backoff=SOON)
def threaded(job: Job, seconds: float = 0.0) -> None:
    with noted(job):
        linger(job, seconds)


@app.job(queue="narrow", max_attempts=1000, poison_after=1000, backoff=SOON)
def narrow(job: Job, seconds: float = 0.0) -> None:
    with noted(job, "queue:narrow"):
        linger(job, seconds)


@app.job(locks=["press:{press}"], max_attempts=1000, poison_after=1000, backoff=SOON)
def pressed(job: Job, press: int, seconds: float = 0.0) -> None:
    with noted(job, f"lock:press:{press}"):
        linger(job, seconds)


@app.job(on_lost="orphan", poison_after=1000)
def once(job: Job, seconds: float = 0.0) -> None:
    """Not even the death of its node may make it run a second time."""
    with noted(job):
        linger(job, seconds)


chain = app.pipeline("chain", poison_after=1000)


@chain.stage(max_attempts=1000, backoff=SOON)
def first(job: Job, seconds: float = 0.0) -> str:
    with noted(job):
        linger(job, seconds)
        job.data["first"] = job.fence
        return "one"


@chain.stage(max_attempts=1000, backoff=SOON)
def second(job: Job, seconds: float = 0.0) -> str:
    """Writes as a user should: under a draft's name, which only the last step makes the file's."""
    with noted(job):
        draft = job.folder / f"page.{job.fence}"
        draft.write_text(str(job.fence))
        linger(job, seconds)
        draft.rename(job.folder / "page")
        return "two"


@chain.stage(max_attempts=1000, backoff=SOON)
def third(job: Job, seconds: float = 0.0) -> str:
    with noted(job):
        linger(job, seconds)
        if not (job.folder / "page").read_text():
            raise OSError(errno.EIO, "the page that a passed stage left is empty")
        return "three"


tree = app.pipeline("tree", children="settled", poison_after=1000)


@tree.stage(max_attempts=1000, backoff=SOON)
def grow(job: Job, children: int, seconds: float = 0.0) -> None:
    with noted(job):
        job.spawn_many(leaf, [{"seconds": seconds}] * children)
        linger(job, seconds)


@tree.stage(max_attempts=1000, backoff=SOON)
def report(job: Job) -> int:
    with noted(job):
        return sum(child.state == "completed" for child in job.children())


@app.job(max_attempts=1000, poison_after=1000, backoff=SOON)
def leaf(job: Job, seconds: float = 0.0) -> None:
    with noted(job):
        linger(job, seconds)


@app.job(max_attempts=1000, poison_after=1000, backoff=SOON)
def files(job: Job, kilobytes: int = 64) -> None:
    """Fails while its disk is full."""
    with noted(job):
        (job.folder / "much").write_bytes(b"x" * kilobytes * 1024)


@app.job(max_attempts=1000, poison_after=1000, backoff=SOON)
def flood(job: Job, megabytes: int) -> None:
    with noted(job):
        print("begin", flush=True)
        block = b"all work and no play makes a long log\n" * 27594
        for _ in range(megabytes):
            os.write(sys.stdout.fileno(), block)
            note("at", job, ())
        print("end", flush=True)


@app.job(max_attempts=1000, poison_after=1000, backoff=SOON)
def waits(job: Job, file: str) -> None:
    """Until a file is there, or somebody wishes it cancelled."""
    with noted(job):
        while not Path(file).exists():
            job.check_cancelled()
            linger(job, 0.02)


@app.job
def parks(job: Job) -> None:
    with noted(job):
        raise Hold("until somebody says so")
