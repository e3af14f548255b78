"""Access: packages of stored objects, for those who ask.

A request is a job of the type ``ingest.access`` in the queue ``access-small`` or ``access-large``, by the size that the
inventory knows; who asks has a token at once, and looks by it what became of the request.

**Who writes what, in which order.** ``request`` submits the job under a key of what is asked for, kept for ever: of
two who ask for the same at once one makes the job, and the other finds it. The stage writes ``.FENCE.part`` in the
token's folder, then ``package.json`` with the time at which the package expires, then gives the package its name. From
that time on it counts as gone, whether it is still there or not; ``cleanup`` removes it.

**What a crash leaves.** Killed before the package has its name, a part that nobody reads: the next attempt removes it,
and begins anew. Killed after, the next attempt finds the package and says so. A full disk, a cancel, a damaged file
remove the part at once.

``requests`` the verbs · ``package_job`` the job type · ``tickets`` what a request is, and what is told of it ·
``forecast`` when it will be there · ``packages`` on disk · ``bags``, ``archives`` what is in them. Importing
``package_job`` declares the job type; the others know of no application.
"""

from spinney.apps.ingest.access.archives import Format
from spinney.apps.ingest.access.requests import LARGE, SMALL, look, request
from spinney.apps.ingest.access.tickets import Status, Ticket

__all__ = ["LARGE", "SMALL", "Format", "Status", "Ticket", "look", "request"]
