"""Ingest: a deposit service, from manifest to report.

A batch (``ingest.batch``) is what a depositor hands in: a file, a container, or a manifest of many. It makes one job an
object (``ingest.object``), whose stages estimate, provision, download, process, record and notify. When all objects
have settled, the batch reports; when those that failed are mended, it reports again.

    spinney node spinney.apps.ingest:app
    spinney ingest submit deposit.checkm --profile maps

``settings``, ``profiles`` what the service is told · ``orders`` the parameters of its jobs · ``application`` its job
types and queues · ``batch``, ``objects`` their stages · ``manifests``, ``fetching``, ``containers``, ``identifiers``,
``metadata``, ``storage``, ``inventory``, ``report`` what these are made of, none of which knows of jobs · ``states``
what a batch is shown as.
"""

from spinney.apps.ingest import batch, cleaning, fixity, objects
from spinney.apps.ingest.access import packing
from spinney.apps.ingest.application import app

__all__ = ["app", "batch", "cleaning", "fixity", "objects", "packing"]
