"""The stages of uploads, imports and of what attached receivers bring: take apart, check, sort, tell the uploader.

The first stage differs: ``unpack`` reads the job's own folder, ``copy`` a path of this host, and ``fetch`` what a
command has fetched. All leave the files in ``made/raw`` and list the refused archives in ``made/aside.jsonl``. The
other stages are the same functions for all three types. ``report`` is marked ``again``: it runs once more when the tree
has regrown."""

import hashlib
import shutil
import subprocess
from pathlib import Path
from typing import Annotated

import orjson
from pydantic import Field

from spinney import Fail, Job, Warn
from spinney.apps.receivers import arrivals, settings
from spinney.apps.receivers.application import (
    ARRIVALS,
    BAD_LIST,
    MADE,
    Receiver,
    app,
    detections,
    imports,
    outbox,
    room_awaited,
    syncs,
    uploads,
)
from spinney.apps.receivers.arrivals import BadFile
from spinney.containers import Limits
from spinney.errors import counted
from spinney.reports.addresses import mailbox

ASIDE = "aside.jsonl"
"""What ``BAD_LIST`` is made of, in the folder ``MADE``: a JSON list of path and reason on each line, in the order in
which files were refused."""
ARRIVED = "arrived"
"""The folder in the job's folder for what was copied or fetched from elsewhere."""
_FETCH_S = 1800  # the time limit of a fetch, in seconds
Uploader = Annotated[str, Field(pattern=r"^([^@]+@[^@]+)?$", max_length=300)]
"""The address to which a mail goes; an empty text: to none."""


@uploads.stage(max_attempts=3)
@room_awaited()
def unpack(job: Job, uploader: Uploader = "") -> int:
    """Take apart what was uploaded into the job's folder. ``uploader``: the address to which a mail goes."""
    return _take_apart(job, job.folder)


@imports.stage(max_attempts=3)
@room_awaited()
def copy(job: Job, source: Path, uploader: Uploader = "") -> int:
    """Copy a file or folder of this host, and take it apart. ``uploader``: the address to which a mail goes."""
    if not source.exists():
        raise Fail(f"there is no file or folder {source}; upload it again", retryable=False)
    arrived = job.folder / ARRIVED
    shutil.rmtree(arrived, ignore_errors=True)
    arrivals.copy_files(source, arrived)
    return _take_apart(job, arrived)


@syncs.stage(max_attempts=3, timeout=_FETCH_S)
@room_awaited()
def fetch(job: Job, receiver: Receiver) -> int:
    """Let the command of the settings fetch new files of an attached receiver."""
    sync = settings.load().sync
    if sync is None:
        raise Fail("receivers.toml has no [sync]; write the command that fetches", retryable=False)
    arrived = job.folder / ARRIVED
    arrived.mkdir(exist_ok=True)
    words = [word.replace("{receiver}", receiver).replace("{folder}", str(arrived)) for word in sync.command]
    # An argument list and no shell; a receiver's name is neither a path nor an option (``Receiver``). Its output is the
    # stage's. The folder is kept between attempts, so that rsync goes on where it was interrupted.
    done = subprocess.run(words, stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise Fail(
            f"{words[0]} exited with code {done.returncode}; see 'spinney logs {job.id}'",
            code=done.returncode,
        )
    return _take_apart(job, arrived)


def _take_apart(job: Job, source: Path) -> int:
    """Take apart what is below ``source``, and return how many archives were refused. What an earlier attempt
    has made is removed first; ``made`` itself is left out, as it may be below the source."""
    made = job.folder / MADE
    shutil.rmtree(made, ignore_errors=True)
    bad = arrivals.take_apart(
        source,
        made / "raw",
        Limits(
            total_bytes=settings.load().unpacked_bytes,
            total_advice="send it in parts, or have unpacked_bytes in receivers.toml raised",
        ),
        between=lambda size: job.check_cancelled(),
        leave_out=made,
    )
    (made / ASIDE).write_bytes(b"".join(orjson.dumps(list(each)) + b"\n" for each in bad))
    return len(bad)


@room_awaited()
def check_files(job: Job) -> int:
    """Put files aside that cannot be used, and list them, with the archives that were refused, as a product of the
    job; the value: how many they are. Lists of jobs show it as a warning, because an upload of which nothing can be
    used completes, too."""
    made = job.folder / MADE
    arrivals.put_aside(made / "raw", made / "aside", made / ASIDE)
    bad = sorted({BadFile(*orjson.loads(line)) for line in (made / ASIDE).read_bytes().splitlines()})
    if bad:
        text = "".join(f"{each.path}\t{each.reason}\n" for each in bad)
        (job.folder / BAD_LIST).write_text(text, encoding="utf-8")
        job.products.add(BAD_LIST, "Files that are no good")
        raise Warn(f"{counted(len(bad), 'file')} put aside: {bad[0].path}: {bad[0].reason}", value=len(bad))
    return 0


@room_awaited()
def sort_files(job: Job) -> dict[str, int]:
    """Store the files by receiver, durably, and spawn a job for each receiver; the value: how many files each
    has."""
    config = settings.load()
    by_receiver = arrivals.store(job.folder / MADE / "raw", config.files)
    lists = job.folder / MADE / "files"
    lists.mkdir(exist_ok=True)
    # The list of files is a file and no parameter: an upload may have more than a job's parameters can hold.
    for receiver, paths in by_receiver.items():
        (lists / f"{receiver}.json").write_bytes(orjson.dumps(paths))
        job.spawn(detections, receiver=receiver)
    return {receiver: len(paths) for receiver, paths in by_receiver.items()}


def report(job: Job) -> str:
    """Report what became of the upload, on the page of the job and by mail to the uploader."""
    bad = job.results.get("check_files", 0)
    children = list(job.children())
    failed = [child.params["receiver"] for child in children if child.state != "completed"]
    text = f"{counted(len(children), 'receiver')}, {counted(bad, 'file')} put aside"
    text += f", failed: {', '.join(failed)}" if failed else ""
    if not children and not bad:
        text = "no files were in it"
    # The page of the job shows the summary, also where nobody gets a mail.
    job.summary(text)
    uploader, mail = _uploader(job), settings.load().mail
    if uploader and mail is not None:
        lines = [
            f"- {product.title}: {product.url or f'job {product.job}, {product.path}'}"
            for product in job.products
        ]
        state = "failed in part" if failed else "is done"
        state += f", {counted(bad, 'file')} put aside" if bad else ""
        # Not the time of the report: the same outcome must give the same key.
        ends = orjson.dumps([bad, *([child.id, child.state] for child in children)])
        outcome = hashlib.sha256(ends).hexdigest()
        job.submit(
            outbox.mail.options(key=f"receivers.report:{job.id}:{_number(job, outcome)}", forever=True),
            sender=mail.sender,
            to=[uploader],
            subject=f"Your upload {job.id} {state}",
            text=f"{text}.\n\n"
            + "\n".join(lines)
            + f"\n\n{mail.link(f'/apps/receivers/uploads/{job.id}')}\n",
        )
    return text


def _number(job: Job, outcome: str) -> int:
    """Return the number of the report of an outcome: that of the last one while nothing has changed, so that an attempt
    that is repeated sends no second mail; else the next one."""
    number, last = job.data.get("reported", (0, ""))
    if outcome != last:
        number += 1
        job.data["reported"] = [number, outcome]
    return int(number)


def _uploader(job: Job) -> str:
    """Return the address of the uploader: the parameter, or the user who uploaded to an inbox, where an
    address is the user's name. An empty text: there is none to which a mail can go."""
    address = str(job.params.get("uploader") or (job.data.get("inbox") or {}).get("owner", ""))
    try:
        mailbox(address)
    except ValueError:
        return ""
    return address


# The last stages of all types that bring files. ``report`` runs again when a subjob was repaired.
for _pipeline in ARRIVALS:
    _pipeline.stage(max_attempts=3)(check_files)
    _pipeline.stage(max_attempts=3)(sort_files)
    _pipeline.stage(max_attempts=3, again=True)(report)

# There is a poll only where the settings ask for one, when this module is loaded.
_sync = settings.load().sync
if _sync is not None:
    app.poll(syncs, _sync.receivers, key="receiver", every=_sync.every, name="receivers.sync")
