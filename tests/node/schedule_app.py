"""An application that declares a schedule."""

import os
import time
from pathlib import Path

from spinney import Job, Spinney

app = Spinney()


@app.job
def stamp(job: Job, word: str = "") -> str:
    """Returns the time for which it was made."""
    due: str = job.data["schedule"]["at"]
    return due + word


@app.job
def visit(receiver: str, ends: Path) -> None:
    """Lasts until the file ``<receiver>`` in the folder ``ends`` is there."""
    while not (ends / receiver).exists():
        time.sleep(0.01)


app.poll(visit, os.environ.get("VISITS", "/nowhere.csv"), key="receiver", every=1)
app.schedule(
    stamp.options(submitter="clock"),
    every=1,
    params={"word": "!"},
    name="declared",
    catch_up="all",
    overlap="allow",
)
