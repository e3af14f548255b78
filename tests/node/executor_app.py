"""The application that executor tests run: one type, many stages, each one way to behave."""

import asyncio
import atexit
import contextlib
import contextvars
import ctypes
import decimal
import io
import logging
import multiprocessing
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from spinney import Defer, Fail, Finish, Hold, Job, NotApplicable, Spinney, Warn

print("loading prints, too")

app = Spinney()
app.queue("slow", limit=2)
app.lock("disk:*", capacity=100)
sample = app.pipeline("sample")


@sample.stage
def noop() -> None:
    pass


@sample.stage
def value(n: int = 0) -> dict[str, int]:
    return {"n": n}


@sample.stage
def say(text: str = "") -> None:
    print(text)


@sample.stage
def voices() -> None:
    """Python, C's buffer, a bare descriptor and a program, on both streams."""
    libc = ctypes.CDLL(None)
    print("from python")
    libc.printf(b"from C\n")
    os.write(1, b"from write\n")
    subprocess.run(["/bin/echo", "from a program"], check=True)
    print("to stderr", file=sys.stderr)
    logging.getLogger("anything").warning("from logging")


@sample.stage
def flood(size: int = 0) -> None:
    os.write(1, b"begin\n")
    block = b"x" * 10_000
    for _ in range(size // len(block)):
        sys.stdout.buffer.write(block)
    sys.stdout.buffer.flush()
    os.write(1, b"end\n")


@sample.stage
def wait_for(file: str = "") -> str:
    """Print, then wait until a file is there."""
    print("waiting", flush=True)
    while not Path(file).exists():
        time.sleep(0.005)
    return "seen"


@sample.stage
def raises(kind: str = "") -> Any:
    late = Defer(90)
    late.seconds = "soon"  # type: ignore[assignment]
    errors: dict[str, BaseException] = {
        "plain": ValueError("no good"),
        "fail": Fail("gave up", retryable=False, code=7),
        "defer": Defer(90, "later", lane=True),
        "hold": Hold("look at this"),
        "na": NotApplicable("not here"),
        "warn": Warn("hm", value=5),
        "finish": Finish("enough", value=[1]),
        "exit": SystemExit(3),
        "interrupt": KeyboardInterrupt(),
        "silent": ValueError(),
        "surrogate": ValueError("\ud800"),
        "bad-defer": late,
    }
    if kind == "breakpoint":
        breakpoint()
    raise errors[kind]


class _Speechless(Exception):
    def __str__(self) -> str:
        raise SystemExit("not even a message")


@sample.stage
def raises_oddly(kind: str = "") -> None:
    """Raise what cannot be told of as it is."""
    odd: BaseException = Fail("too much") if kind != "speechless" else _Speechless()
    if kind == "name":
        odd = type("Odd", (Exception,), {"__module__": "\ud800"})("named badly")
    if isinstance(odd, Fail):
        odd.code = {"code": 2**70, "text": "seven", "wide": 2**63}[kind]  # type: ignore[assignment]
    raise odd


@sample.stage
def result(kind: str = "") -> Any:
    return {"big": "x" * 70_000, "object": object(), "umlauts": "ä" * 40_000, "path": Path("/x")}[kind]


@sample.stage
def dies(how: str = "") -> None:
    print("last words", flush=True)
    if how == "segfault":
        ctypes.string_at(0)
    if how == "exit":
        os._exit(5)
    os.kill(os.getpid(), 40 if how == "realtime" else signal.SIGKILL)


@sample.stage
def moves(to: str = "") -> None:
    os.chdir(to)


@sample.stage
def where() -> list[str]:
    return [str(Path.cwd()), str(Path("/proc/self/fd/0").readlink())]


@sample.stage
def leaves(file: str = "", how: str = "") -> None:
    """Leave a process behind that ignores TERM, or more."""
    if how == "daemon":
        code = (
            "import os,signal,sys,time\n"
            "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
            "if os.fork(): os._exit(0)\n"
            "os.setsid()\n"
            "if os.fork(): os._exit(0)\n"
            "open(sys.argv[1]+'.new', 'w').write(str(os.getpid()))\n"
            "os.rename(sys.argv[1]+'.new', sys.argv[1])\n"
            "time.sleep(600)\n"
        )
        subprocess.run([sys.executable, "-c", code, file], check=True)
        while not Path(file).exists():
            time.sleep(0.005)
        return
    Path(file).write_text(str(subprocess.Popen(["sleep", "600"]).pid))


@sample.stage
def stubborn(file: str = "") -> None:
    """Ignore TERM, with a grandchild that does so in a session of its own."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    code = (
        "import signal,time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); "
        "time.sleep(600)"
    )
    grandchild = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=True
    )
    assert grandchild.stdout is not None
    grandchild.stdout.readline()
    Path(file).write_text(f"{grandchild.pid}")
    time.sleep(600)


@sample.stage
def tidy(file: str = "") -> None:
    """Clean up on TERM."""
    try:
        Path(file).write_text("begun")
        time.sleep(600)
    finally:
        Path(file).write_text("cleaned up")


@sample.stage
def tidy_beside_a_thread(file: str = "") -> None:
    stop = threading.Event()
    threading.Thread(target=stop.wait).start()
    try:
        tidy(file)
    finally:
        stop.set()


@sample.stage
def watch(job: Job, file: str = "") -> str:
    """Wait until cancelled."""
    Path(file).write_text("begun")
    while not job.cancelled:
        time.sleep(0.002)
    return "heard"


@sample.stage
def fork(how: str = "") -> str:
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
        return "parent"
    if how == "raise":
        raise RuntimeError("in the child")
    return "child"


@sample.stage
def handle(job: Job) -> dict[str, Any]:
    job.data["a"] = 1
    return {
        "ids": [job.id, job.root.id],
        "fence": job.fence,
        "stage": job.stage,
        "data": dict(job.data),
        "params": dict(job.params),
    }


@sample.stage
def handle_in_threads(job: Job) -> None:
    threads = [threading.Thread(target=job.data.append, args=("list", n)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@sample.stage
def handle_in_fork(job: Job) -> int | None:
    process = multiprocessing.get_context("fork").Process(target=job.progress, args=(0.5,))
    process.start()
    process.join()
    return process.exitcode


@sample.stage
def takes_lock(job: Job) -> None:
    job.lock("the place")


@sample.stage
def takes_much(job: Job) -> None:
    job.lock("disk:1", amount=60, capacity=90)


@sample.stage
def writes(job: Job) -> str:
    (job.folder / "sub").mkdir()
    (job.folder / "sub" / "file.txt").write_text("kept")
    return str(job.folder)


@sample.stage(isolation="process")
async def coroutine() -> str:
    await asyncio.sleep(0)
    return "awaited"


@sample.stage
def modules() -> list[str]:
    return list(sys.modules)


@sample.stage
def environment() -> list[str]:
    return list(os.environ)


# --- programs --------------------------------------------------------------------------------------

_SCRIPT = """
import json, os, sys, signal
params = json.load(open(os.environ['SPINNEY_PARAMS']))
how = params.get('how')
if how == 'result':
    json.dump({'params': params, 'cwd': os.getcwd(), 'argv': sys.argv[1:],
               'env': {k: v for k, v in os.environ.items() if k.startswith('SPINNEY_')}},
              open(os.environ['SPINNEY_RESULT'], 'w'))
elif how == 'junk':
    open(os.environ['SPINNEY_RESULT'], 'w').write('{no json')
elif how == 'huge':
    open(os.environ['SPINNEY_RESULT'], 'w').write('"' + 'x' * 70000 + '"')
elif how == 'fifo':
    os.mkfifo(os.environ['SPINNEY_RESULT'])
elif how == 'directory':
    os.makedirs(os.environ['SPINNEY_RESULT'] + '/below')
elif how == 'symlink':
    os.symlink('/etc/hostname', os.environ['SPINNEY_RESULT'])
elif how == 'unreadable-link':
    os.symlink('/dev/zero', os.environ['SPINNEY_RESULT'])
elif how == 'signal':
    os.kill(os.getpid(), params.get('number', signal.SIGSEGV))
elif how == 'write':
    print('to stdout'); print('to stderr', file=sys.stderr)
elif how == 'group':
    os.kill(0, signal.SIGTERM)
sys.exit(params.get('code', 0))
"""
program = app.pipeline("program")
program.program("script", [sys.executable, "-c", _SCRIPT, "one", "two words"])
program.program(
    "table",
    [sys.executable, "-c", _SCRIPT],
    exit_codes={3: "warning", 4: "hold", 5: "finish", 6: "not_applicable", 0: "error"},
)
program.program("missing", ["no-such-program-anywhere"])
program.program("forbidden", ["/etc/passwd"])
program.program("windows", ["./windows.sh"])
program.program(
    "stubborn",
    ["/bin/sh", "-c", "trap '' TERM; echo $$ > pid.new; mv pid.new pid; while :; do sleep 600; done"],
)


# --- many at once ----------------------------------------------------------------------------------

concurrent = app.pipeline("many")
together = threading.Barrier(8)


@concurrent.stage(isolation="thread")
def meets(n: int = 0) -> int:
    """Ends only when eight run at once; prints in two halves around it."""
    print(f"before {n}")
    together.wait(10)
    print(f"after {n}", end="")
    print(f"aside {n}", file=sys.stderr)
    return n


@concurrent.stage(isolation="async")
async def meets_async(n: int = 0) -> int:
    print(f"before {n}")
    await asyncio.sleep(0.01)
    print(f"after {n}")
    return n


@concurrent.stage(isolation="thread")
def thread_waits(job: Job) -> str:
    print("begun")
    while not job.cancelled:
        time.sleep(0.002)
    return "heard"


@concurrent.stage(isolation="thread")
def thread_exhausts(job: Job) -> None:
    """Let no more threads be started, as at a limit of them: nowhere is room for such a stack. Then wait."""
    threading.stack_size(2**50)
    thread_waits(job)


@concurrent.stage(isolation="async")
async def task_waits() -> None:
    print("begun")
    try:
        await asyncio.sleep(600)
    finally:
        print("cleaned up")


@concurrent.stage(isolation="async")
async def cancels_itself() -> None:
    raise asyncio.CancelledError


@concurrent.stage(isolation="async")
async def cancels_itself_last() -> int:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    return 3


@concurrent.stage(isolation="async")
async def closes_the_loops_descriptor() -> None:
    os.close(asyncio.get_running_loop()._selector.fileno())  # type: ignore[attr-defined]
    await asyncio.sleep(600)


def _breaks_the_clock() -> None:
    time.time_ns = lambda: 1 // 0


@concurrent.stage(isolation="async")
async def async_breaks_the_clock() -> None:
    _breaks_the_clock()


@concurrent.stage(isolation="thread")
def thread_breaks_the_clock() -> None:
    _breaks_the_clock()


@concurrent.stage(isolation="thread")
def past_python() -> None:
    os.write(1, b"past python\n")


@concurrent.stage(isolation="async")
async def asks(job: Job) -> dict[str, Any]:
    job.data["a"] = 1
    return dict(job.data)


@concurrent.stage(isolation="thread")
def leaves_a_thread() -> None:
    print("left", flush=True)
    threading.Thread(target=time.sleep, args=(3600,)).start()


@concurrent.stage(isolation="thread")
def leaves_an_exporter(file: str = "") -> None:
    """As libraries do that send in the background: a daemon thread, and a flush when the process ends."""
    threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()
    atexit.register(Path(file).write_text, "flushed")


@concurrent.stage(isolation="thread")
def thread_leaves(file: str = "") -> None:
    Path(file).write_text(str(subprocess.Popen(["sleep", "600"]).pid))


@concurrent.stage(isolation="thread")
def thread_raises(kind: str = "") -> Any:
    return raises(kind)


@concurrent.stage(isolation="async")
async def async_raises(kind: str = "") -> Any:
    return raises(kind)


@concurrent.stage(isolation="async")
async def subtask_raises(kind: str = "") -> None:
    """Raise in a task of its own, or stop the event loop that all tasks share."""

    async def subtask() -> None:
        await asyncio.sleep(0)
        if kind == "stop":
            asyncio.get_running_loop().stop()
        else:
            raises(kind)

    async with asyncio.TaskGroup() as group:
        group.create_task(subtask())
    await asyncio.sleep(0.001)


@concurrent.stage(isolation="async")
async def async_writes(job: Job) -> None:
    (job.folder / "file").write_text("kept")


@concurrent.stage(isolation="thread")
def thread_passes() -> None:
    pass


@concurrent.stage(isolation="thread")
def thread_modules() -> list[str]:
    return list(sys.modules)


@concurrent.stage(isolation="async")
async def blocks(file: str = "") -> None:
    """Hold the event loop up until a file is there, if one is named."""
    if file:
        wait_for(file)


@concurrent.stage(isolation="async")
async def wishes_itself_gone_and_writes(job: Job) -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    (job.folder / "file").write_text("kept")


@concurrent.stage(isolation="async")
async def forks(how: str = "") -> int:
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])  # noqa: ASYNC222
    if how == "awaits":
        await asyncio.sleep(0)
    return -1


program.program(
    "fds",
    [
        sys.executable,
        "-c",
        "import json, os; found = []\n"
        "for fd in os.listdir('/proc/self/fd'):\n"
        "    try: found.append(os.readlink('/proc/self/fd/' + fd))\n"
        "    except OSError: pass\n"
        "json.dump(found, open(os.environ['SPINNEY_RESULT'], 'w'))",
    ],
)


@sample.stage
def value_of(text: str = "") -> int:
    return len(text)


@sample.stage
def talks_nonsense() -> None:
    for fd in Path("/proc/self/fd").iterdir():
        try:
            there = socket.socket(fileno=os.dup(int(fd.name)))
        except OSError:
            continue
        there.sendall(b"\xff" * 100)
    time.sleep(600)


@sample.stage
def meddles(how: str = "") -> None:
    """Do to the standard streams what should not be done."""
    if not how.startswith("silent-"):
        print("before", flush=True)
    how = how.removeprefix("silent-")
    if how == "close":
        sys.stdout.close()
    elif how == "replace":
        sys.stdout = io.StringIO()
    elif how == "close-fd":
        os.close(1)
        os.close(2)
    elif how == "close-input":
        os.close(0)
    elif how == "redirect":
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        print("elsewhere")


# --- what an attempt leaves behind -----------------------------------------------------------------

pool = ThreadPoolExecutor(2)
setting = contextvars.ContextVar("setting", default="as loaded")


def change(what: str) -> None:
    if what == "umask":
        os.umask(0o777)
    elif what == "environment":
        os.environ["LANG"] = "changed"
        os.environ["NEW"] = "new"
        del os.environ["PATH"]
    elif what == "environment replaced":
        os.environ = {"NEW": "new"}  # type: ignore[assignment]  # noqa: B003
    elif what == "time zone":
        os.environ["TZ"] = "Asia/Tokyo"
        time.tzset()
    elif what == "environment of programs":
        os.putenv("NEW", "new")
        os.unsetenv("PATH")
    elif what == "limits":
        resource.setrlimit(resource.RLIMIT_NOFILE, (50, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    elif what == "recursion limit":
        sys.setrecursionlimit(100)
    elif what == "handler":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGUSR1, lambda *_: None)
    elif what == "mask":
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    elif what == "alarm":
        signal.alarm(3600)
    elif what == "wakeup":
        signal.set_wakeup_fd(-1)
    elif what == "directory":
        os.chdir("/")
    elif what == "context":
        setting.set("changed")
        decimal.getcontext().prec = 3


@sample.stage
def changes(what: str = "") -> None:
    change(what)


@sample.stage
def lowers_for_good() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))


@sample.stage
def becomes_nobody() -> None:
    os.setuid(65534)


@concurrent.stage(isolation="thread")
def thread_lowers_for_good() -> None:
    lowers_for_good()


@concurrent.stage(isolation="thread")
def thread_changes(what: str = "") -> None:
    change(what)


def state() -> dict[str, Any]:
    mask = os.umask(0)
    os.umask(mask)
    wakeup = -1
    if threading.current_thread() is threading.main_thread():
        wakeup = signal.set_wakeup_fd(-1)
        signal.set_wakeup_fd(wakeup)
    return {
        "pid": os.getpid(),
        "umask": mask,
        "environment": sorted(os.environ.items()),
        "time zone": [*time.localtime(0)[:5], time.timezone],
        "environment of programs": sorted(subprocess.check_output(["/usr/bin/env"], text=True).splitlines()),
        "limits": resource.getrlimit(resource.RLIMIT_NOFILE),
        "recursion limit": sys.getrecursionlimit(),
        "handlers": [str(signal.getsignal(number)) for number in (signal.SIGTERM, signal.SIGUSR1)],
        "mask": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
        "alarm": signal.getitimer(signal.ITIMER_REAL),
        "wakeup": wakeup,
        "directory": str(Path.cwd()),
        "context": [setting.get(), decimal.getcontext().prec],
    }


@sample.stage
def shows_state() -> dict[str, Any]:
    return state()


@concurrent.stage(isolation="thread")
def thread_shows_state() -> dict[str, Any]:
    return state()


def _prints_until_gone() -> None:
    while True:
        print("from a thread that was left", flush=True)
        time.sleep(0.001)


@sample.stage
def leaves_thread() -> None:
    threading.Thread(target=_prints_until_gone).start()


@sample.stage
def uses_pool() -> int:
    return pool.submit(os.getpid).result()


@sample.stage
def leaves_work_in_pool() -> None:
    pool.submit(_prints_until_gone)


_files: list[Any] = []


@sample.stage
def leaks(files: int = 0) -> int:
    _files.extend(Path("/dev/null").open() for _ in range(files))  # noqa: SIM115
    return os.getpid()


def _leaves_a_program_and_no_descriptor(file: str) -> None:
    Path(file).write_text(str(subprocess.Popen(["sleep", "600"]).pid))
    with contextlib.suppress(OSError):
        while True:
            _files.append(os.open("/dev/null", os.O_RDONLY))


@sample.stage
def uses_up_descriptors(file: str = "") -> None:
    _leaves_a_program_and_no_descriptor(file)


@concurrent.stage(isolation="thread")
def thread_uses_up_descriptors(file: str = "") -> None:
    _leaves_a_program_and_no_descriptor(file)
