"""The application of tests with local folders: a pipeline that leaves something in its job's folder."""

import socket
import time
from pathlib import Path

from spinney import Job, Spinney

app = Spinney()


@app.job
def whereabouts(job: Job) -> str:
    (job.folder / "made").write_text("")
    return socket.gethostname()


keeps = app.pipeline("keeps")


@keeps.stage
def prepare(job: Job, go: str, notes: str) -> None:
    (job.folder / "made").mkdir()
    (job.folder / "made" / "here").write_text(socket.gethostname())
    print(f"prepared on {socket.gethostname()}", flush=True)


@keeps.stage(max_attempts=3)
def use(job: Job, go: str, notes: str) -> str:
    with Path(notes).open("a") as out:
        out.write(f"{socket.gethostname()}\n")
    print(f"waiting on {socket.gethostname()}", flush=True)
    while not Path(go).exists():
        time.sleep(0.005)
    made = job.folder / "made" / "here"
    return f"made on {made.read_text()}" if made.exists() else f"nothing on {socket.gethostname()}"
