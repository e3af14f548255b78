"""Ingest: a deposit service, from manifest to report.

A batch (``ingest.batch``) is what a depositor hands in: a file, a container, or a manifest of many. It makes one job an
object (``ingest.object``), whose stages estimate, provision, download, process, record and notify. When all objects
have settled, the batch reports; when those that failed are mended, it reports again.

    spinney node spinney.apps.ingest:app
    spinney ingest submit deposit.checkm --profile maps

``settings``, ``profiles`` what the service is told · ``orders`` the parameters of its jobs · ``application`` its job
types and queues · ``batch``, ``objects`` their stages · ``manifests``, ``fetching``, ``containers``, ``identifiers``,
``metadata``, ``storage``, ``inventory``, ``report`` what these are made of, none of which knows of jobs · ``access``
packages of stored objects · ``fixity`` the audit that reads them again · ``cleaning`` what is left over · ``staff`` the
verbs of those who run it, ``cli`` their commands · ``states`` what a batch is shown as.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spinney.apps.ingest.application import app

__all__ = ["app"]


def __getattr__(name: str) -> Any:
    """``app``, with all its stages. Loaded when it is asked for: one of the rooms alone does not load the others."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from spinney.apps.ingest import batch, cleaning, fixity, objects  # noqa: F401 - they give it its stages
    from spinney.apps.ingest.access import packing  # noqa: F401
    from spinney.apps.ingest.application import app

    return app
