"""The job types that are measured: they do next to nothing, so that the engine's own cost is seen."""

import asyncio
import time

from spinney import Spinney

app = Spinney()


@app.job
def noop(text: str) -> None:
    """Nothing; its parameters are 50 bytes of JSON."""


@app.job
def nap(seconds: float) -> None:
    """Something short that takes a slot but no processor."""
    time.sleep(seconds)


@app.job(isolation="thread")
def doze(seconds: float) -> None:
    """The same in a thread: a hundred at once."""
    time.sleep(seconds)


@app.job(isolation="async")
async def rest(seconds: float) -> None:
    """The same as a coroutine."""
    await asyncio.sleep(seconds)


@app.job
def refuse(text: str) -> None:
    """A failure with the frames and variables of a common one."""
    _look_up([{"id": n, "name": f"row {n}", "values": [n] * 20} for n in range(200)], text)


@app.job(name="refuse-bare", postmortem=False)
def refuse_bare(text: str) -> None:
    """The same, without its frames being kept."""
    _look_up([{"id": n, "name": f"row {n}", "values": [n] * 20} for n in range(200)], text)


def _look_up(rows: list[dict[str, object]], text: str) -> None:
    index = {row["name"]: row for row in rows}
    try:
        row = index[text]
    except KeyError as error:
        raise LookupError(f"there is no row {text!r} among {len(rows)}") from error
    print(row)


@app.job
def stamp(submitted_ns: int) -> int:
    """How long after its submission began it was started, in nanoseconds."""
    return time.time_ns() - submitted_ns


steps = app.pipeline("steps")


@steps.stage
def first(text: str) -> None:
    """Nothing, as the two stages behind it."""


@steps.stage
def second(text: str) -> None:
    """Nothing."""


@steps.stage
def third(text: str) -> None:
    """Nothing."""
