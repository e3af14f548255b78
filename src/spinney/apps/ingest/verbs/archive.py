"""Verbs for stored objects: find, check and fetch them.

They read the inventory, the storage and the jobs of requests; only ``Fetch`` submits one. A person who is
limited to collections finds and fetches only objects of these, and an object of another is answered as one
that does not exist.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer
from pydantic import Field

from spinney.apps.ingest.access import contents, requests
from spinney.apps.ingest.access.contents import Content
from spinney.apps.ingest.access.tickets import Ticket
from spinney.apps.ingest.config import open_resources
from spinney.apps.ingest.deposits.orders import FrozenModel
from spinney.apps.ingest.identifiers import arks
from spinney.apps.ingest.verbs.base import Ark, CollectionName, Submitter, Text, Verb, Version
from spinney.apps.ingest.verbs.lookup import visible_profiles
from spinney.apps.ingest.verbs.service import Service, introduce, refused
from spinney.containers.pack import Format
from spinney.errors import UsageError

COUNTED = 10_000
"""The maximum number of objects that are counted."""
LISTED = 1_000
"""How many damaged objects are listed at most."""


class Find(Verb):
    """Find stored objects, or files of theirs, in the inventory."""

    ark: Text | None = Field(
        default=None, description="The object with this ARK.", examples=["ark:/99999/fk4abc"]
    )
    local_id: Text | None = Field(default=None, description="Objects with this local id.", examples=["L-1"])
    file_name: Text | None = Field(
        default=None, description="Files with this name, or whose path ends so.", examples=["map.tif"]
    )
    digest: Annotated[Text | None, typer.Option(metavar="[ALGORITHM:]VALUE")] = Field(
        default=None, description="Files with this digest.", examples=["sha256:9f86d081"]
    )
    collection: CollectionName = None
    after: Annotated[Text | None, typer.Option(metavar="PLACE")] = Field(
        default=None,
        description="Start after the item with this `place`: `next` of the previous page.",
        examples=["17"],
    )
    limit: int = Field(default=50, ge=1, le=1000, description="The maximum number of rows.")

    def run(self, service: Service) -> Mapping[str, Any]:
        """Return a page of objects or files (``items``), and where the next page begins (``next``; None: this
        is the last).

        A page that is full has a ``next`` even if nothing follows. Raises UsageError for an invalid ARK,
        digest or place.
        """
        with refused(UsageError):
            items = open_resources.inventory(service.settings).find(
                ark=None if self.ark is None else arks.canonical(self.ark),
                local_id=self.local_id,
                file_name=self.file_name,
                digest=self.digest,
                collection=self.collection,
                within=service.collections,
                limit=self.limit,
                after=self.after,
            )
        return {"items": items, "next": items[-1].place if len(items) == self.limit else None}


class Fixity(Verb):
    """Show how many stored objects are due to be read again, and how many are damaged; or list the damaged ones."""

    damaged: bool = Field(default=False, description="List the damaged objects.")

    def run(self, service: Service) -> Mapping[str, Any]:
        """Return the damaged objects with their faults (``items``); or the numbers of ``due`` and ``damaged``
        objects.

        At most ``LISTED`` objects are listed. Each number is counted up to ``COUNTED``, which stands for
        "that many or more".
        """
        inventory = open_resources.inventory(service.settings)
        damaged = inventory.damaged(LISTED if self.damaged else COUNTED, within=service.collections)
        if self.damaged:
            return {"items": damaged}
        before = datetime.now(UTC) - timedelta(days=service.settings.fixity.every_days)
        due = inventory.due_for_fixity(before, COUNTED, within=service.collections)
        return {"due": len(due), "damaged": len(damaged)}


class Profiles(Verb):
    """List the profiles; those that cannot be read have a `problem`."""

    def run(self, service: Service) -> Mapping[str, Any]:
        """Return the profiles that the person may submit with. Operators without limits also see those that cannot be
        read."""
        return {
            "items": [
                {"name": name, "problem": profile}
                if isinstance(profile, str)
                else profile.model_dump(mode="json")
                for name, profile in visible_profiles(service)
            ]
        }


class Fetch(Verb, changes=True):
    """Request a package of a stored object; the answer has a token, with which to look up its status."""

    ark: Ark
    version: Version = None
    format: Format = Field(default=Format.ZIP, description="The format of the package.")
    submitter: Submitter = None

    def run(self, service: Service) -> Mapping[str, Any]:
        """Return the ticket of the request, at once.

        The same request again returns the same token as long as it is open or its package is valid
        (``access.requests``). Raises Refused for an object that is not in the inventory, or that the person
        may not see.
        """
        introduce(service.store)
        return _ticket_fields(
            requests.request(
                service.control,
                service.settings,
                self.ark,
                version=self.version,
                format_=self.format,
                submitter=self.submitter,
            )
        )


class File(FrozenModel):
    """A file of a stored object, which is sent in pieces."""

    ark: Ark
    path: Text = Field(description="The path of the file within the object.", examples=["scans/page-1.tif"])
    version: Version = None

    def content(self, service: Service) -> Content:
        """Return the file, compared with its digests while its pieces are read, which can be done once
        (``contents.content``)."""
        return contents.content(service.control, service.settings, self.ark, self.path, version=self.version)

    def require_may(self, service: Service) -> None:
        """Raise Forbidden or Refused where the person may not, or no longer, have it."""
        contents.require_may(service.control, service.settings, self.ark)


class Manifest(FrozenModel):
    """The files of a stored version as a manifest, which is sent in pieces."""

    ark: Ark
    version: Version = None
    as_json: bool = Field(default=False, description="As JSON Lines, which can hold any file name.")

    def content(self, service: Service, locate: contents.Locate | None = None) -> Content:
        """Return the manifest. ``locate`` makes the URLs of its rows; None: they are those of the storage itself."""
        return contents.manifest(
            service.control,
            service.settings,
            self.ark,
            version=self.version,
            json=self.as_json,
            locate=locate,
        )

    def require_may(self, service: Service) -> None:
        """Raise Forbidden or Refused where the person may not, or no longer, have it."""
        requests.visible_object(service.control, service.settings, self.ark)


class Token(Verb):
    """Show the status of a request for a package: when it will be ready, or where it is and when it expires."""

    token: Annotated[Text, typer.Argument(metavar="TOKEN")] = Field(
        description="The token that `fetch` returned.", examples=["17-9f86d0"]
    )

    def run(self, service: Service) -> Mapping[str, Any]:
        """Return the ticket of a request. Raises what ``requests.look`` raises."""
        return _ticket_fields(requests.look(service.control, service.settings, self.token))


def _ticket_fields(ticket: Ticket) -> Mapping[str, Any]:
    """Return the fields of a ticket that have a value, as JSON values."""
    fields: Mapping[str, Any] = ticket.model_dump(mode="json", exclude_none=True)
    return fields
