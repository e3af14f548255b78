"""The stages of one receiver's jobs: detect, export, plot.

Only ``detect`` and ``rerun`` write the database, and hold the receiver's lock while they do. Exports and plots are made
from a snapshot into the job's own folder, so they may run beside a writer of the same receiver."""

import csv
import sqlite3
import time
from contextlib import AbstractContextManager
from pathlib import Path

import orjson

from spinney import Fail, Job
from spinney.apps.receivers import plot as pictures
from spinney.apps.receivers import settings
from spinney.apps.receivers.application import MADE, Receiver, detections, exports, reruns, room_awaited
from spinney.apps.receivers.database.receiver_database import Detected, ReceiverDatabase
from spinney.apps.receivers.database.snapshots import snapshot
from spinney.apps.receivers.detection.tags import read_tags
from spinney.errors import counted

# All hits with their tags and ports, by time. The primary keys of both tables begin with session and run.
_HITS = (
    "select runs.tag, runs.port, hits.session, hits.run, hits.time, hits.offset, hits.signal, hits.noise, hits.slop "
    "from hits join runs using (session, run) order by hits.time, runs.tag, runs.port"
)
# The number of hits of each tag in each hour since 1970, grouped here so that a plot needs no list of all hits.
_HOURLY = (
    f"select runs.tag, cast(hits.time / {pictures.HOUR_S} as integer), count(*) "  # noqa: S608 - a number
    "from hits join runs using (session, run) group by 1, 2"
)
_COLUMNS = ("tag", "port", "session", "run", "time", "offset", "signal", "noise", "slop")
LOCK = "receiver:{receiver}"
"""Held while a receiver's database is written, and not while it is read."""


def _database(job: Job, receiver: str) -> ReceiverDatabase:
    """Return the database of a receiver for a job, with the table of tags as it is now. Raises UsageError where
    the settings or the table are wrong."""
    config = settings.load()
    path, tags = config.database(receiver), read_tags(config.tags)
    return ReceiverDatabase(path, tags, job=job.id, between=job.check_cancelled)


def _snapshot(receiver: str) -> AbstractContextManager[sqlite3.Connection]:
    """Return a snapshot of a receiver's database, which needs neither the table of tags nor the lock."""
    return snapshot(settings.load().database(receiver))


@detections.stage(locks=[LOCK], max_attempts=3)
@room_awaited()
def detect(job: Job, receiver: Receiver) -> dict[str, object]:
    """Detect in the new files of a receiver, which its parent has stored and listed."""
    parent = job.parent
    assert parent is not None, "only uploads and syncs spawn it"
    paths = listed_files(parent.folder, receiver)
    return _reported(job, _database(job, receiver).detect(paths, now_s=time.time()))


def listed_files(folder: Path, receiver: str) -> list[Path]:
    """Return the new raw files of a receiver, as an upload has listed them in its folder.

    Submitters may put files into the folder of their own upload, a list among them, and a listed file is read
    with the rights of the service. So this raises Fail, without a further attempt, where the list names a
    file that is not below the folder of the receiver's raw files. Raises OSError where the upload has no
    list."""
    own = settings.load().files(receiver).resolve()
    listed = orjson.loads((folder / MADE / "files" / f"{receiver}.json").read_bytes())
    paths = [Path(path).resolve() for path in listed]
    if not all(path.is_relative_to(own) for path in paths):
        raise Fail(f"the list of {receiver} names files that are not its own", retryable=False)
    return paths


@reruns.stage(locks=[LOCK], max_attempts=3)
@room_awaited()
def rerun(job: Job, receiver: Receiver, first: int, last: int) -> dict[str, object]:
    """Detect the boot sessions from ``first`` to ``last`` of a receiver afresh."""
    with _snapshot(receiver) as db:
        rows = db.execute(
            "select session from sessions where session between ? and ? order by 1", (first, last)
        )
        sessions = [session for (session,) in rows]
    if not sessions:
        raise Fail(f"{receiver} has no boot session from {first} to {last}", retryable=False)
    return _reported(job, _database(job, receiver).rerun(sessions, now_s=time.time()))


def _reported(job: Job, detected: Detected) -> dict[str, object]:
    """Set the summary of a job to what was done, and return it as the result of the stage."""
    job.summary(
        f"{job.params['receiver']}: {counted(detected.files, 'new file')}, {detected.repeated} known, "
        f"{counted(detected.pulses, 'pulse')}, {detected.hits:+,} {'hit' if abs(detected.hits) == 1 else 'hits'}"
    )
    return {**detected._asdict(), "afresh": list(detected.afresh)}


@room_awaited()
def export(job: Job, receiver: Receiver) -> int:
    """Write all hits of the receiver as CSV, by time; the value: how many they are."""
    name, number = f"{receiver}-hits.csv", 0
    with (
        _snapshot(receiver) as db,
        (job.folder / name).open("w", newline="", encoding="utf-8") as file,
    ):
        writer = csv.writer(file)
        writer.writerow(_COLUMNS)
        for row in db.execute(_HITS):
            writer.writerow(row)
            number += 1
    job.products.add(name, f"Hits of {receiver}")
    return number


@room_awaited()
def plot(job: Job, receiver: Receiver) -> int:
    """Draw the hits of the receiver over time; the value: how many tags were heard."""
    with _snapshot(receiver) as db:
        counts = db.execute(_HOURLY).fetchall()
    name = f"{receiver}.svg"
    (job.folder / name).write_text(pictures.svg(receiver, counts), encoding="utf-8")
    job.products.add(name, f"Plot of {receiver}")
    return len({tag for tag, *_ in counts})


# Exports and plots follow each detection, and can be made alone after a change of the code.
for _pipeline in (detections, reruns, exports):
    _pipeline.stage(max_attempts=3)(export)
    _pipeline.stage(max_attempts=3)(plot)
