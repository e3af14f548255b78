"""Memory that a supervisor shares with a worker, where the worker writes its stacks when they are requested."""

import os

END = b"\n-- end --\n"
"""Written by the worker behind its stacks. ``faulthandler``, which writes without the interpreter, writes none."""
MOST_BYTES = 256 * 2**10


class StackMemory:
    """The supervisor's side of the memory. Supervisor and worker share one file offset, at which ``faulthandler``
    writes."""

    def __init__(self) -> None:
        self.fd = os.memfd_create("spinney-stacks", os.MFD_CLOEXEC)

    def clear(self) -> None:
        """Make room for the answer to a new request."""
        os.ftruncate(self.fd, 0)
        os.lseek(self.fd, 0, os.SEEK_SET)

    def read(self) -> tuple[str, bool]:
        """Return what the worker has written, and whether it is complete."""
        data = os.pread(self.fd, MOST_BYTES, 0)
        return data.removesuffix(END).decode("utf-8", "replace"), data.endswith(END)

    def close(self) -> None:
        """Release the memory that is shared with the worker. Idempotent."""
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = -1
