"""What every attempt of a worker finds alike: file descriptors 0 to 2 and the working directory."""

import os


class SavedDescriptors:
    """Remembers them as they are when it is made. Restoring unasked is cheaper than looking first:
    four system calls that change nothing, together less than two microseconds."""

    def __init__(self) -> None:
        # Own copies, which no attempt closes by mistake. O_PATH: a directory need not be readable.
        self._zero, self._one, self._two = os.dup(0), os.dup(1), os.dup(2)
        self._directory = os.open(".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)

    def restore(self) -> bool:
        """Make them what they were; False when that is impossible."""
        try:
            os.dup2(self._zero, 0)
            os.dup2(self._one, 1)
            os.dup2(self._two, 2)
            os.fchdir(self._directory)
        except OSError:
            return False
        return True
