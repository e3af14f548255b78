"""Job types for tests of the Disbatch node; each task notes in a file when it began and ended."""

import fcntl
import os
import time
from pathlib import Path
from typing import Any

from spinney import Fail, Job, Spinney
from spinney.bridges.disbatch import programs

app = Spinney()
programs.add_to(app)
NOTES = Path(os.environ.get("TASK_NOTES", "notes"))


def note(what: str, task: str) -> None:
    with NOTES.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(f"{time.time():.6f} {what} {task}\n")


def meet_another(name: str) -> None:
    """Wait until a second task has come here; later ones do not wait."""
    place = NOTES.with_name(f"meeting-{name}")
    with place.open("a") as file:
        file.write("here\n")
    for _ in range(600):
        if len(place.read_text().splitlines()) > 1:
            return
        time.sleep(0.1)


@app.job(name="demo", max_attempts=1)
def demo(job: Job, commands: str = "", user: str = "", seconds: float = 0.0, meet: str = "") -> Any:
    """Do as the commands say."""
    task = job.data["disbatch"]["task"]
    note("begin", task)
    print(f"user {user}")
    if meet:
        meet_another(meet)
    if seconds:
        time.sleep(seconds)
    if commands == "fail":
        raise Fail("it broke", retryable=False)
    note("end", task)
    return {"status": int(commands), "stdout": "of the plugin"} if commands.isdigit() else None
