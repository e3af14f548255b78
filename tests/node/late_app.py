"""An application with a thread of its own, which uses the handle of an attempt that has ended."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from spinney import Job, Spinney

app = Spinney()
_thread = ThreadPoolExecutor(1)
_thread.submit(int).result()  # started with the application, so that the worker is not replaced for it


@app.job
def hands_its_handle_on(job: Job, file: str, note_in: str) -> None:
    _thread.submit(_use, job, Path(file), Path(note_in))


@app.job
def waits(job: Job, file: str) -> bool:
    print("begun", flush=True)
    while not Path(file).exists():
        time.sleep(0.005)
    return job.cancelled


def _use(job: Job, file: Path, note_in: Path) -> None:
    while not file.exists():
        time.sleep(0.005)
    states = [str(job.cancelled)]
    for use in (lambda: job.progress(0.5), lambda: job.data.update(a=1), lambda: job.lock("a")):
        try:
            use()
        except Exception as error:  # noqa: BLE001 - what it was answered
            states.append(type(error).__name__)
        else:
            states.append("accepted")
    note_in.with_suffix(".new").write_text(" ".join(states))
    note_in.with_suffix(".new").rename(note_in)
