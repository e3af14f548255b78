import traceback
from dataclasses import replace

import pytest

from server.pages.sample_jobs import attempt
from spinney.model.outcomes import Outcome
from spinney.web.pages.tracebacks import MESSAGE_MAX, failure_text, pieces

TRACE = 'Traceback (most recent call last):\n  File "/srv/jobs.py", line 3, in work\n    check()\n'


def test_given_a_real_traceback_with_a_cause_then_each_exception_has_its_frames() -> None:
    try:
        try:
            int("x")
        except ValueError as error:
            raise RuntimeError("the number\nis none") from error
    except RuntimeError as error:
        text = "".join(traceback.format_exception(error))

    parts = pieces(text)

    assert len(parts) == 2
    assert parts[0].frames[-1].function.startswith("test_given_a_real_traceback")
    assert 'int("x")' in parts[0].frames[-1].code
    assert parts[0].text.startswith("ValueError: invalid literal")
    assert "direct cause" in parts[0].text
    assert parts[1].text == "RuntimeError: the number\nis none"
    assert parts[1].frames[-1].last
    assert parts[1].frames[-1].own


def test_given_frames_of_libraries_then_they_are_told_from_ones_own() -> None:
    text = (
        'Traceback (most recent call last):\n  File "/srv/jobs.py", line 3, in work\n    json.loads(x)\n'
        '  File "/src/spinney/node/worker/serial_worker.py", line 1, in run\n    work()\n'
        '  File "/usr/lib/python3.11/json/__init__.py", line 346, in loads\n    return _default_decoder.decode(s)\n'
        "json.decoder.JSONDecodeError: Expecting value\n"
    )

    (piece,) = pieces(text)

    assert [(f.file, f.line, f.own) for f in piece.frames] == [
        ("/srv/jobs.py", 3, True),
        ("/src/spinney/node/worker/serial_worker.py", 1, False),
        ("/usr/lib/python3.11/json/__init__.py", 346, False),
    ]


def test_given_text_that_is_no_traceback_then_nothing_of_it_is_lost() -> None:
    assert [(p.frames, p.text) for p in pieces("exit code 3\nsegmentation fault")] == [
        ([], "exit code 3\nsegmentation fault")
    ]
    assert pieces("") == []
    cut = pieces(
        'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    g()\n... 9 characters cut ...\nEnd'
    )
    assert cut[0].text == "... 9 characters cut ...\nEnd"


LONG = "no profile " * MESSAGE_MAX


@pytest.mark.parametrize(
    ("message", "trace", "shown", "last"),
    [
        ("no profile", f"{TRACE}ValueError: no profile", "no profile", ""),
        ("two\nlines", f"{TRACE}ValueError: two\nlines", "two\nlines", ""),
        (
            "no profile",
            f"{TRACE}ValueError: no profile\na note",
            "no profile",
            "ValueError: no profile\na note",
        ),
        (
            LONG,
            f"{TRACE}ValueError: {LONG}",
            f"{LONG[: MESSAGE_MAX - 1].rstrip()}…",
            f"ValueError: {LONG}".rstrip(),
        ),
        ("no profile", "error: no profile", "no profile", "error: no profile"),
        (LONG, "", LONG, None),
        (LONG, f"{TRACE}ValueError: 17", LONG, "ValueError: 17"),
        (None, f"{TRACE}ValueError", "it failed", "ValueError"),
    ],
)
def test_given_a_failure_then_what_its_message_says_is_not_said_again(
    message: str | None, trace: str, shown: str, last: str | None
) -> None:
    failure = replace(
        attempt("work", Outcome.ERROR), message="it failed", error={"message": message, "traceback": trace}
    )

    text, parts = failure_text(failure)

    assert text == shown
    assert (parts[-1].text if parts else None) == last


def test_given_a_failure_without_a_message_then_its_traceback_is_whole() -> None:
    """An external worker may report such a failure."""
    error = {"type": "ValueError", "message": "", "traceback": f"{TRACE}ValueError\na note"}

    text, parts = failure_text(replace(attempt("work", Outcome.ERROR), message=None, error=error))

    assert (text, parts[-1].text) == ("", "ValueError\na note")
