"""What is done at the end of the process of the tests, although processes are forked from it before."""

import subprocess
import sys
from pathlib import Path

_RUN = """
import multiprocessing, os, pathlib, sys, tempfile
from process_end import at_process_end

def folder():
    made = tempfile.TemporaryDirectory()
    at_process_end(made.cleanup)
    return pathlib.Path(made.name)

made = folder()
child = multiprocessing.get_context("fork").Process(target=lambda: None)
child.start()
child.join()
print(made, made.is_dir(), flush=True)
at_process_end(lambda: print("end", flush=True))
if os.fork():
    os.wait()
"""


def test_what_a_process_has_stays_until_its_own_end() -> None:
    # Given a process with a temporary folder, and two that are forked from it: one by multiprocessing, one that ends
    # as a program does
    ran = subprocess.run(
        [sys.executable, "-c", _RUN], cwd=Path(__file__).parent, capture_output=True, text=True, check=True
    )
    folder, stayed, *ends = ran.stdout.split()
    assert stayed == "True"
    assert ends == ["end"]
    assert not Path(folder).exists()
