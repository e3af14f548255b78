"""The application of a store that is moved: a tree of which a leaf fails until a file is there."""

from pathlib import Path

from spinney import Fail, Job, Spinney

app = Spinney()


@app.job
def leaf(job: Job, flag: str, n: int) -> str:
    note = job.folder / "note"
    if n == 0 and not Path(flag).exists():
        note.write_text("seen before the move")
        raise Fail("the flag is not up", retryable=False)
    return note.read_text() if n == 0 else "fine"


@app.job
def tree(job: Job, flag: str) -> None:
    job.spawn_many(leaf, [{"flag": flag, "n": n} for n in range(3)])
