"""A headless Chromium: Debian's as ``make`` unpacks it, or the system's.

Its shell without windows (``chromium-headless-shell``) rather than the whole browser: pages are laid out, drawn and run
by the same code, in less than half of the processor time."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from servers import DEBIAN

UNPACKED = DEBIAN / "usr" / "lib"
NAMES = ("chromium-headless-shell", "chromium")
MISSING = (
    "there is no chromium-headless-shell, nor chromium: install Debian's package, or let 'make' unpack it"
)
_LIBRARIES = ("x86_64-linux-gnu", "aarch64-linux-gnu")
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)


def program() -> Path | None:
    """Where it is; None: nowhere."""
    for name in NAMES:
        unpacked = UNPACKED / "chromium" / name
        if unpacked.exists():
            return unpacked
    executable = next(filter(None, map(shutil.which, NAMES)), None)
    return None if executable is None else Path(executable)


@contextmanager
def launched() -> Iterator[Browser]:
    """One that runs until it is left."""
    where = program()
    assert where is not None, MISSING
    environment: dict[str, str | float | bool] = dict(os.environ)
    if UNPACKED in where.parents:
        folders = [UNPACKED / name / below for name in _LIBRARIES for below in ("", "pulseaudio")]
        environment["LD_LIBRARY_PATH"] = ":".join(str(folder) for folder in folders if folder.is_dir())
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=where, env=environment, args=list(_FLAGS))
        yield browser
        browser.close()
