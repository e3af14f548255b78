"""The inventory as one class, put together from its operations; callers see nothing of the parts."""

from spinney.apps.ingest.inventory.fixity_checks import FixityChecks
from spinney.apps.ingest.inventory.searches import Searches
from spinney.apps.ingest.inventory.versions import Versions


class Inventory(Versions, Searches, FixityChecks):
    """The content of the archive.

    All methods raise TablesAway while the database does not answer, and TablesUnusable when it cannot be used
    as it is, for example before ``ingest init``; those with text parameters, NotAdmitted for text that cannot
    be stored. Each write is one transaction, and durable on return.
    """
