"""The application of ``test_failure_frames.py``."""

import os
import sys
from pathlib import Path

from pydantic import SecretStr

from spinney import Defer, Fail, Hold, Spinney, Warn

app = Spinney()
kept = app.pipeline("kept")


@kept.stage
def raises(n: int) -> float:
    return n / 0


@kept.stage
def fails(n: int) -> None:
    raise Fail("wrong", retryable=False)


@kept.stage(isolation="async")
async def awaits(n: int) -> None:
    raise ValueError("late")


@kept.stage
def passes(n: int) -> int:
    return n


@kept.stage
def defers(n: int) -> None:
    raise Defer(1.0, "later")


@kept.stage
def holds(n: int) -> None:
    raise Hold("look")


@kept.stage
def warns(n: int) -> None:
    raise Warn("odd")


class Speechless(Exception):
    def __str__(self) -> str:
        raise SystemExit(4)


@kept.stage
def speechless(n: int) -> None:
    raise Speechless


@kept.stage
def exhausts(n: int) -> None:
    """Leave no file to be opened, not even to import what describes the frames."""
    files = []
    while True:
        files.append(os.dup(n))


@app.job(postmortem=False)
def private(n: int) -> float:
    return n / 0


@app.job
def secretive(pin: SecretStr) -> None:
    plain = pin.get_secret_value()
    copy = {"spare": f"it is {plain}", "path": Path(plain)}
    raise ValueError(str(copy))


PROGRAM = """
import spinney.postmortem
spinney.postmortem.install()
rows = [1, 2]
rows[0] / 0
"""
app.program("program", [sys.executable, "-c", PROGRAM])
app.program("private_program", [sys.executable, "-c", PROGRAM], postmortem=False)
SECRETIVE = """
import json, os, spinney.postmortem
spinney.postmortem.install()
pin = json.load(open(os.environ["SPINNEY_PARAMS"]))["pin"]
spare = {"pin": 123 * 1000 + 456, "text": f"it is {pin}"}
raise ValueError(spare["text"])
"""
app.program("secretive_program", [sys.executable, "-c", SECRETIVE], params={"pin": SecretStr})


@app.pipeline("sample").stage
def say(text: str) -> None:
    """Shows that a worker is at rest; see ``Host.forget``."""
    print(text)


@app.pipeline("many").stage(isolation="async")
async def meets_async(n: int) -> None:
    """The same of a concurrent one."""
    print(n)
