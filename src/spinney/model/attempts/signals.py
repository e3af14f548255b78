"""The signals by which a stage sets its outcome: it raises one of these, or just returns.

A stage that returns has passed (``ok``), and the returned value is its result. All signals derive from ``Signal``,
which is no ``Exception``: a stage's own ``except Exception`` must not catch them."""

from collections.abc import Iterator
from typing import Any, ClassVar, final

from spinney.model.errors import UsageError
from spinney.model.outcomes import Outcome
from spinney.model.values import durations
from spinney.model.values.durations import Duration

CODE_MAX = 2**31 - 1
"""The largest status code of a handler: what every database keeps as an integer."""


class Signal(BaseException):
    """The base class of all signals; it is not raised itself."""

    outcome: ClassVar[Outcome]

    def __init__(self, message: str = "") -> None:
        self.message = message
        super().__init__(message)


@final
class Fail(Signal):
    """The stage failed. ``retryable=False``: further attempts are pointless. ``code``: a positive
    status code of the handler's own, shown beside the state."""

    outcome = Outcome.ERROR

    def __init__(self, message: str = "", *, retryable: bool = True, code: int | None = None) -> None:
        if code is not None and (type(code) is not int or not 1 <= code <= CODE_MAX):
            raise ValueError(
                f"a status code of your own must be a whole number from 1 to {CODE_MAX}, not {code!r:.80}"
            )
        super().__init__(message)
        self.retryable, self.code = retryable, code


@final
class Defer(Signal):
    """Run the stage again after so many ``seconds``, a timedelta, or a text such as ``"5m"`` (a tenth of a second at
    least, a hundred years at most). It uses no attempt. ``lane=True`` puts every job of this stage to sleep for that
    time; then one job probes before the others continue."""

    outcome = Outcome.DEFER

    def __init__(self, seconds: Duration = 60.0, message: str = "", *, lane: bool = False) -> None:
        try:
            number = durations.seconds(seconds, "Defer")
        except UsageError as error:
            raise ValueError(str(error)) from None
        if number < 0:
            raise ValueError(f"Defer takes 0 seconds or more, not {seconds!r:.80}; write Defer(60)")
        super().__init__(message)
        self.seconds, self.lane = number, lane


@final
class Hold(Signal):
    """Hold this job until an operator releases it. It uses no attempt."""

    outcome = Outcome.HOLD


@final
class NotApplicable(Signal):
    """This stage has nothing to do for this job: it counts as passed and stores no value."""

    outcome = Outcome.NOT_APPLICABLE


@final
class Warn(Signal):
    """Passed, with a warning that is counted on the job. ``value`` is the stage's value."""

    outcome = Outcome.WARNING

    def __init__(self, message: str = "", *, value: Any = None) -> None:
        super().__init__(message)
        self.value = value


@final
class Finish(Signal):
    """The job is done; later stages are not needed. ``value`` is the stage's value."""

    outcome = Outcome.FINISH

    def __init__(self, message: str = "", *, value: Any = None) -> None:
        super().__init__(message)
        self.value = value


def leaves(error: BaseException) -> Iterator[BaseException]:
    """Yield the exceptions in a group of exceptions and in its groups, in order; of any other exception itself."""
    todo = [error]
    while todo:
        current = todo.pop()
        if isinstance(current, BaseExceptionGroup):
            todo += reversed(current.exceptions)
        else:
            yield current


def unwrapped(error: BaseException) -> BaseException:
    """Return the exception that decides the outcome: for a group with a single exception that exception, for a group of
    signals only the first of them, and otherwise the error itself. ``asyncio.TaskGroup`` raises as a group even what
    one task has raised."""
    first, *others = leaves(error)
    decides = not others or all(isinstance(leaf, Signal) for leaf in (first, *others))
    return first if decides else error
