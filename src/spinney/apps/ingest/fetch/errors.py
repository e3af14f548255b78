"""The errors of one try; the caller gets them as a FetchFailed or an Estimate's problem."""

import threading


class TryFailed(Exception):
    """One try failed, for a reason (a sentence without the URL); ``retryable``: another try may succeed.

    ``after_s``: the delay that the server asked for. ``unresponsive``: the server did not answer, or stopped sending,
    so that another try may succeed, but each further one now would wait as long in vain; ``host`` names it, since
    redirects lead to other hosts.
    """

    def __init__(
        self,
        reason: str,
        *,
        retryable: bool = False,
        after_s: float | None = None,
        unresponsive: bool = False,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retryable = retryable or unresponsive
        self.after_s = after_s
        self.unresponsive = unresponsive
        self.host = ""


class ConnectionBroke(TryFailed):
    """The server closed or reset the connection; ``answered``: after it had begun to answer."""

    def __init__(self, *, answered: bool) -> None:
        super().__init__("the connection broke; try again later", retryable=True)
        self.answered = answered


class Differs(TryFailed):
    """The content has another size or digest than was given: the file is fetched again once."""

    def __init__(self, quantity: str, expected: object, actual: object) -> None:
        super().__init__(
            f"its {quantity} is {actual}, and the given one is {expected}; correct the file or the manifest, then retry"
        )


class Halted(Exception):
    """This thread was aborted, because another failed or the caller stopped it."""


class Halt(threading.Event):
    """Set to abort the threads of a call."""

    def check(self, _: object = None) -> None:
        """Raise Halted once it is set; it may be called between the pieces of a file that is read."""
        if self.is_set():
            raise Halted
