"""Trees of processes end, whatever they do to stay."""

import errno
import os
import signal
import subprocess
import sys
import time

import pytest
from executor_fixtures import subreaping

from spinney.node.workers import proctree
from waiting import until

TREE = """
import os, signal, subprocess, sys, time
if sys.argv[1] == 'stubborn':
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
below = subprocess.Popen([sys.executable, '-c', '''
import os, signal, time
if %r == 'stubborn':
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.fork(): os._exit(0)
    os.setsid()
print(os.getpid(), flush=True)
time.sleep(600)
''' % sys.argv[1]])
time.sleep(600)
"""


@pytest.fixture(autouse=True)
def subreaper():
    with subreaping():
        yield
        proctree.end_descendants(0)


def start(kind: str) -> tuple[subprocess.Popen[str], int]:
    process = subprocess.Popen([sys.executable, "-c", TREE, kind], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    below = int(process.stdout.readline())
    process.stdout.close()
    return process, below


def gone(pid: int) -> bool:
    return until(lambda: proctree.identify(pid) is None)


def test_descendants_are_found_at_any_depth():
    process, below = start("plain")
    assert {p.pid for p in proctree.descendants(os.getpid())} >= {process.pid, below}
    assert {p.pid for p in proctree.descendants(process.pid)} == {below}


def test_a_tree_ends_with_term_when_it_listens():
    process, below = start("plain")
    begun = time.monotonic()
    proctree.end_descendants(30)
    assert time.monotonic() - begun < 20
    assert gone(process.pid)
    assert gone(below)


def test_a_tree_that_ignores_term_and_detaches_itself_ends_with_kill():
    process, below = start("stubborn")
    proctree.end_descendants(0.05)
    assert gone(process.pid)
    assert gone(below)
    assert proctree.children(os.getpid()) == []


def test_spared_processes_stay():
    process, _ = start("plain")
    helper = subprocess.Popen(["sleep", "600"])
    proctree.end_descendants(0, spare={helper.pid})
    assert gone(process.pid)
    assert proctree.identify(helper.pid) is not None


def test_orphans_are_strays_and_known_children_are_not():
    process, below = start("plain")
    helper = subprocess.Popen(["sleep", "600"])
    process.kill()
    process.wait()
    until(lambda: not proctree.reap_strays({helper.pid}))
    assert gone(below)
    assert proctree.identify(helper.pid) is not None


def test_a_pid_that_was_given_away_again_is_not_signalled():
    process = subprocess.Popen(["sleep", "600"])
    who = proctree.identify(process.pid)
    assert who is not None
    former = who._replace(started_ticks=who.started_ticks - 1)
    assert not proctree.kill(former, signal.SIGKILL)
    assert process.poll() is None
    assert proctree.kill(who, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert not proctree.kill(who, signal.SIGKILL)


def test_zombies_are_no_longer_there():
    process = subprocess.Popen(["true"])
    until(lambda: proctree.identify(process.pid) is None)
    assert process.pid in proctree.children(os.getpid())
    assert proctree.descendants(os.getpid()) == []
    process.wait()


def test_names_with_brackets_and_blanks_do_not_confuse(tmp_path):
    odd = tmp_path / "a ) R 1 (b"
    odd.symlink_to("/bin/sleep")
    process = subprocess.Popen([odd, "600"])
    who = until(lambda: proctree.identify(process.pid))
    assert who in proctree.descendants(os.getpid())


def test_one_scan_serves_where_the_kernel_keeps_no_lists(monkeypatch):
    process, below = start("plain")

    def missing(pid: int):
        raise FileNotFoundError(pid)

    monkeypatch.setattr(proctree, "_listed", missing)
    assert {p.pid for p in proctree.descendants(os.getpid())} >= {process.pid, below}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process of another user")
def test_a_process_of_another_user_keeps_no_other_from_its_end_and_is_named_once():
    """Given a process that this one may not signal, as one that was started by sudo, when all are killed, then the
    others end, and the log names it once and says what to do."""
    code = """
import os, signal, subprocess
from spinney.node.workers import proctree
quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
protected, own = [subprocess.Popen(["sleep", "600"], user=user, **quiet) for user in (65532, 65533)]
os.setuid(65533)
for number in (signal.SIGTERM, signal.SIGKILL):
    proctree.kill_all([p for p in map(proctree.identify, (protected.pid, own.pid)) if p is not None], number)
print(protected.pid, protected.poll(), own.wait())
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    pid, state, own = (ended.stdout or f"- - {ended.stderr}").split(maxsplit=2)
    assert (state, own.strip()) == ("None", str(-signal.SIGTERM))
    os.kill(int(pid), signal.SIGKILL)
    (line,) = ended.stderr.splitlines()
    assert f"process {pid} belongs to another user" in line
    assert f"sudo kill -KILL {pid}" in line


def test_a_tree_ends_although_no_descriptor_is_left_for_each_of_its_processes(monkeypatch):
    """Given the limit of open files, which is reached while a process is being signalled, when its tree is ended, then
    it is tried again until it succeeds."""
    process, below = start("plain")
    refusals = iter(range(5))
    opened = os.pidfd_open

    def pidfd_open(pid: int) -> int:
        if next(refusals, None) is not None:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return opened(pid)

    monkeypatch.setattr(os, "pidfd_open", pidfd_open)
    proctree.end_descendants(0)
    assert gone(process.pid)
    assert gone(below)


def test_no_argument_of_a_command_line_is_cut():
    program = "print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", program, "a", "b" * 5000, "c"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        proc = proctree.identify(process.pid)
        process.stdout.readline()  # for a moment of its start it has no arguments

        assert proctree.command_line(proc) == f"{sys.executable} -c {program} a …"
        assert proctree.command_line(proc, most=1) == sys.executable
        process.communicate(b"\n")


_UNKILLABLE = """
import logging, subprocess
from spinney.node.workers import proctree
logging.basicConfig()
proctree.become_subreaper()
proctree.WARN_S = 0.05
proctree.kill_all = lambda procs, number: None  # as for a process that waits for a disk
print(subprocess.Popen(["sleep", "1"]).pid, flush=True)
proctree.kill_descendants()
"""


def test_what_the_kernel_does_not_end_is_named_in_the_log():
    waiting = subprocess.run([sys.executable, "-c", _UNKILLABLE], capture_output=True, text=True, check=True)
    assert f"the kernel has not ended: {waiting.stdout.strip()};" in waiting.stderr
