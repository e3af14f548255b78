"""Receivers: an archive of 2 GB, an upload of 10,000 files, and 200 archives dropped into a folder at once."""

import json
import os
import sqlite3
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

from benchmarks.place import PATIENCE_S, until
from examples.receivers.simulation import BEGUN, TAGS, Scene, file_name

SERIALS = ("7F5ERPI46977", "0613BB000593", "9ABCRPI12345", "1614BBBK1911", "5113BBBK2971")
HUGE_FILES, HUGE_SECONDS, NOISE_PER_S = 20, 4_500.0, 300.0
FILES, ARCHIVES = 10_000, 200
_STEP_S = 10_000
"""How much later each file of the huge archive is. The text of its times is changed in one digit, because to make
50 million lines one by one would take longer than what is measured."""


def huge_archive() -> Mapping[str, float]:
    """One archive of 20 files of 100 MB each, of one receiver, from submission to its report."""
    with _service() as place:
        text = "".join(
            f"{line}\n" for line in Scene(seconds=HUGE_SECONDS, noise_per_s=NOISE_PER_S).lines()
        ).encode()
        prefix = int(BEGUN) // _STEP_S
        with zipfile.ZipFile(place / "huge.zip", "w") as archive:
            for number in range(HUGE_FILES):
                later = text.replace(b",%d" % prefix, b",%d" % (prefix + number))
                archive.writestr(file_name(3, BEGUN + number * _STEP_S), later)
        size = (place / "huge.zip").stat().st_size
        figures = _upload(place, "huge.zip")
    return {"archive, GB": size / 1e9, "pulses": text.count(b"\n") * HUGE_FILES, **figures}


def many_files() -> Mapping[str, float]:
    """One upload of 10,000 small files of five receivers, which share 60 hours."""
    with _service() as place:
        with zipfile.ZipFile(place / "many.zip", "w") as archive:
            for name, text in _small_files(SERIALS, FILES // len(SERIALS)):
                archive.writestr(name, text)
        return _upload(place, "many.zip")


def many_archives() -> Mapping[str, float]:
    """200 archives of ten files, each of another receiver, which appear in the folder of an inbox at once."""
    with _service() as place:
        (place / "dropped").mkdir()
        _spinney(
            place,
            "inbox",
            "add",
            "cards",
            str(place / "dropped"),
            "receivers.upload",
            "--param",
            "uploader=ann@example.org",
        )
        (place / "made").mkdir()
        for number in range(ARCHIVES):
            with zipfile.ZipFile(place / "made" / f"card{number}.zip", "w") as archive:
                for name, text in _small_files([f"{number:04d}BBBK1911"], 10):
                    archive.writestr(name, text)
        with _node(place):
            began_s = time.monotonic()
            for path in sorted((place / "made").iterdir()):
                path.rename(place / "dropped" / path.name)
            until(lambda: _completed(place) == ARCHIVES, "all uploads")
            took_s = time.monotonic() - began_s
    return {"s from the drop to the last report": took_s}


def _small_files(serials: Sequence[str], each: int) -> Iterator[tuple[str, bytes]]:
    lines = Scene(seconds=108.0, noise_per_s=1.0, missed=0.0).lines()
    text = "".join(f"{line}\n" for line in lines).encode()
    begun = b",%d" % (int(BEGUN) // 1000)
    for index in range(each):
        shifted = text.replace(begun, b",%d" % (int(BEGUN) // 1000 + index))
        for serial in serials:
            yield file_name(3, BEGUN + index * 1000, serial), shifted


@contextmanager
def _service() -> Iterator[Path]:
    with TemporaryDirectory(prefix="spinney-bench-") as folder:
        place = Path(folder)
        names = ("tag", "frequency", "gap1", "gap2", "gap3", "interval")
        rows = [",".join(names)] + [",".join(str(getattr(tag, name)) for name in names) for tag in TAGS]
        (place / "tags.csv").write_text("\n".join([*rows, ""]))
        _spinney(place, "init")
        _spinney(place, "receivers", "init")
        yield place


@contextmanager
def _node(place: Path) -> Iterator[psutil.Process]:
    """A node with two slots; yields its guard."""
    command = [sys.executable, "-m", "spinney", "node", "spinney.apps.receivers:app", "--name", "bench"]
    with (place / "node.log").open("wb") as log:
        guard = subprocess.Popen([*command, "--slots", "2"], cwd=place, stdout=log, stderr=log)
    try:
        until(lambda: "bench" in _spinney(place, "nodes"), "the node to come up", guard)
        yield psutil.Process(guard.pid)
    finally:
        guard.terminate()
        guard.wait(PATIENCE_S)


def _upload(place: Path, archive: str) -> Mapping[str, float]:
    """Upload an archive to a node of its own, and wait for the report."""
    with _node(place) as node:
        began_s = time.monotonic()
        job = _spinney(place, "receivers", "upload", archive, "--project", "gulls").strip()
        most = _watch(place, node, job)
        took_s = time.monotonic() - began_s
    return {
        "s from submission to report": took_s,
        "most memory that one process had for itself, MB": most / 1e6,
    }


def _watch(place: Path, node: psutil.Process, job: str) -> int:
    """Return the most bytes that a process of the node had for itself at any moment, until the job has completed."""
    most = 0
    waiting = subprocess.Popen(
        [sys.executable, "-m", "spinney", "wait", job], cwd=place, stdout=subprocess.DEVNULL
    )
    while waiting.poll() is None:
        for process in node.children(recursive=True):
            try:
                most = max(most, process.memory_full_info().uss)
            except psutil.NoSuchProcess:
                continue
        time.sleep(0.2)
    state = json.loads(_spinney(place, "show", job, "--json"))["job"]["state"]
    if state != "completed":
        raise RuntimeError(f"the upload is {state}: no figure; {_spinney(place, 'tree', job)}")
    return most


def _completed(place: Path) -> int:
    """Return how many uploads have completed, asked of the file: a command each time would take too much of a core."""
    with closing(sqlite3.connect(f"file:{place}/spinney.db?mode=ro", uri=True)) as db:
        ((count,),) = db.execute(
            "select count(*) from jobs where type = 'receivers.upload' and state = 'completed'"
        )
    return int(count)


def _spinney(place: Path, *words: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SPINNEY_")}
    done = subprocess.run(
        [sys.executable, "-m", "spinney", *words],
        cwd=place,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout
