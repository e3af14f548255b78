"""Containers that the standard library does not read (7z, rar), converted into a tar by the program ``bsdtar``.

The tar is a stream that passes the checks of every other tar; nothing is unpacked by the program. It gets bounded
memory, since a 7z may declare a dictionary of gigabytes, and no terminal, so that it cannot ask for a passphrase.
"""

import os
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, BinaryIO, cast

from spinney.files.paths import NotAdmitted, shown

PROGRAM = "bsdtar"
MEMORY_BYTES = 1 << 30
"""The most memory that the program gets. 7-Zip's own maximum setting takes a dictionary of 64 MB."""


@contextmanager
def as_tar(container: BinaryIO) -> Iterator[BinaryIO]:
    """Yield the members of a container as a tar, while the caller reads it; the program is killed at the end
    of the block.

    Raises NotAdmitted where the program is missing, and at the end of the stream, whole or cut off, when the
    program reports that the container is damaged or encrypted. A refusal by the caller that comes before the
    end of the stream is left as it is; one at the end is mostly a consequence of what the program reports,
    which is raised in its place."""
    program = shutil.which(PROGRAM)
    if program is None:
        raise NotAdmitted(
            f"this machine cannot read it: install {PROGRAM} (Debian: libarchive-tools), or send a zip or tar"
        )
    with tempfile.TemporaryFile() as messages:
        process = subprocess.Popen(
            [program, "--format", "pax", "-cf", "-", "@/dev/stdin"],  # it seeks in what it opens itself only
            stdin=container,
            stdout=subprocess.PIPE,
            stderr=messages,
            env=os.environ | {"LC_ALL": "C.UTF-8"},  # in which names are written
            start_new_session=True,
        )
        resource.prlimit(process.pid, resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        stream = cast(BinaryIO, process.stdout)
        try:
            try:
                yield stream
            except NotAdmitted as error:
                if stream.read(1):
                    raise
                raise NotAdmitted(_fault(process, messages) or str(error)) from None
            if fault := _fault(process, messages):
                raise NotAdmitted(fault)
        finally:
            process.kill()
            process.wait()
            stream.close()


def _fault(process: subprocess.Popen[bytes], messages: IO[bytes]) -> str | None:
    """Wait for the end of the program; return half a sentence from what it says when it failed, None when it
    did not."""
    if process.wait() == 0:
        return None
    messages.seek(0)
    lines = messages.read(1000).decode("utf-8", "replace").splitlines() or [""]
    reason = lines[0].rpartition(": ")[2]
    reason = "it is damaged or cut off" if reason in ("", "(null)") else shown(reason)
    return f"{PROGRAM} cannot read it ({reason}); send it again, or as a zip or tar"
