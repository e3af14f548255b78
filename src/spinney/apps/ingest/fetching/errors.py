"""What goes wrong within one try; told to the caller as a FetchFailed or an Estimate's problem."""


class Trouble(Exception):
    """One try failed: a reason in a sentence without a subject's URL, and whether another may pass.

    ``after_s``: how long the server asked to be left alone. ``silent``: it did not answer at all, or fell silent, so
    that each further try would wait as long in vain; ``host`` is which, since redirects lead elsewhere.
    """

    def __init__(
        self, reason: str, *, retryable: bool, after_s: float | None = None, silent: bool = False
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retryable = retryable
        self.after_s = after_s
        self.silent = silent
        self.host = ""


class Differs(Trouble):
    """What came has another size or digest than was given: worth one fresh look, not more."""

    def __init__(self, what: str, given: object, found: object) -> None:
        super().__init__(
            f"its {what} is {found}, but {given} was given; mend the file or the manifest, then retry",
            retryable=False,
        )


class Halted(Exception):
    """This thread was called off, because another failed or the caller wishes so."""
