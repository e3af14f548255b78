"""Ctrl-C at any moment of a command: it ends with 130 and without a word, from its first line to its exit."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from .shell import Shell

HOOK = '''
"""At every so many calls the process forks: the child gets SIGINT there, and the parent notes how it ended."""
import json, os, signal, sys

EVERY = int(os.environ["INTERRUPT_EVERY"])
calls, due = 0, 1

def look(frame, event, arg):
    global calls, due
    calls += 1
    # Only where the interpreter calls handlers of signals: not between the end of a "with" and its lock's release.
    if calls < due or event not in ("call", "c_return"):
        return
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        return
    due = calls + EVERY
    said = os.memfd_create("stderr")
    child = os.fork()
    if child == 0:
        sys.setprofile(None)
        os.dup2(said, 2)
        signal.raise_signal(signal.SIGINT)
        return
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    where = f"{frame.f_code.co_filename}:{frame.f_lineno} {event}"
    with open(os.environ["INTERRUPT_LOG"], "a") as log:
        log.write(json.dumps([code, os.pread(said, 10_000, 0).decode(), where]) + "\\n")
    os.close(said)

sys.setprofile(look)
'''
SOURCE = Path(__file__).parents[2] / "src"


def interrupted(shell: Shell, every: int, *words: str, **more: str) -> list[tuple[int, str, str]]:
    """How the command ended (exit code, stderr, place), interrupted at every so many calls of its life."""
    (shell.folder / "hook").mkdir()
    (shell.folder / "hook" / "sitecustomize.py").write_text(HOOK)
    log = shell.folder / "interrupts.log"
    more |= {
        "PYTHONPATH": str(shell.folder / "hook"),
        "INTERRUPT_EVERY": str(every),
        "INTERRUPT_LOG": str(log),
    }
    subprocess.run(
        [sys.executable, "-m", "spinney", *words],
        cwd=shell.folder,
        env=shell.environment(**more),
        timeout=100,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        check=False,
    )
    return [tuple(json.loads(line)) for line in log.read_text().splitlines()] if log.exists() else []


@pytest.mark.parametrize(
    ("every", "words"),
    [(99_991, ["list"]), (149_993, ["submit", "double", "-p", "n=1"])],
    ids=["list", "submit"],
)
def test_ctrl_c_at_any_moment_ends_with_130_and_without_a_word(
    shell: Shell, every: int, words: list[str]
) -> None:
    endings = interrupted(shell, every, *words)

    assert len(endings) > 3
    # Where the interpreter is nearly gone the signal itself ends it, for which a shell says 130, too.
    assert [ending for ending in endings if ending[:2] not in ((130, ""), (-signal.SIGINT, ""))] == []


def test_almost_nothing_is_loaded_before_ctrl_c_is_looked_after(bare: Shell) -> None:
    code = "import sys; before = set(sys.modules); import spinney.cli.main; print(*set(sys.modules) - before)"

    result = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env=bare.environment(PYTHONPATH=str(SOURCE)),
        capture_output=True,
        text=True,
        check=True,
    )

    assert {name for name in result.stdout.split() if name.startswith("spinney")} == {
        "spinney",
        "spinney.cli",
        "spinney.cli.main",
        "spinney.terminal",
        "spinney.terminal.interrupts",
        "spinney.host",
        "spinney.host.standard_streams",
        "spinney.version",
    }
    assert not {"typing", "re", "tempfile", "traceback"} & set(result.stdout.split())


FINALIZER = """
import signal
from spinney.terminal.interrupts import interrupts

class Owner:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)

interrupts.take_over()
try:
    with interrupts:
        Owner()
        signal.pause()
except KeyboardInterrupt:
    raise SystemExit(130)
"""


TIMER_IN_HOOK = """
import signal

set_timer = signal.setitimer

def timer_runs_out_at_once(which, seconds):
    signal.setitimer = set_timer
    signal.raise_signal(signal.SIGALRM)

signal.setitimer = timer_runs_out_at_once
"""
"""As on a busy machine, where the timer runs out before the hook that set it has returned."""


@pytest.mark.parametrize("before", ["", TIMER_IN_HOOK], ids=["later", "in the hook"])
def test_ctrl_c_within_a_finalizer_is_not_lost(bare: Shell, before: str) -> None:
    code = before + FINALIZER
    result = subprocess.run(
        [sys.executable, "-c", code], env=bare.environment(), capture_output=True, timeout=60
    )

    assert (result.returncode, result.stderr) == (130, b"")


def test_an_ignored_interrupt_stays_ignored(bare: Shell) -> None:
    code = (
        "import signal; from spinney.terminal.interrupts import interrupts; "
        "signal.signal(signal.SIGINT, signal.SIG_IGN); "
        "interrupts.take_over(); assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN"
    )
    subprocess.run([sys.executable, "-c", code], env=bare.environment(), check=True)
