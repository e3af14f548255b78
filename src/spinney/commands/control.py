"""``Control``: the operations of one caller on one store."""

from spinney.commands import LocalPerformer
from spinney.service.queries import Queries
from spinney.service.submitter import Submitter


class Control(Submitter, LocalPerformer):
    """Does commands, submits jobs and reads, in the name and with the rights of one caller. ``part`` returns the
    service of a feature: ``control.part(Bulk)``.

    Every operation is durable when it returns, and wakes the nodes that should see it. Each raises Forbidden where the
    caller's rights do not allow it, and NoSuchJob for a job that is not visible to the caller.
    """

    @property
    def queries(self) -> Queries:
        """Everything that is read, within the caller's rights, and with secrets redacted."""
        return self.part(Queries)
