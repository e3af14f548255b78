"""What the demos of the applications share: a folder of their own, commands that are shown, a mail server."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email import policy
from email.message import EmailMessage
from email.parser import BytesParser
from pathlib import Path
from typing import IO, Any

from aiosmtpd.controller import Controller
from aiosmtpd.handlers import Mailbox

from spinney.config import ENVIRONMENT
from spinney.errors import SpinneyError, UsageError

COMMAND = (sys.executable, "-m", "spinney")
_MARK = ".spinney-demo"
"""The file that marks a folder of an earlier demo, which may be removed."""
_DRAIN_S = 30.0
"""How long a process may take to end, in seconds, before it is killed."""

Process = subprocess.Popen[bytes]


def run_demo(steps: Callable[[], list[str]]) -> int:
    """Run the steps, which return what is not as it should be; print that, and return the exit code."""
    began_s = time.monotonic()
    try:
        faults = steps()
    except SpinneyError as error:
        print(f"demo: {error}", file=sys.stderr)
        return error.exit_code
    except OSError as error:  # a file that may not be read, a full disk
        print(f"demo: {error}; correct that, and start it again", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    print(*(f"FAULT {fault}" for fault in faults), f"{time.monotonic() - began_s:.1f} s in all", sep="\n")
    return 1 if faults else 0


def make_folder(folder: Path, settings_file: str, variable: str) -> None:
    """Make a new folder in place of the one of an earlier demo, and use the store and the settings in it, which
    ``variable`` names. Raises UsageError for any other folder: it may be that of a service."""
    if folder.exists() and not (folder / _MARK).exists():
        raise UsageError(f"{folder} exists and was not made by an earlier demo; move it away")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)  # something that cannot be removed may remain
    (folder / _MARK).touch()
    os.environ |= {variable: f"{folder / settings_file}", ENVIRONMENT: f"sqlite:///{folder / 'spinney.db'}"}


def run_command(*words: str, folder: Path | None = None) -> None:
    """Show a command of ``spinney`` with what it prints. Raises UsageError when it fails."""
    print(f"$ spinney {' '.join(words)}", flush=True)
    if subprocess.run([*COMMAND, *words], cwd=folder, check=False).returncode:
        raise UsageError(f"'spinney {' '.join(words)}' failed")


@contextmanager
def running(*words: str, log: IO[Any], folder: Path | None = None) -> Iterator[Process]:
    """Run a command of ``spinney``, whose output goes to a log, and yield its process. At the end of the block it may
    finish its work, and is killed where that takes too long."""
    process = subprocess.Popen(
        [*COMMAND, *words], cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log
    )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(_DRAIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_for(
    look: Callable[[], Any], what: str, log: Path, *, node: Process | None = None, most_s: float = 60.0
) -> Any:
    """Return what ``look`` returns as soon as it is true. Raises SpinneyError, which names the node's log, when that
    takes longer than ``most_s`` seconds, or the ``node`` has ended meanwhile."""
    end_s = time.monotonic() + most_s
    while not (answer := look()):
        if node is not None and node.poll() is not None:
            raise SpinneyError(f"{what}: the node has ended; see {log}")
        if time.monotonic() > end_s:
            raise SpinneyError(f"{what}: not within {most_s:.0f} s; see {log}")
        time.sleep(0.05)
    return answer


@contextmanager
def mail_server(folder: Path) -> Iterator[int]:
    """Run a mail server that keeps what it gets in a folder; yield its port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    controller = Controller(Mailbox(folder), hostname="127.0.0.1", port=port)
    controller.start()
    try:
        yield port
    finally:
        controller.stop()


def read_mails(folder: Path) -> list[EmailMessage]:
    """Return the mails that the server has put into its folder, by the names of their files."""
    parser = BytesParser(policy=policy.default)
    return [parser.parsebytes(file.read_bytes()) for file in sorted((folder / "new").iterdir())]


def show_mail(mail: EmailMessage) -> str:
    """Print a mail, and return its text."""
    text = str((mail.get_body(("plain",)) or mail).get_content())
    print(f"\nTo: {mail['to']}\nSubject: {mail['subject']}\n\n{text}")
    return text
