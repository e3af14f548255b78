"""The steps of the demo: serve, drop, detect, open a bug, mend it, let the trees regrow."""

import csv
import gzip
import sys
import zipfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from examples.demo_tools import (
    mail_server,
    make_folder,
    read_mails,
    run_command,
    run_demo,
    running,
    show_mail,
    wait_for,
)
from examples.receivers.simulation import BEGUN, TAGS, Scene, file_name, write_files
from spinney.apps.receivers import settings
from spinney.apps.receivers.database.snapshots import snapshot
from spinney.command_line import open_control
from spinney.jobs import SETTLED, Filter, Job, State

OUT = Path("demo-receivers-out").absolute()
_LOG = OUT / "node.log"
SERIALS = tuple(f"SIM{number}RPI46977" for number in range(1, 6))
_NODE = ("node", "service:app", "--name", "demo", "--slots", "2")
_SETTINGS = """[mail]
host = "127.0.0.1"
port = {port}
security = "none"
sender = "Receivers <receivers@example.org>"
"""
# The application with a plot that fails for every receiver with hits, by a KeyError; and the same mended.
_WITH_BUG = """from spinney.apps.receivers import app, plot

__all__ = ["app"]
drawn = plot.svg


def svg(title, counts):
    totals = {}
    for tag, hour, number in counts:
        totals[tag] += number
    return drawn(title, counts)


plot.svg = svg
"""
_MENDED = _WITH_BUG.replace("totals = {}", "totals = dict.fromkeys((tag for tag, *_ in counts), 0)")


def _run() -> list[str]:
    """Run the steps, and return what is not as it should be."""
    make_folder(OUT, settings.FILE, settings.VARIABLE)
    (OUT / "incoming").mkdir()
    with ExitStack() as stack:
        port = stack.enter_context(mail_server(OUT / "mails"))
        (OUT / settings.FILE).write_text(_SETTINGS.format(port=port))
        (OUT / "service.py").write_text(_WITH_BUG)
        _write_tags()
        _spinney("init")
        _spinney("receivers", "init")
        (OUT / "spinney.folders" / "views").mkdir()
        log = stack.enter_context(_LOG.open("wb"))
        first = stack.enter_context(running(*_NODE, log=log, folder=OUT))
        inbox = ("cards", f"{OUT / 'incoming'}", "receivers.upload")
        _spinney("inbox", "add", *inbox, "--rest", "1s", "--param", "uploader=ann@example.org")
        archives = [_archive(serial, number) for number, serial in enumerate(SERIALS)]
        for archive in archives:
            archive.rename(OUT / "incoming" / archive.name)
        print(f"{len(archives)} archives are dropped into {OUT / 'incoming'}\n")
        jobs = wait_for(lambda: _settled(len(archives)), "the uploads are done", _LOG)
        _spinney("list", "--state", "failed")
        failed = [job.id for job in _jobs("receivers.detect") if job.state is State.FAILED]
        faults = [] if len(failed) == len(SERIALS) else [f"the bug should fail five jobs, not {len(failed)}"]
        if failed:
            _spinney("postmortem", str(failed[0]))
        print(
            "The bug is in service.py: a key that is not there yet. It is fixed, and a new node takes over.\n"
        )
        (OUT / "service.py").write_text(_MENDED)
        stack.enter_context(running(*_NODE, "--replace", log=log, folder=OUT))
        first.wait()
        _spinney("retry", "--state", "failed", "--type", "receivers.detect", "--yes")
        wait_for(
            lambda: all(job.state is State.COMPLETED for job in _jobs("receivers.upload")),
            "the trees regrow",
            _LOG,
        )
        _spinney("tree", str(jobs[0].id))
        _spinney("show", str(jobs[0].id))
        _spinney("receivers", "list")
        return faults + _wrong_detections() + _show_mails(len(archives))


def _write_tags() -> None:
    """Write the table of tags that the receivers can hear."""
    with (OUT / "tags.csv").open("w", newline="") as file:
        writer = csv.DictWriter(
            file, ["tag", "frequency", "gap1", "gap2", "gap3", "interval"], extrasaction="ignore"
        )
        writer.writeheader()
        writer.writerows(tag.model_dump() for tag in TAGS)


def _archive(serial: str, number: int) -> Path:
    """Write the archive of a receiver, with six good files, an empty one and a damaged one, and return its
    path."""
    lines = Scene(seconds=300, noise_per_s=2.0, seed=number).lines()
    raw = OUT / "cards" / serial
    write_files(lines, raw, [len(lines) * piece // 6 for piece in range(1, 6)], packed=True)
    archive = OUT / "cards" / f"{serial}.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for path in sorted(raw.iterdir()):
            file.write(path, f"SGdata/{path.name.replace('7F5ERPI46977', serial)}")
        file.writestr(f"SGdata/{file_name(9, BEGUN, serial)}", b"")
        damaged = gzip.compress(b"p,1,1,4,-60,-90\n" * 1000)[:-20]
        file.writestr(f"SGdata/{file_name(9, BEGUN + 1, serial)}.gz", damaged)
    return archive


def _jobs(type_: str) -> Sequence[Job]:
    """Return the jobs of a type in the demo's store."""
    with open_control(None) as control:
        return control.queries.jobs(Filter(type=type_))


def _settled(number: int) -> Sequence[Job]:
    """Return the uploads, when there are so many and none is open."""
    uploads = _jobs("receivers.upload")
    return uploads if [job.state in SETTLED for job in uploads] == [True] * number else ()


def _wrong_detections() -> list[str]:
    """Compare the hits of each receiver with the bursts that were simulated, and return what differs by more
    than a tenth."""
    faults = []
    for number, serial in enumerate(SERIALS):
        scene = Scene(seconds=300, noise_per_s=2.0, seed=number)
        scene.lines()
        with snapshot(settings.load().database(f"SG-{serial}")) as db:
            (hits,) = db.execute("select count(*) from hits").fetchone()
        if not 0.9 * len(scene.truth) <= hits <= 1.1 * len(scene.truth):
            faults.append(f"SG-{serial} has {hits} hits, where {len(scene.truth)} bursts are true")
    return faults


def _show_mails(number: int) -> list[str]:
    """Wait for a mail to the uploader of each archive, print the newest, and return what is wrong with it."""
    mails = wait_for(lambda: read_mails(OUT / "mails")[number - 1 :], "the mails come", _LOG)
    text = show_mail(mails[-1])
    return [] if "Plot of" in text else ["the mail names no plot"]


def _spinney(*words: str) -> None:
    """Run a command of Spinney in the demo's folder."""
    run_command(*words, folder=OUT)
    print(flush=True)


if __name__ == "__main__":
    sys.exit(run_demo(_run))
