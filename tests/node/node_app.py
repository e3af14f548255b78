"""The application that node tests run: stages that note what they did in files of the test's."""

import asyncio
import ctypes
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from spinney import Backoff, Defer, Fail, Job, Spinney

app = Spinney()
app.lock("disk:*", capacity=100)
_STUBBORN = (
    "import os, signal, sys, time\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "os.setsid()\n"
    "if os.fork():\n"
    "    time.sleep(3600)\n"
    "open(sys.argv[1], 'a').write(f'{os.getpid()}\\n')\n"
    "time.sleep(3600)\n"
)
"""Ignores TERM, leaves its session and its parent."""


def note(file: str, word: object) -> None:
    with Path(file).open("a") as out:
        out.write(f"{word}\n")


@app.job
def noop(n: int = 0) -> None:
    pass


@app.job(max_attempts=3)
def nap(seconds: float = 0.005, until: str = "") -> None:
    """Sleeps, then waits until a file is there if one is named."""
    time.sleep(seconds)
    while until and not Path(until).exists():
        time.sleep(0.005)


@app.job
def nap_note(file: str, word: str, seconds: float = 0.0) -> None:
    time.sleep(seconds)
    note(file, word)


@app.job(max_attempts=3, poison_after=100)
def wait_for(file: str, note_in: str) -> str:
    """Notes its pid, then waits until a file is there."""
    note(note_in, os.getpid())
    while not Path(file).exists():
        time.sleep(0.005)
    return "seen"


@app.job
def writes_data_when_told(job: Job, file: str) -> None:
    """Wait until a file is there, then write an entry of its data."""
    while not Path(file).exists():
        time.sleep(0.005)
    job.data["told"] = True


@app.job
def hears_nothing(file: str, note_in: str) -> None:
    """Like a long call of C code: no signal reaches it until a file is there."""
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        note(note_in, os.getpid())
        while not Path(file).exists():
            time.sleep(0.005)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, ())


@app.job(on_lost="orphan")
def once(file: str, note_in: str) -> None:
    note(note_in, os.getpid())
    while not Path(file).exists():
        time.sleep(0.005)


@app.job
def shows_itself(job: Job, note_in: str, seconds: float = 0.5) -> None:
    note(note_in, job.fence)
    print("hello from the stage", flush=True)
    time.sleep(seconds)


def _lose(dies: bool, job: Job) -> None:
    (job.folder / ".spinney").write_text("in the way of the files that take its output")
    print("nobody reads this", flush=True)
    if dies:
        os.kill(os.getpid(), signal.SIGKILL)


@app.job
def loses(dies: bool, job: Job) -> None:
    _lose(dies, job)


@app.job(isolation="thread")
def loses_beside_others(dies: bool, job: Job) -> None:
    _lose(dies, job)


@app.job(timeout=0.3, grace=0.2)
def too_long(note_in: str) -> None:
    """Leaves a stubborn program behind it, too."""
    subprocess.Popen([sys.executable, "-c", _STUBBORN, note_in], close_fds=True)
    time.sleep(3600)


@app.job(max_attempts=2)
def dies_once(job: Job) -> str:
    if job.attempt == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return "second"


@app.job(max_attempts=100, poison_after=3, backoff=Backoff(base_s=0.01, cap_s=0.02))
def always_dies() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@app.job
def takes(job: Job, name: str, file: str, note_in: str, amount: int = 1) -> None:
    """Takes a lock in its midst, or some of it, and has it until a file is there."""
    job.lock(name, amount=amount)
    note(note_in, job.id)
    while not Path(file).exists():
        time.sleep(0.005)


@app.job(breaker=5)
def calls_out(flag: str, seconds: float = 0.02) -> str:
    """What it calls is down until a file is there."""
    time.sleep(seconds)
    if not Path(flag).exists():
        raise ConnectionError(f"refused by 10.0.0.{random.randrange(256)}")
    return "answered"


@app.job(grace=0.3)
def polite(job: Job, note_in: str) -> None:
    note(note_in, "begun")
    while not job.cancelled:
        time.sleep(0.005)
    note(note_in, "saw the wish")
    raise Fail("stopped, as wished", retryable=False)


@app.job(grace=0.1)
def deaf(note_in: str) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    note(note_in, "begun")
    time.sleep(3600)


@app.job(isolation="cold")
def cold() -> int:
    return os.getpid()


@app.job(isolation="thread")
def threaded(seconds: float = 0.0) -> int:
    time.sleep(seconds)
    return os.getpid()


@app.job
async def flowing(seconds: float = 0.0) -> int:
    await asyncio.sleep(seconds)
    return os.getpid()


@app.job(timeout=0.2, grace=0.2, isolation="async")
async def flowing_too_long() -> None:
    await asyncio.sleep(3600)


@app.job(timeout=1, grace=0.2)
async def flowing_briefly() -> None:
    await asyncio.sleep(0)


@app.job(max_attempts=2)
async def blocks_the_loop(file: str, note_in: str, in_task: bool = False) -> None:
    """Block the event loop until the file is there, itself or in a task of its own."""

    async def block() -> None:
        note(note_in, "blocks")
        while not Path(file).exists():  # noqa: ASYNC240
            time.sleep(0.005)  # noqa: ASYNC251

    await (asyncio.create_task(block()) if in_task else block())


app.program("shout", ["/bin/sh", "-c", "echo loud; echo '{\"ok\": true}' > $SPINNEY_RESULT"])


@app.job
def defers_once(job: Job) -> str:
    if not job.data.get("tried"):
        job.data["tried"] = True
        raise Defer(0.2, "not yet")
    return "now"


@app.job(max_attempts=3)
def defers_for(seconds: str) -> None:
    """Gets past what ``Defer`` itself refuses."""
    odd = Defer(1)
    odd.seconds = float(seconds)
    raise odd


_hoard: list[bytes] = []
"""What stays in a worker between attempts."""


@app.job
def hoards(mebibytes: int, seconds: float = 0.0) -> int:
    """Keeps so much more in its worker."""
    _hoard.append(b"\1" * (mebibytes * 2**20))
    time.sleep(seconds)
    return os.getpid()


@app.job(poison_after=100)
def talks(job: Job) -> list[int]:
    job.data["seen"] = 1
    job.data.append("list", "a")
    job.progress(0.5, "half")
    return [len(job.data["list"]), job.data["seen"]]


@app.job
def asks_when_told(job: Job, file: str, note_in: str) -> None:
    note(note_in, os.getpid())
    while not Path(file).exists():
        time.sleep(0.005)
    note(note_in, "asks")
    job.progress(0.5, "half")
    job.data["seen"] = 1
    job.data.append("list", "a")


@app.job
def family(job: Job, children: int) -> None:
    job.spawn_many(noop, [{"n": n} for n in range(children)])


@app.job
def meet(job: Job, place: str, n: int, log: str) -> None:
    job.spawn_many(meets, [{"place": place, "n": n, "log": log}] * n)


@app.job
def meets(job: Job, place: str, n: int, log: str) -> None:
    """Waits until all ``n`` of its siblings run at once."""
    Path(place, f"met-{job.id}").touch()
    note(log, os.getpid())
    while len(list(Path(place).glob("met-*"))) < n:
        time.sleep(0.005)


@app.job
def crowded(job: Job, place: str) -> int:
    """How many of its kind were at work when it was."""
    mark = Path(place, f"crowd-{job.id}")
    mark.touch()
    time.sleep(0.02)
    met = len(list(Path(place).glob("crowd-*")))
    mark.unlink()
    return met


@app.job(locks=["place:{place}"])
def locked(place: str, note_in: str) -> None:
    note(note_in, "in")
    time.sleep(0.05)
    note(note_in, "out")


@app.job(max_attempts=1)
def asks_for_all(job: Job) -> int:
    """Has more data than fits into one message, and asks for all of it at once."""
    for number in range(1_050):
        job.data[f"part {number}"] = "x" * 65_000
    return len(job.data.snapshot())


stages = app.pipeline("stages", poison_after=1000)


@stages.stage(max_attempts=1000)
def first(job: Job, log: str, seconds: float = 0.0, stubborn: str = "", until: str = "") -> int:
    """Does what all three do, then waits until a file is there if one is named."""
    pid = _step(job, log, seconds, stubborn)
    while until and not Path(until).exists():
        time.sleep(0.005)
    return pid


@stages.stage(max_attempts=1000)
def second(job: Job, log: str, seconds: float = 0.0, stubborn: str = "") -> int:
    return _step(job, log, seconds, stubborn)


@stages.stage(max_attempts=1000)
def third(job: Job, log: str, seconds: float = 0.0, stubborn: str = "") -> int:
    return _step(job, log, seconds, stubborn)


def _step(job: Job, log: str, seconds: float, stubborn: str) -> int:
    """Notes that it ran, before anything can go wrong; sometimes leaves a stubborn program."""
    note(log, f"{job.id} {job.stage} {job.fence}")
    if stubborn and (seconds > 60 or (job.id % 20 == 0 and job.stage == "first")):
        subprocess.Popen([sys.executable, "-c", _STUBBORN, stubborn], close_fds=True)
        time.sleep(0.1)
    time.sleep(seconds)
    return os.getpid()


# --- many in one worker ------------------------------------------------------------------------


@app.job(isolation="thread", grace=0.2)
def deaf_thread(note_in: str) -> None:
    """Ends by no wish."""
    note(note_in, "deaf")
    time.sleep(3600)


@app.job(isolation="thread", timeout=0.2, grace=0.2)
def overdue_thread(note_in: str) -> None:
    note(note_in, "overdue")
    time.sleep(3600)


@app.job(isolation="thread")
def thread_waits(job: Job, file: str, note_in: str) -> str:
    """Ends when a file is there, and early when it is told to stop, as if it had done all."""
    note(note_in, "thread")
    while not Path(file).exists():
        time.sleep(0.005)
        if job.cancelled:
            return "half"
    return "whole"


@app.job(isolation="async")
async def task_waits(file: str, note_in: str) -> str:
    note(note_in, "task")
    try:
        while not Path(file).exists():  # noqa: ASYNC110, ASYNC240
            await asyncio.sleep(0.005)
    except asyncio.CancelledError:
        note(note_in, "cleaned up")
        return "half"
    return "whole"


@app.job(isolation="thread")
def program_waits(file: str, note_in: str) -> str:
    """Looks away when its program is ended."""
    note(note_in, "program")
    result = subprocess.run(["/bin/sh", "-c", 'until [ -e "$0" ]; do sleep 0.01; done', file], check=False)
    return "whole" if result.returncode == 0 else "half"


@app.job(isolation="thread", on_lost="orphan")
def thread_once(file: str, note_in: str) -> str:
    note(note_in, "once")
    while not Path(file).exists():
        time.sleep(0.005)
    return "whole"


@app.job(isolation="thread", max_attempts=5, poison_after=2, backoff=Backoff(base_s=0.01, cap_s=0.02))
def segfaults(file: str, note_in: str) -> None:
    """Takes all with it that run in its process, once a file is there."""
    note(note_in, "segfaults")
    while not Path(file).exists():
        time.sleep(0.005)
    ctypes.string_at(0)
