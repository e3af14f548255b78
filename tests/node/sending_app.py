"""Stages that submit jobs of their own, for ``test_sending``."""

import time
from pathlib import Path

from spinney import Fail, Job, Spinney

app = Spinney()


@app.job(queue="mail")
def mail(n: int = 0) -> int:
    return n


@app.job(poison_after=100)
def report(job: Job, mails: int, note_in: str = "", wait_for: str = "") -> None:
    """Submits its mails, notes that it has, and ends when it may."""
    job.submit_many(mail, [{"n": n} for n in range(mails)])
    if not note_in:
        return
    _note(note_in, "submitted")
    while not Path(wait_for).exists():
        time.sleep(0.005)
    _note(note_in, "ends")


def _note(file: str, line: str) -> None:
    with Path(file).open("a") as out:
        out.write(f"{line}\n")


@app.job(max_attempts=2)
def keyed(job: Job) -> int:
    """Fails once, after it has submitted."""
    sent = job.submit(mail.options(key=f"mail-{job.id}", forever=True), n=1)
    job.data.append("sent", sent)
    if job.attempt == 1:
        raise Fail("once")
    return sent


tree = app.pipeline("tree", priority=50)


@tree.stage
def first(job: Job) -> None:
    job.prioritise(5)
    job.spawn(mail)


@tree.stage
def last() -> None: ...
