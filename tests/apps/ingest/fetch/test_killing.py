"""A process killed in the middle of a download, and files larger than what a process may hold."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from apps.ingest.web import Repeated, Web, stuck
from long_tests import LONG
from spinney.apps.ingest.fetch import RemoteFile, Rules, aside_of, fetch_all

MEGABYTE = 1 << 20
SIZE_BYTES = (5 << 30) if LONG else 64 * MEGABYTE
GROWTH_MAX_BYTES = 24 * MEGABYTE

CHILD = """
import json, re, sys
from pathlib import Path
from spinney.apps.ingest.fetch import Rules, RemoteFile, fetch_all

def peak_bytes():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024

request = json.loads(sys.argv[1])
rules = Rules(hosts=frozenset([request["host"]]), mark_bytes=request["mark_bytes"])
files = [RemoteFile(url=u, name=str(n)) for n, u in enumerate(request["urls"])]
before, came = peak_bytes(), 0

def progress(more):
    global came
    came += more
    print(came, flush=True)

[*fetched] = fetch_all(files, Path(request["folder"]), rules, at_once=2, progress=progress)
print(json.dumps({"grown": peak_bytes() - before, "sums": [f.sums["sha256"] for f in fetched]}), flush=True)
"""


def child(web: Web, folder: Path, urls: list[str], mark_bytes: int) -> "subprocess.Popen[str]":
    request: dict[str, Any] = {
        "host": web.host,
        "urls": urls,
        "folder": str(folder),
        "mark_bytes": mark_bytes,
    }
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, json.dumps(request)], stdout=subprocess.PIPE, text=True
    )


def test_after_kill_9_a_new_process_asks_for_the_rest_only(web: Web, folder: Path) -> None:
    # Given a process that has four megabytes of six, marked every megabyte, and one file whole
    body = Repeated(6 * MEGABYTE)
    urls = [web.put("/large", body, stuck(4 * MEGABYTE)), web.put("/small", b"hello")]
    process = child(web, folder, urls, MEGABYTE)
    assert process.stdout is not None
    for line in process.stdout:
        if int(line) >= 4 * MEGABYTE + 5:
            break

    # When it is killed, and another begins
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert [p.name for p in folder.iterdir()] == ["1"]
    rules = Rules(hosts=frozenset({web.host}))
    fetched = fetch_all([RemoteFile(url=u, name=str(n)) for n, u in enumerate(urls)], folder, rules)

    # Then what was marked does not come again, nor what was whole
    [first, second] = web.ranges("/large")
    assert first is None
    start = int((second or "").removeprefix("bytes=").removesuffix("-"))
    assert 3 * MEGABYTE <= start <= 4 * MEGABYTE
    assert web.request_count("/small") == 1
    assert web.sent_bytes == 4 * MEGABYTE + 5 + len(body) - start
    assert fetched[0].sums["sha256"] == body.digest()
    assert sorted(p.name for p in aside_of(folder).iterdir()) == ["fetched.jsonl", "lock"]


def test_bytes_behind_the_mark_are_not_taken_over(web: Web, folder: Path) -> None:
    # A crash of the machine may leave a part longer than what was synced, with anything in it.
    body = Repeated(6 * MEGABYTE)
    url = web.put("/large", body, stuck(4 * MEGABYTE))
    process = child(web, folder, [url], MEGABYTE)
    assert process.stdout is not None
    for line in process.stdout:
        if int(line) >= 4 * MEGABYTE:
            break
    process.send_signal(signal.SIGKILL)
    process.communicate()
    [part] = aside_of(folder).glob("*.part")
    with part.open("ab") as file:
        file.write(bytes(4 * MEGABYTE))

    [fetched] = fetch_all([RemoteFile(url=url, name="0")], folder, Rules(hosts=frozenset({web.host})))

    assert (folder / "0").read_bytes() == b"".join(body.pieces(0))
    assert fetched.sums["sha256"] == body.digest()
    assert web.ranges("/large")[1] is not None


@pytest.mark.timeout(900 if LONG else 60)
def test_memory_is_bounded_whatever_the_size_of_a_file(web: Web, folder: Path) -> None:
    body = Repeated(SIZE_BYTES)
    process = child(web, folder, [web.put("/large", body)], 16 * MEGABYTE)

    output, _ = process.communicate()

    end = json.loads(output.splitlines()[-1])
    assert (folder / "0").stat().st_size == SIZE_BYTES
    assert end["sums"] == [body.digest()]
    assert end["grown"] < GROWTH_MAX_BYTES
