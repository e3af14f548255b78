"""What people ask of an ingest service, each as a value that says what it is asked with, and does it.

The command line and the server share them: ``cli`` makes one and runs it on a service at hand, or sends it to
``routes``, which runs it in the name and with the rights of who asks. Both show the same answer. A payload that is
handed in (``deposits``) is a stream beside its description.
"""

from spinney.apps.ingest.verbs import archive, batches, operations
from spinney.apps.ingest.verbs.base import Verb, written

VERBS: tuple[type[Verb], ...] = (
    batches.Status,
    batches.Batches,
    batches.Objects,
    batches.Object,
    batches.Report,
    operations.Requeue,
    operations.Delete,
    operations.Sweep,
    operations.Hold,
    operations.Release,
    operations.Pause,
    operations.Unpause,
    archive.Find,
    archive.Fixity,
    archive.Profiles,
    archive.Fetch,
    archive.Token,
)

__all__ = ["VERBS", "Verb", "written"]
