"""The application of ``test_stacks.py``: stages that stand somewhere until a file appears."""

import asyncio
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from spinney import Spinney

app = Spinney()


def wait_for_flag(flag: str) -> str:
    while not Path(flag).exists():
        time.sleep(0.01)
    return "went on"


async def await_flag(flag: str) -> str:
    while not os.access(flag, os.F_OK):  # noqa: ASYNC110 - a file of the test, in another process
        await asyncio.sleep(0.01)
    return "went on"


@app.job
def in_python(flag: str) -> str:
    helper = threading.Thread(target=wait_for_flag, args=(flag,), name="helper of the stage")
    helper.start()
    outcome = wait_for_flag(flag)
    helper.join()
    return outcome


@app.job(isolation="thread")
def in_thread(flag: str) -> str:
    return wait_for_flag(flag)


@app.job
async def in_task(flag: str) -> str:
    return await await_flag(flag)


@asynccontextmanager
async def flagged(flag: str) -> AsyncIterator[str]:
    yield await await_flag(flag)


@app.job
async def in_context(flag: str) -> str:
    async with flagged(flag) as outcome:
        return outcome


@app.job
def in_program(flag: str) -> str:
    subprocess.run(
        ["/bin/sh", "-c", 'until [ -e "$0" ]; do sleep 0.05; done', flag],  # a line of a shell
        check=True,
    )
    return "went on"


@app.job
async def neighbour(flag: str, name: str) -> None:
    """Has a task and a process that its name says."""
    process = await asyncio.create_subprocess_exec("/bin/sh", "-c", "sleep 60; :", name)
    await asyncio.create_task(await_flag(flag), name=name)
    process.kill()
    await process.wait()


@app.job
def in_c(pipe: str) -> str:
    """Read a byte by a call of C code that keeps the interpreter's lock."""
    fd = os.open(pipe, os.O_RDWR)
    ctypes.PyDLL(None).read(fd, ctypes.create_string_buffer(1), 1)
    return "went on"


@app.job
def stops_itself(pid_file: Path) -> str:
    """Write the worker's process id, and stop the worker by a signal."""
    pid_file.write_text(str(os.getpid()))
    os.kill(os.getpid(), signal.SIGSTOP)
    return "went on"


@app.job(stack_after=0.2)
def slow(flag: Path) -> str:
    return wait_for_flag(str(flag))


@app.job(timeout=0.5)
def overdue() -> None:
    wait_for_flag("/nowhere")


@app.job(timeout=0.5)
async def overdue_task() -> None:
    await await_flag("/nowhere")


app.program("script", [sys.executable, "-c", "import time; time.sleep(60)"], timeout=0.5)
