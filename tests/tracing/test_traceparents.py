"""The rules of W3C Trace Context, and the current span of a process without and with OpenTelemetry."""

import contextvars
import os
import subprocess
import sys
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from new_store import new_store
from spinney import Spinney
from spinney.errors import BadParameters
from spinney.tracing import current, traceparents

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def work() -> None:
    """A job's function that no node runs."""


def count(number: int) -> None:
    """Another one, with a parameter."""


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        (TRACE, TRACE),
        (TRACE.replace("00-", "cc-", 1) + "-what-the-future-will-be-like", TRACE),
        (TRACE + "-more", None),
        (TRACE.replace("00-", "ff-", 1), None),
        (TRACE.replace("0af7651916cd43dd8448eb211c80319c", "0" * 32), None),
        (TRACE.replace("b7ad6b7169203331", "0" * 16), None),
        (TRACE.upper(), None),
        (TRACE[:-1], None),
        ("", None),
        (None, None),
    ],
)
def test_what_is_no_traceparent_is_ignored(text: str | None, taken: str | None) -> None:
    assert traceparents.valid(text) == taken


def test_spans_below_have_ids_of_their_own_in_the_same_trace() -> None:
    below = [
        TRACE,
        *(traceparents.of_attempt(TRACE, fence) for fence in (1, 2)),
        traceparents.of_record(TRACE, 1),
    ]
    assert len({traceparents.ids(each)[1] for each in below}) == 4
    assert {traceparents.ids(each)[0] for each in below} == {0x0AF7651916CD43DD8448EB211C80319C}
    assert all(traceparents.valid(each) == each for each in below)


def test_a_job_that_python_submits_is_below_the_span_of_its_submission(tmp_path: Path) -> None:
    app = Spinney(new_store(tmp_path / "spinney.db"))
    app.job(work)
    tracer = TracerProvider().get_tracer("test")
    with tracer.start_as_current_span("outside") as span:
        context = contextvars.copy_context()
        context.run(current.use_tracer, tracer)
        inside = app.job_info(context.run(app.submit, "work"))
    outside = app.job_info(app.submit("work"))
    app.close()
    assert inside.trace is not None
    assert traceparents.ids(inside.trace)[0] == span.get_span_context().trace_id
    assert traceparents.ids(inside.trace)[1] != span.get_span_context().span_id
    assert outside.trace is None


def test_the_span_of_a_refused_submission_does_not_quote_parameters(tmp_path: Path) -> None:
    app, spans, provider = (
        Spinney(new_store(tmp_path / "spinney.db")),
        InMemorySpanExporter(),
        TracerProvider(),
    )
    provider.add_span_processor(SimpleSpanProcessor(spans))
    app.job(count)
    context = contextvars.copy_context()
    context.run(current.use_tracer, provider.get_tracer("test"))
    with pytest.raises(BadParameters, match="private"):
        context.run(app.submit, "count", number="private")
    app.close()
    (span,) = spans.get_finished_spans()
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, "BadParameters")
    assert not span.events


def test_without_opentelemetry_an_attempt_is_entered_and_it_is_looked_for_once() -> None:
    script = (
        "import sys\n"
        "class Absent:\n"
        "    looks = 0\n"
        "    def find_spec(self, name, *_):\n"
        "        if name.startswith('opentelemetry'):\n"
        "            self.looks += 1\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, absent := Absent())\n"
        "from spinney.tracing import current\n"
        f"current.attempt_context({TRACE!r}, 1)\n"
        f"context = current.attempt_context({TRACE!r}, 2)\n"
        "print(context.run(current.traceparent), absent.looks)\n"
    )
    result = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert result.stdout == f"{traceparents.of_attempt(TRACE, 2)} 1\n"


@pytest.mark.parametrize("traceparent", [TRACE, "nonsense", None])
def test_the_command_line_takes_the_trace_of_its_environment(tmp_path: Path, traceparent: str | None) -> None:
    app = Spinney(new_store(tmp_path / "spinney.db"))
    app.job(work)
    app.submit("work")
    environment = os.environ | ({} if traceparent is None else {"TRACEPARENT": traceparent})
    command = [
        sys.executable,
        "-m",
        "spinney",
        "submit",
        "work",
        "--store",
        f"sqlite:///{tmp_path}/spinney.db",
    ]
    subprocess.run(command, env=environment, cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    assert app.job_info(2).trace == traceparents.valid(traceparent)
    app.close()
