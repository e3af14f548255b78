"""The commands for inboxes. Whoever makes one decides which files nodes read and move away, so that takes an
admin.

Secrets in parameters are redacted in answers. Changes wake the nodes, so that they do not wait for their next
look.
"""

import dataclasses
from typing import Annotated, Any

import orjson
from pydantic import Field, WithJsonSchema

from spinney.commands import Command
from spinney.commands.fields import PAGE, After, JsonObject, Limit, Name, Reason
from spinney.define.job.options import Options
from spinney.define.params.duration_field import DurationField
from spinney.define.params.redaction import redact_params, redaction_schema
from spinney.define.params.schema import checker
from spinney.define.params.values import to_text
from spinney.model.access import Role
from spinney.model.errors import NoSuch
from spinney.model.settings.inboxes import FILE_PARAM, REST_S, Arrival, ArrivalOutcome, Duplicates, Inbox
from spinney.model.types import known_type
from spinney.model.values.hints import no_such
from spinney.model.values.lists import All, Page
from spinney.service.service import Service
from spinney.service.submit_rights import authorized

InboxName = Annotated[Name, Field(description="The inbox's name.", examples=["uploads"])]


class ListInboxes(Command, route="GET /inboxes", role=Role.OPERATOR, everywhere=True, to="look at inboxes"):
    """List inboxes.

    All inboxes with their state and the node that takes from each, by name."""

    def run(self, service: Service) -> All[Inbox]:
        return All(items=[_shown(service, inbox) for inbox in service.store.inboxes.all()])


class ShowInbox(
    Command, route="GET /inboxes/{name}", role=Role.OPERATOR, everywhere=True, to="look at inboxes"
):
    """Show an inbox.

    Its folder, its jobs, the node that looks there, and what keeps files from being taken."""

    name: InboxName

    def run(self, service: Service) -> Inbox:
        return _shown(service, _inbox(service, self.name))


class PutInbox(
    Command,
    route="PUT /inboxes/{name}",
    query=("replace",),
    role=Role.ADMIN,
    everywhere=True,
    to="make inboxes",
):
    """Make or replace an inbox.

    Its jobs are checked as a submission is."""

    name: InboxName
    folder: Name = Field(
        description="The folder: an absolute path on the hosts that see it.", examples=["/srv/incoming"]
    )
    type: Name = Field(description="The type of its jobs.")
    params: JsonObject = Field(
        default={},
        description="The parameters of each job; if the type has a parameter `file`, it gets the name of the dropped "
        "file.",
    )
    options: dict[str, Any] = Field(
        default={},
        description="Options of each job: `queue`, `priority`, `share`, `collection`, and `submitter` instead of who "
        "dropped the file.",
    )
    host: Name | None = Field(default=None, description="Only nodes of this host watch the folder.")
    rest_s: Annotated[float, DurationField()] = Field(
        default=REST_S,
        description="A file is taken when it has not changed for this long: seconds, or text such as `1m`.",
    )
    duplicates: Annotated[str, WithJsonSchema({"type": "string", "enum": [*Duplicates]})] = Field(
        default=Duplicates.REFUSE,
        description="What happens to a file with the same content as an earlier one: `refuse` rejects it, `accept` "
        "makes a job.",
    )
    paused: bool = Field(default=False, description="Take no files before the inbox is resumed.")
    replace: bool = Field(default=False, description="Replace an existing inbox, which is refused otherwise.")
    reason: Reason = None

    def run(self, service: Service) -> Inbox:
        return self.put(service)

    def put(self, service: Service, *, internal: bool = False) -> Inbox:
        """Make or replace the inbox, and return it.

        Parameters are checked with a name in the place of the file's, and the caller must have the
        right to submit such a job. ``internal``: as ``Submitter.submit`` has it. Raises what a
        submission raises, and Refused as ``SqlInboxes.put`` does.
        """
        fields = dict(self)
        replace, reason = fields.pop("replace"), fields.pop("reason")
        inbox, types = Inbox(**fields), service.store.types()
        spec = known_type(types, inbox.type)
        named = {FILE_PARAM: "name"} if FILE_PARAM in spec.schema.get("properties", {}) else {}
        checker(spec)({**inbox.params, **named})
        text = to_text(inbox.params, f"a parameter of {inbox.type!r}")
        # The limits of a submission hold for its jobs, too.
        authorized(
            service, [Options.of(inbox.options).submission(inbox.type, [text])], types, internal=internal
        )
        checked = dataclasses.replace(inbox, params=orjson.loads(text))
        done = service.store.inboxes.put(
            checked, service.actor(reason), replace=replace, now_us=service.clock()
        )
        service.wake_nodes()
        return _shown(service, done)


class PauseInbox(
    Command, route="PATCH /inboxes/{name}", role=Role.ADMIN, everywhere=True, to="pause or resume inboxes"
):
    """Pause an inbox, or resume it.

    A paused inbox takes nothing; what is dropped there waits."""

    name: InboxName
    paused: bool = Field(description="Whether the inbox is paused and takes no files.")
    reason: Reason = None

    def run(self, service: Service) -> Inbox:
        actor = service.actor(self.reason)
        done = service.store.inboxes.pause(self.name, actor, paused=self.paused, now_us=service.clock())
        service.wake_nodes()
        return _shown(service, done)


class ScanInbox(
    Command, route="POST /inboxes/{name}/scan", role=Role.OPERATOR, everywhere=True, to="scan inboxes"
):
    """Take all that is in an inbox now.

    Without waiting for it to rest; what somebody still writes to on the node's host is left."""

    name: InboxName
    reason: Reason = None

    def run(self, service: Service) -> Inbox:
        done = service.store.inboxes.scan(self.name, service.actor(self.reason), now_us=service.clock())
        service.wake_nodes()
        return _shown(service, done)


class RemoveInbox(
    Command,
    route="DELETE /inboxes/{name}",
    role=Role.ADMIN,
    everywhere=True,
    to="remove inboxes",
    long=True,
):
    """Remove an inbox.

    Its folder and its jobs stay; which bytes came before is forgotten."""

    name: InboxName
    reason: Reason = None

    def run(self, service: Service) -> None:
        service.store.inboxes.remove(self.name, service.actor(self.reason), now_us=service.clock())


class ListArrivals(
    Command, route="GET /inboxes/{name}/arrivals", role=Role.OPERATOR, everywhere=True, to="look at inboxes"
):
    """List what was dropped into an inbox.

    Newest first, each with its job, or why it was rejected."""

    name: InboxName
    rejected: bool = Field(default=False, description="Only arrivals that were rejected.")
    after: After = 0
    limit: Limit = PAGE

    def run(self, service: Service) -> Page[Arrival]:
        _inbox(service, self.name)
        items = service.store.inboxes.arrivals(
            self.name,
            outcome=ArrivalOutcome.REJECTED if self.rejected else None,
            before=self.after,
            limit=self.limit,
        )
        return Page(items=items, next=items[-1].id if len(items) == self.limit else None)


def _inbox(service: Service, name: str) -> Inbox:
    """Return an inbox by name. Raises NoSuch."""
    inboxes = {inbox.name: inbox for inbox in service.store.inboxes.all()}
    if name not in inboxes:
        raise NoSuch(no_such("inbox", name, inboxes, "spinney inbox list"))
    return inboxes[name]


def _shown(service: Service, inbox: Inbox) -> Inbox:
    """Return an inbox with the secrets in its parameters redacted; without its type it is not known which
    these are."""
    spec = service.store.types().get(inbox.type)
    if spec is None:
        return inbox
    return dataclasses.replace(inbox, params=redact_params(redaction_schema(spec), inbox.params))
