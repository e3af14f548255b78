"""The application of tests of traces: stages that return the span in which they are."""

import json
import sys

from opentelemetry import trace

from spinney import Fail, Job, Spinney

app = Spinney()
_PRINTS = (
    "import json, os, sys; json.dump(os.environ.get('TRACEPARENT'), open(os.environ['SPINNEY_RESULT'], 'w'))"
)
app.program("program", [sys.executable, "-c", _PRINTS])


def seen(job: Job) -> list[str | None]:
    """Return the traceparent that the handle has, and the current span that OpenTelemetry has."""
    span = trace.get_current_span().get_span_context()
    current = f"00-{span.trace_id:032x}-{span.span_id:016x}-{span.trace_flags:02x}" if span.is_valid else None
    return [job.traceparent, current]


@app.job
def process(job: Job) -> list[str | None]:
    job.spawn(child)
    return seen(job)


@app.job
def child(job: Job) -> list[str | None]:
    return seen(job)


@app.job(isolation="thread")
def thread(job: Job) -> list[str | None]:
    return seen(job)


@app.job(isolation="async")
async def task(job: Job) -> list[str | None]:
    return seen(job)


@app.job
def fails() -> None:
    raise Fail(json.dumps("broken"))


two = app.pipeline("two")


@two.stage
def one(job: Job) -> list[str | None]:
    return seen(job)


@two.stage
def other(job: Job) -> list[str | None]:
    return [*job.results["one"], *seen(job)]
