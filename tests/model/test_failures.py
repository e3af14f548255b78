"""One cause for many failures: what of a message counts, and what differs from job to job."""

import json
import string
import time
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from long_tests import LONG
from spinney.model.attempts.failures import DIGITS, Cause, cause
from spinney.model.attempts.plain_messages import PLAIN_MAX, plain
from spinney.model.jobs import Record
from spinney.model.outcomes import Outcome

SAME = {
    "a missing file": (
        "[Errno 2] No such file or directory: '/var/in/17.csv'",
        "[Errno 2] No such file or directory: '/srv/other place/it.txt'",
    ),
    "a file that is named without a slash": (
        "[Errno 2] No such file or directory: 'letters.csv'",
        '[Errno 2] No such file or directory: "ann\'s list"',
    ),
    "two files": (
        "[Errno 18] Invalid cross-device link: 'a' -> '/mnt/a'",
        "[Errno 18] Invalid cross-device link: 'b c' -> 'd'",
    ),
    "a disk that is full": ("[Errno 28] No space left on device", "[Errno 28] No space left on device"),
    "an HTTP error": (
        "404 Client Error: Not Found for url: https://api.example.org/v1/items/17?page=3#top",
        "404 Client Error: Not Found for url: https://api.example.org/v1/users/ann",
    ),
    "a host that does not answer": (
        "HTTPSConnectionPool(host='api.example.org', port=443): Max retries exceeded with url: /v1/a (Caused by "
        "NewConnectionError('<urllib3.connection.HTTPSConnection object at 0x7f3c2a10b0d0>: Failed to establish a "
        "new connection: [Errno 111] Connection refused'))",
        "HTTPSConnectionPool(host='api.example.org', port=443): Max retries exceeded with url: /v1/b?n=2 (Caused by "
        "NewConnectionError('<urllib3.connection.HTTPSConnection object at 0x7fffabc0>: Failed to establish a "
        "new connection: [Errno 111] Connection refused'))",
    ),
    "a statement with its parameters": (
        "(sqlite3.IntegrityError) UNIQUE constraint failed: users.email\n[SQL: INSERT INTO users (email) VALUES (?)]\n"
        "[parameters: ('ann@example.org',)]\n(Background on this error at: https://sqlalche.me/e/20/gkpj)",
        "(sqlite3.IntegrityError) UNIQUE constraint failed: users.email\n[SQL: INSERT INTO users (email) VALUES (?)]\n"
        "[parameters: ('bob@example.org',)]\n(Background on this error at: https://sqlalche.me/e/20/gkpj)",
    ),
    "a duplicate key in PostgreSQL": (
        'duplicate key value violates unique constraint "users_pkey"\nDETAIL:  Key (id)=(17) already exists.',
        'duplicate key value violates unique constraint "users_pkey"\nDETAIL:  Key (id)=(4711) already exists.',
    ),
    "a document that does not fit its schema": (
        "'size' is a required property\n\nOn instance:\n    {'name': 'ann'}",
        "'size' is a required property\n\nOn instance:\n    {'name': 'bob', 'age': 3}",
    ),
    "a key that is a number": ("17", "18"),
    "a program": (
        "convert exited with code 3; see 'spinney logs 17'",
        "convert exited with code 3; see 'spinney logs 4711'",
    ),
    "a time limit": ("exceeded its time limit of 90 s", "exceeded its time limit of 0.5 s"),
    "a connection": (
        "could not connect to 10.0.0.7:5432 after 3 tries",
        "could not connect to 192.168.1.12:5432 after 12 tries",
    ),
    "the same over IPv6": ("no route to fe80::1%eth0", "no route to 2001:db8:0:1::17"),
    "an object": ("<Door object at 0x7f3c2a10b0d0> is shut", "<Door object at 0x55d0> is shut"),
    "times": (
        "no sample between 2024-01-31T10:00:00Z and 2024-02-01 07:00:00.5+02:00",
        "no sample between 2023-12-01 00:00 and 2024-11-30T23:59:59",
    ),
    "times as mail has them": (
        "expired on Wed, 31 Jan 2024 10:11:12 GMT",
        "expired on Sat, 1 Jun 2024 00:00:00 +0200",
    ),
    "a certificate's time": ("expired at Jan 31 10:11:12 2024 GMT", "expired at May  1 00:00:00 2025 GMT"),
    "how long it took": ("gave up after 1 h 02 min", "gave up after 35.5 s"),
    "a timedelta": ("gave up after 1 day, 3:04:05", "gave up after 0:00:01.5"),
    "how much it was": ("1.5 MiB are too much", "200 kB are too much"),
    "ids": (
        "job 3f9a0b1c-1111-2222-3333-444455556666 (request 4bf92f3577b34da6) is gone",
        "job 00000000-aaaa-bbbb-cccc-000000000001 (request aabbccddeeffaabb) is gone",
    ),
    "serial numbers of receivers": (
        "no detections of receiver SG-4E1FBBBK0012 in batch G7KQ2M9X",
        "no detections of receiver SG-5113BBBK2972 in batch 8ZK03QTT",
    ),
    "ids in another alphabet": ("request k3j9x0ab2 is gone", "request 01ARZ3NDEKTSV4RRFFQ69G5FAV is gone"),
    "a list of numbers": ("no such ids: 1, 2, 3", "no such ids: -7"),
    "a list of paths": ("cannot read ['/a/b', '/c']", "cannot read ['/d']"),
    "a path that begins like a media type": ("no text/letters/a.txt here", "no /b here"),
    "a path in Windows": ("cannot open C:\\data\\17.csv", "cannot open D:\\x"),
    "paths below a dot, home, here": ("in ./a ../b ~/c src/x/y.py", "in ./d ../e/f ~ann/g src/z.py"),
    "a place in a file": ('File "/usr/lib/x.py", line 3', 'File "lib/y.py", line 14'),
    "blanks": ("not  this\tway ", "not this way"),
}

DIFFERENT = {
    "keys of a dict": ("'name'", "'title'"),
    "words of HTTP": (
        "404 Client Error: Not Found for url: https://api.example.org/v1/a",
        "500 Server Error: Internal Server Error for url: https://api.example.org/v1/a",
    ),
    "hosts": ("cannot reach https://a.example.org/x", "cannot reach https://b.example.org/x"),
    "what a disk says": (
        "[Errno 2] No such file or directory: '/a'",
        "[Errno 13] Permission denied: '/a'",
    ),
    "tables": ("UNIQUE constraint failed: users.email", "UNIQUE constraint failed: users.name"),
    "modules": ("No module named 'yaml.cyaml'", "No module named 'yaml.reader'"),
    "alternatives with a slash": ("an I/O error", "an n/a error"),
    "media types without quotes": ("no text/csv here", "no text/html here"),
    "media types": ("cannot read 'text/html'", "cannot read 'image/png'"),
    "names of C++": ("std::bad_alloc", "std::length_error"),
    "words that are hexadecimal digits": ("the facade is gone", "the decade is gone"),
    "signals": ("its worker was killed by SIGKILL", "its worker was killed by SIGSEGV"),
    "names of algorithms": ("no curve secp256k1", "no curve prime256v1"),
    "names of encodings": ("unknown charset utf8mb4", "unknown charset latin1"),
    "names of hashes": ("sha256 is not allowed", "blake2b is not allowed"),
    "names of modules": ("No module named 'psycopg2'", "No module named 'sqlite3'"),
    "what follows a path": ("/a/b: no such table", "/a/b: no such column"),
    "what follows a URL": ("https://h/a: refused", "https://h/a: timed out"),
    "apostrophes": ("can't open /x/y, won't wait", "can't open /x/y, won't stop"),
    "what a first line announces": ("Command failed:\nno space left", "Command failed:\nno such file"),
}

READABLE = [
    ("[Errno 2] No such file or directory: '/var/in/17.csv'", "[Errno #] No such file or directory: '…'"),
    (
        "404 Client Error: Not Found for url: https://h:80/x?y=1.",
        "# Client Error: Not Found for url: https://h:#/….",
    ),
    ("no answer from https://ann:secret@h/x", "no answer from https://h/…"),
    ("no answer from ftp://ann:secret@h.", "no answer from ftp://h/…."),
    ("cannot open /srv/x.csv, line 3 (see ./log).", "cannot open …, line # (see …)."),
    ("took 2.5 s of 1 h 02 min for 17 rows", "took # of # for # rows"),
    ("receiver SG-0613BB000593 says -1.5e-03", "receiver SG-# says #"),
    ("the 3rd of [1, 2, 3] at 2024-01-31 10:00", "the # of [#] at #"),
]


@pytest.mark.parametrize("pair", SAME.values(), ids=SAME)
def test_what_differs_from_job_to_job_makes_no_other_cause(pair: tuple[str, str]) -> None:
    assert plain(pair[0]) == plain(pair[1])


@pytest.mark.parametrize("pair", DIFFERENT.values(), ids=DIFFERENT)
def test_other_words_are_another_cause(pair: tuple[str, str]) -> None:
    assert plain(pair[0]) != plain(pair[1])


@pytest.mark.parametrize(("message", "left"), READABLE)
def test_what_is_left_can_be_read(message: str, left: str) -> None:
    assert plain(message) == left


# --- whatever the message ---------------------------------------------------------------------

HEX = "0123456789abcdef"
LETTERS = "ghijklmnopqrstuvwxyz"
"""Of which no number and no hexadecimal id can be made."""
UNITS = {"h", "hr", "hrs", "m", "min", "mins", "s", "ms", "ns", "us"}
words = st.text(LETTERS, min_size=2, max_size=10).filter(lambda w: w not in UNITS)
parts = st.text(string.ascii_letters + string.digits + "_-", min_size=1, max_size=8)
numbers = st.one_of(
    st.integers(-(10**12), 10**12).map(str),
    st.decimals(allow_nan=False, allow_infinity=False, places=3).map(str),
    st.floats(0, 1e6, allow_nan=False).map(lambda f: f"{f:g} s"),
    st.integers(0, 2**64).map(hex),
    st.text(HEX, min_size=9, max_size=40),
    st.uuids().map(str),
    st.datetimes().map(str),
    st.datetimes().map(lambda d: d.isoformat()),
    st.timedeltas(min_value=timedelta()).map(str),
    st.ip_addresses(v=4).map(str),
    st.ip_addresses(v=6).map(str).filter(lambda a: any(c.isdigit() for c in a)),
)
MEDIA = ("application/", "audio/", "font/", "image/", "message/", "model/", "multipart/", "text/", "video/")
paths = st.one_of(
    st.lists(parts, min_size=1, max_size=6).map(lambda p: "/" + "/".join(p)),
    st.lists(parts, min_size=3, max_size=6)
    .map("/".join)
    .filter(lambda p: not p.replace("/", "").isdecimal()),
    st.lists(parts, min_size=1, max_size=6).map(lambda p: "./" + "/".join(p)),
    st.lists(parts, min_size=2, max_size=6).map("/".join).filter(lambda p: not p.startswith(MEDIA)).map(repr),
    st.lists(parts, min_size=2, max_size=6).map(lambda p: f"'/{' '.join(p)}'"),
)
URL_WORDS = "https://example.org/"
tails = st.lists(parts, max_size=4).map("/".join)


@st.composite
def twins(draw: st.DrawFn) -> tuple[str, str]:
    """Two messages that differ in numbers, paths and the paths of URLs alone."""
    one, other = [], []
    for _ in range(draw(st.integers(1, 6))):
        kind = draw(st.sampled_from(["word", "number", "path", "url"]))
        if kind == "word":
            both = draw(words)
            one.append(both)
            other.append(both)
        else:
            varied = {"number": numbers, "path": paths, "url": tails.map(lambda t: URL_WORDS + t)}[kind]
            quoted = draw(varied)
            one.append(quoted)
            other.append(draw(varied.filter(lambda v, q=quoted: ("'" in v) == ("'" in q))))
    return " ".join(one), " ".join(other)


@given(twins())
@example(("0 s 8d::", "0 0"))
@settings(max_examples=200 if LONG else 30)
def test_messages_that_differ_in_numbers_and_paths_alone_are_one(pair: tuple[str, str]) -> None:
    one, other = pair
    assert plain(one) == plain(other)


@given(st.lists(words, min_size=1, max_size=8), st.data())
@settings(deadline=None)
def test_messages_that_differ_in_a_word_are_two(sentence: list[str], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(sentence) - 1))
    changed = [*sentence[:at], data.draw(words.filter(lambda w: w != sentence[at])), *sentence[at + 1 :]]
    beside = data.draw(st.one_of(numbers, paths))

    assert plain(" ".join([*sentence, "and", beside])) != plain(" ".join([*changed, "and", beside]))


SCRAPS = st.sampled_from(
    [
        "/",
        "//",
        "./",
        "../",
        "~/",
        "\\",
        "\\\\",
        "'",
        '"',
        "`",
        ":",
        "::",
        "://",
        "http://h",
        ".",
        ",",
        ", ",
        " ",
        "  ",
        "-",
        "+",
        "_",
        "#",
        "##",
        "…",
        "%",
        "[",
        "]",
        "(",
        ")",
        "[Errno 2] x: ",
        " -> ",
        "0x",
        "P1D",
        "T",
        "Z",
        " s",
        " MB",
        " Jan ",
        "Mon ",
        "e5",
        "f",
        "abcdefabcd",
        "C:\\",
        "text/html",
        "a/b",
        "x.py",
        "1",
        "17",
        "2024-01-31",
        "10:11:12",
        " AM",
        "\n",
        "\t",
        "é",
        "3f9a0b1c-1111-2222-3333-444455556666",
        "\N{ARABIC-INDIC DIGIT ONE}",
        "\x00",
        "\udce9",
    ]
)


@given(st.one_of(st.text(), st.lists(st.one_of(SCRAPS, words, numbers, paths), max_size=25).map("".join)))
@settings(max_examples=500 if LONG else 60)
@example("abcdefabc1x")
@example("x" * 5000)
def test_what_is_plain_stays_as_it_is(message: str) -> None:
    once = plain(message)
    assert plain(once) == once
    assert len(once) <= PLAIN_MAX + 1
    assert once.isprintable()


@pytest.mark.parametrize(
    "piece",
    [
        "'/ ",
        "1.",
        "a/",
        ":",
        "1:",
        "1 s, ",
        "Mon 31 Jan ",
        "a-",
        "'",
        "[Errno 1] x: '",
        "0x",
        "~",
        "/",
        "\\",
        "http://",
        "abcdef",
        "1e",
        "2024-01-01 ",
        "x/y.",
        "-",
        "#, ",
        "'…', ",
    ],
)
def test_no_message_takes_long(piece: str) -> None:
    message = piece * 100_000
    begun = time.process_time()
    plain(message)
    assert time.process_time() - begun < 0.1


# --- fingerprints -----------------------------------------------------------------------------


def test_a_fingerprint_is_hexadecimal_and_bears_on_all_four() -> None:
    identity = ("read", "fetch", "OSError", "no file /a/b")
    others = [
        ("write", *identity[1:]),
        (identity[0], "store", *identity[2:]),
        (*identity[:2], "KeyError", identity[3]),
        (*identity[:3], "x"),
    ]
    marks = {Cause.of(*identity).fingerprint, *(Cause.of(*other).fingerprint for other in others)}

    assert len(marks) == 5
    assert all(len(m) == DIGITS and set(m) <= set(HEX) for m in marks)
    assert Cause.of(*identity[:3], "no file /c/d/e").fingerprint == Cause.of(*identity).fingerprint


def test_neighbours_do_not_run_into_each_other() -> None:
    assert Cause.of("ab", "c", "d", "").fingerprint != Cause.of("a", "bc", "d", "").fingerprint


def record(outcome: Outcome = Outcome.ERROR, **fields: Any) -> Record:
    return Record(1, 2, outcome, 3, 4, **fields)


def error(type_: str) -> str:
    return json.dumps({"type": type_, "message": "as told", "traceback": "…"})


@pytest.mark.parametrize(
    ("failure", "exception"),
    [
        (record(error=error("KeyError"), message="'name'"), "KeyError"),
        (record(error=error("app.Broken"), message="x", code=3), "app.Broken code 3"),
        (record(message="what it ended with cannot be told"), "error"),
        (record(error="{}"), "error"),
        (
            record(Outcome.TIMEOUT, error=error("Terminated"), message="exceeded its time limit of 2 s"),
            "timeout",
        ),
        (record(Outcome.DIED, message="its worker was killed by SIGKILL"), "died"),
        (record(Outcome.LOST), "lost"),
    ],
)
def test_the_exception_is_what_raised_or_the_word_of_the_outcome(failure: Record, exception: str) -> None:
    assert cause("read", "fetch", failure).exception == exception


def test_a_cause_tells_what_its_failures_have_in_common() -> None:
    failure_cause = cause("read", "fetch", record(error=error("OSError"), message="no file /a/b"))

    assert (failure_cause.type, failure_cause.stage, failure_cause.exception, failure_cause.message) == (
        "read",
        "fetch",
        "OSError",
        "no file …",
    )
    assert (
        failure_cause.fingerprint
        == Cause.of("read", "fetch", "OSError", "no file /somewhere/else").fingerprint
    )
    assert str(failure_cause) == "OSError: no file …"


def test_a_cause_names_its_exception_once() -> None:
    named = record(error=error("KeyError"), message="KeyError: 'shipping_address'")
    assert str(cause("read", "fetch", named)) == "KeyError: 'shipping_address'"


def test_poison_is_a_cause_of_its_own() -> None:
    died = record(Outcome.DIED, message="its worker was killed by SIGKILL")

    poisoned = cause("read", "fetch", died, poison=True)

    assert poisoned.exception == "poison"
    assert poisoned.fingerprint != cause("read", "fetch", died).fingerprint


def test_what_brought_no_message_is_told_by_its_reason() -> None:
    assert cause("read", "fetch", record(Outcome.LOST), reason="its node died").message == "its node died"
