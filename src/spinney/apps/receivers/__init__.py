"""Receivers: archives of raw files from radio receivers become detections of tags.

An upload (``receivers.upload``) is taken apart, its files are checked and sorted by receiver, and each receiver gets a
subjob (``receivers.detect``) that detects, exports and plots. ``receivers.import`` does the same with files of this
host, ``receivers.sync`` fetches from attached receivers, and ``receivers.rerun`` detects sessions afresh.

    spinney receivers init
    spinney receivers upload card.zip
    spinney node spinney.apps.receivers:app

- ``application``: job types and queues. ``uploads``, ``detections``: their stages. ``settings``.
- ``detection``: the rules, on NumPy arrays. ``database``: the SQLite file of one receiver.
- ``arrivals``: files that arrive, taken apart, checked and stored by receiver. ``plot``: hits as a picture.
- ``failures``: failed jobs grouped by cause, for staff. ``timeline``, ``pages``: the pages of a server.
- ``cli``: the commands."""

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
