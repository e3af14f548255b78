"""The description of a payload that is submitted: its fields, their checks, and the order of a batch made of it."""

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any

import typer
from pydantic import Field

from spinney.apps.ingest.config.settings import Settings
from spinney.apps.ingest.deposits.orders import BatchOrder, FrozenModel, require_notified
from spinney.apps.ingest.identifiers import arks
from spinney.apps.ingest.manifests import About, PayloadKind, fields
from spinney.apps.ingest.verbs.base import Submitter, Text, profile_names, require_stage, stage_names
from spinney.apps.ingest.verbs.service import refused
from spinney.errors import UsageError, did_you_mean, listed
from spinney.files import digests
from spinney.files.digests import Digest
from spinney.files.paths import component, shown
from spinney.jobs import names

_RESPONSE = re.compile(r"[a-z][a-z0-9-]{0,19}")
PROFILE = "The profile: how the payload is processed."
REPEATED = ("local_id", "notification")
"""The fields that may be repeated."""


class DepositFields(FrozenModel):
    """The description of a payload in the options of a command line, in a query string or in a form."""

    name: Text | None = Field(
        default=None,
        description="The payload's file name (default: that of the file); required for a payload without one.",
        examples=["map.tif"],
    )
    profile: Text | None = Field(default=None, description=PROFILE, examples=["maps"])
    kind: PayloadKind | None = Field(
        default=None, description="The kind of payload; a manifest states its own.", examples=["file"]
    )
    submitter: Submitter = None
    update: bool = Field(
        default=False,
        description="Add the files to those that the objects have, instead of replacing them.",
    )
    digest: Annotated[Text | None, typer.Option(metavar="ALGORITHM:VALUE")] = Field(
        default=None, description="The payload's expected digest.", examples=["sha256:9f86d081"]
    )
    primary_id: Annotated[Text | None, typer.Option(metavar="ARK")] = Field(
        default=None, description="The object's ARK, if it has one.", examples=["ark:/99999/fk4abc"]
    )
    local_id: list[Text] = Field(default=[], description="A local id of the object; may be repeated.")
    title: Text | None = Field(default=None, description="The object's title.", examples=["A map"])
    creator: Text | None = Field(default=None, description="The object's creator.", examples=["Ann"])
    date: Text | None = Field(default=None, description="The object's date.", examples=["1912"])
    response: Annotated[Text, typer.Option(metavar="FORM")] = Field(
        default="json", description="The form of the response, stored with each object."
    )
    notification: Annotated[list[Text], typer.Option("--notify", metavar="ADDRESS")] = Field(
        default=[],
        description="Send the reports of this batch to this address; may be repeated.",
        examples=[["ann@example.org"]],
    )
    fail_at: Annotated[Text | None, typer.Option(metavar="STAGE", autocompletion=stage_names)] = Field(
        default=None,
        description="In test mode: let each object fail once at this stage.",
        examples=["downloading"],
    )


class Submit(DepositFields):
    """A complete description of a payload."""

    name: Text = Field(description="The payload's file name.")
    profile: Annotated[Text, typer.Option(autocompletion=profile_names)] = Field(description=PROFILE)

    @property
    def expected_digest(self) -> Digest | None:
        """The digest that the payload should have; None: none was given. Raises UsageError for an invalid one."""
        if self.digest is None:
            return None
        algorithm, colon, value = self.digest.partition(":")
        if not colon:
            raise UsageError("a digest is written as ALGORITHM:VALUE, as in sha256:9f86…; write --digest so")
        with refused(UsageError):
            return digests.digest(algorithm, value)

    @property
    def about(self) -> About:
        """The description of the object, where the payload is a single one."""
        return About(
            primary_id=self.primary_id,
            local_ids=tuple(self.local_id),
            title=self.title,
            creator=self.creator,
            date=self.date,
        )

    def require_valid(self, settings: Settings) -> None:
        """Raise UsageError for values that the service would refuse later."""
        with refused(UsageError):
            component(self.name)
            if self.primary_id is not None:
                arks.canonical(self.primary_id)
            for what in ("creator", "title", "date"):
                fields.one_line(getattr(self, what) or "", what)
        if self.submitter is not None:
            names.label("submitter", self.submitter)
        for local_id in self.local_id:
            names.label("local id", local_id)
        try:
            require_notified(self.notification)
        except ValueError as error:
            raise UsageError(str(error)) from None
        if not _RESPONSE.fullmatch(self.response):
            raise UsageError(f"'{shown(self.response[:40])}' is not a format of responses; use json")
        if self.fail_at is None:
            return
        require_stage(self.fail_at)
        if not settings.test_mode:
            raise UsageError(
                "a failure can be ordered in test mode only; set test_mode = true in the settings of a test"
            )

    def order(self, bid: str, kind: PayloadKind, submitter: str, accepted: datetime) -> BatchOrder:
        """Return the parameter of the batch's job."""
        return BatchOrder(
            bid=bid,
            kind=kind,
            submitter=submitter,
            digest=self.expected_digest,
            about=self.about,
            notify=tuple(self.notification),
            accepted=accepted,
            **self.model_dump(include={"profile", "name", "update", "response", "fail_at"}),
        )


def combine_fields(query: DepositFields, form: Iterable[tuple[str, str]], file_name: str) -> Submit:
    """Combine the query and the fields of a form into a submission.

    A field may be named like an option of the command line (``local-id``), and an empty one of the form is
    ignored, as browsers send them. Fields that may be repeated are joined; any other must be given once.
    ``file_name``: that of the form's file, for a submission without a name. Raises UsageError for an unknown
    field or one that is given twice, and ValidationError of pydantic.
    """
    query_values = query.model_dump(exclude_unset=True)
    form_values: dict[str, Any] = {}
    for field_name, value in form:
        name = field_name.replace("-", "_")
        if name not in DepositFields.model_fields:
            field_names = [name.replace("_", "-") for name in DepositFields.model_fields]
            hint = did_you_mean(field_name, field_names) or f"; use one of: {listed(field_names)}"
            raise UsageError(f"there is no field '{shown(field_name[:100])}'{hint}")
        if name in REPEATED:
            form_values.setdefault(name, list(query_values.get(name, ()))).append(value)
        elif name in form_values or name in query_values:
            raise UsageError(f"the field {field_name!r} is given twice; give it once")
        else:
            form_values[name] = value
    non_empty = {name: value for name, value in form_values.items() if value not in ("", [""])}
    return Submit.model_validate({"name": file_name} | query_values | non_empty)
