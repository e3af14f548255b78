"""Access requests of Merritt's queue: packages of stored objects, which ``spinney ingest`` makes.

The layout's own fields of a request (``token``, ``delivery-node``, ``url`` …) name no object. Requests that are ours
have ``ark`` besides, and may have ``version`` and ``format``; all others are left to Merritt's services.

The same request made again here returns the same package, so that nothing else has to be kept: a request in Processing
that nobody holds, after a crash or when an operator has requeued it, is simply made again."""

import logging
import re
from typing import TYPE_CHECKING, Any, Final

from kazoo.client import KazooClient

from spinney.apps.ingest.access import requests
from spinney.apps.ingest.access.tickets import Status, Ticket
from spinney.apps.ingest.config import settings as ingest_settings
from spinney.apps.ingest.merritt.marks import release_own_lock
from spinney.apps.ingest.merritt.passed_over import PassedOver
from spinney.bridges.merritt import (
    AccessRequest,
    AccessState,
    MerrittError,
    MerrittNodeTooLarge,
    MerrittQueue,
)
from spinney.bridges.merritt.access import AccessQueue
from spinney.bridges.merritt.locks import QueueName
from spinney.containers.pack import Format
from spinney.errors import Refused, UnknownType, UsageError
from spinney.files.paths import NotAdmitted, shown
from spinney.jobs import SETTLED, Filter

if TYPE_CHECKING:
    from spinney.operations import Control

log = logging.getLogger("spinney.bridges.merritt")

QUEUES: Final[dict[AccessQueue, QueueName]] = {"small": "accessSmall", "large": "accessLarge"}
"""The queues of requests, each with the lock by which operators stop it."""
OPEN_MAX: Final = 100
"""The most requests that a consumer holds at once."""
_NUMBER = re.compile("[0-9]{1,9}")
_CODES = {Status.READY: 200, Status.FAILED: 500}
"""The ``status`` of a request, as HTTP has it; 202 while its package is being made."""


class AccessWork:
    """Takes requests, and answers them when their packages are there.

    Its state is only in memory: after a crash the same requests are taken again, and lead to the same
    packages. Used by the consumer's one thread.
    """

    def __init__(self, client: KazooClient, control: "Control", owner: str) -> None:
        self._client, self._control, self._owner = client, control, owner
        self._queue = MerrittQueue(client, owner)
        self._passes_over = PassedOver(owner)
        self._open: dict[str, tuple[AccessRequest, Ticket]] = {}
        """The requests whose locks this process holds, by their paths."""

    def take(self) -> None:
        """Lock requests that nobody holds, and have their packages made.

        Nothing is taken from a queue that operators have locked, nor beyond ``OPEN_MAX`` requests at once. A
        request that cannot be fulfilled becomes Failed with the reason; one for which no node has registered
        the job type yet is unlocked, and taken again later. Raises errors of the connection and of the store.
        """
        for name, lock in QUEUES.items():
            if self._queue.locks.queue_is_locked(lock):
                continue
            for request in self._queue.access.list(name):
                is_open = request.state in (AccessState.PENDING, AccessState.PROCESSING)
                if is_open and "ark" in request.token and request.path not in self._open:
                    if len(self._open) >= OPEN_MAX:
                        return
                    self._take(request)

    def _take(self, request: AccessRequest) -> None:
        """Lock a request, have its package made, and write the ticket into it; remember it until it is
        answered."""
        access = self._queue.access
        try:
            release_own_lock(self._client, request.lock_path, self._owner)
            request = access.lock(request)
        except MerrittError:
            return  # another consumer holds it, or it has changed meanwhile
        try:
            if request.state is AccessState.PENDING:
                request = access.set_status(request, AccessState.PROCESSING)
            ticket = self._made(request)
            request = access.set_token(request, _fields(request, ticket))
        except UnknownType as error:
            log.info("access request %s waits: %s", request.id, error)
            access.unlock(request)
        except (Refused, NotAdmitted, UsageError, MerrittNodeTooLarge) as error:
            access.set_status(request, AccessState.FAILED, message=str(error), unlock=True)
        except MerrittError as error:
            log.warning("access request %s is not ours any more: %s", request.id, error)
        except Exception as error:  # one odd request must not stop the others
            if not self._passes_over(f"access request {request.id}", error):
                raise
            access.unlock(request)
        else:
            self._open[request.path] = request, ticket

    def _made(self, request: AccessRequest) -> Ticket:
        """Request the package here. Raises UsageError for an invalid field, and what ``requests.request`` raises."""
        format_ = str(request.token.get("format") or Format.ZIP)
        if format_ not in list(Format):
            raise UsageError(f"the format {format_!r} does not exist; use one of {', '.join(Format)}")
        return requests.request(
            self._control,
            ingest_settings.load(),
            str(request.token["ark"]),
            version=_version(request.token.get("version")),
            format_=Format(format_),
        )

    def answer(self) -> None:
        """Write the URLs of the packages that are ready, and the reasons of those that failed.

        Requests whose jobs have not settled wait for the next call. One query reads the states of all jobs.
        """
        ids = tuple(ticket.job for _, ticket in self._open.values())
        if not ids:
            return
        jobs = self._control.store.jobs(Filter(ids=ids), limit=len(ids))
        unsettled = {job.id for job in jobs if job.state not in SETTLED}
        for path, (request, ticket) in list(self._open.items()):
            if ticket.job in unsettled:
                continue
            del self._open[path]
            try:
                self._answer(request, ticket)
            except MerrittError as error:
                log.warning("access request %s is not ours any more: %s", request.id, error)

    def _answer(self, request: AccessRequest, ticket: Ticket) -> None:
        """Complete or fail a request whose job has settled, and unlock it. A package that has expired since
        fails it, too."""
        access = self._queue.access
        try:
            ticket = requests.look(self._control, ingest_settings.load(), ticket.token)
        except Refused as error:  # its job was deleted here
            access.set_status(request, AccessState.FAILED, message=str(error), unlock=True)
            return
        request = access.set_token(request, _fields(request, ticket))
        is_ready = ticket.status is Status.READY
        access.set_status(
            request,
            AccessState.COMPLETED if is_ready else AccessState.FAILED,
            message=ticket.message
            or ("" if is_ready else f"the package is {ticket.status}; requeue the request"),
            unlock=True,
        )


def _version(value: Any) -> int | None:
    """Return the version of a request, which may be text; None: the newest. Raises UsageError unless it is a whole
    number."""
    if value in (None, ""):
        return None
    text = f"{value:.0f}" if isinstance(value, float) and value.is_integer() else str(value)
    if not _NUMBER.fullmatch(text):
        raise UsageError(
            f"the version '{shown(text[:40])}' is not a whole number; give one, or leave it out for the newest version"
        )
    return int(text)


def _fields(request: AccessRequest, ticket: Ticket) -> dict[str, Any]:
    """Return the fields of a request as this ticket answers them; those that are not ours stay."""
    fields = {
        "token": request.token.get("token") or ticket.token,
        "status": _CODES.get(ticket.status, 202),
        "cloud-content-byte": ticket.size_bytes,
    }
    if ticket.anticipated is not None:
        fields["anticipated-availability-time"] = ticket.anticipated.isoformat(timespec="seconds")
    if ticket.path is not None:
        fields["url"] = ticket.url or ticket.path.as_uri()
    return {**request.token, **fields}
