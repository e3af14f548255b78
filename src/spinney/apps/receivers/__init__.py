"""Receivers makes detections of tags from archives of raw files of radio receivers.

An upload (``receivers.upload``) is taken apart, its files are checked and sorted by receiver, and each receiver gets a
subjob (``receivers.detect``) that detects, exports and plots. ``receivers.import`` does the same with files of this
host, ``receivers.sync`` fetches from attached receivers, and ``receivers.rerun`` detects sessions afresh.

    spinney receivers init
    spinney receivers upload card.zip
    spinney node spinney.apps.receivers:app

``application``  job types and queues
``uploads``      the stages of uploads, imports and fetches: take apart, check, sort, report
``detections``   the stages of one receiver: detect, export, plot
``arrivals``     files that arrive, stored by receiver
``detection``    how pulses become detections, on NumPy arrays
``database``     the SQLite file of one receiver
``plot``         hits over time as a picture
``failures``     failed jobs by cause, and the mail to staff about them
``history``      jobs of an older job server, kept as history
``own_jobs``     jobs of this service in the form of that server
``timeline``     what the databases of receivers have
``settings``     ``receivers.toml``
``cli``          the commands ``spinney receivers``
``pages``        the pages of a server

**The way of a file.** The stages of an upload unpack what came into the job's folder, put aside what is no raw file,
and copy the others to the folders of their receivers, where they are kept. Then one subjob for each receiver
detects in its new files and writes that receiver's database, under a lock, in one transaction. The report to the
uploader comes last.

**What a crash leaves.** Unpacked files without a report, or stored files that no database has; the stage that was at
work runs again and does the rest. No stage depends on how far an earlier attempt came. When a subjob fails and its
cause is mended, the upload regrows and reports again. Files may come in any order and more than once: the detections
are the same.

Specified by ``tests/apps/receivers``.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spinney.apps.receivers.application import app

__all__ = ["app"]


def __getattr__(name: str) -> Any:
    """Load ``app`` with all its stages on first use, so that importing one package does not import the others."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from spinney.apps.receivers import detections, failures, uploads  # noqa: F401 - these give the application its stages
    from spinney.apps.receivers.application import app

    return app
