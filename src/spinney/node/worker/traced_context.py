"""The context in which an attempt of a traced job runs."""

from contextvars import Context, copy_context

from spinney.tracing import current, traceparents


def in_trace(trace: str, fence: int) -> Context:
    """Return a context whose current span is that of the attempt of this fence; ``trace``: of its job's submission.

    The node makes the span itself when the attempt is recorded, because it knows how that ended, whatever becomes of
    this process."""
    context = copy_context()
    context.run(current.enter_attempt, traceparents.of_attempt(trace, fence))
    return context
