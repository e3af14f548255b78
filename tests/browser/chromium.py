"""A headless Chromium: the system's, or Debian's as ``make`` unpacks it."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from servers import DEBIAN

UNPACKED = DEBIAN / "usr" / "lib"
MISSING = "there is no chromium: install Debian's package, or let 'make' unpack it"
_LIBRARIES = ("x86_64-linux-gnu", "aarch64-linux-gnu")
_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
)  # fmt: skip


def program() -> Path | None:
    """Where it is; None: nowhere."""
    unpacked = UNPACKED / "chromium" / "chromium"
    if unpacked.exists():
        return unpacked
    found = shutil.which("chromium")
    return None if found is None else Path(found)


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
