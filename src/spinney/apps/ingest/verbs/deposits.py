"""The description of a payload that is submitted."""

from collections.abc import Iterable
from typing import Annotated, Any

import typer
from pydantic import BaseModel, ConfigDict, Field

from spinney.apps.ingest.deposits.orders import Description
from spinney.apps.ingest.files import digests
from spinney.apps.ingest.files.digests import Digest
from spinney.apps.ingest.files.paths import shown
from spinney.apps.ingest.manifests import PayloadKind
from spinney.apps.ingest.staff import Accepted, Deposit, refused_as_usage
from spinney.apps.ingest.verbs.base import Submitter, Text, profile_names, stage_names
from spinney.errors import UsageError, did_you_mean, listed

PROFILE = "The profile: how the payload is processed."
REPEATED = ("local_id", "notification")
"""The fields that may be repeated."""


class DepositFields(BaseModel):
    """The description of a payload in the options of a command line, in a query string or in a form."""

    model_config = ConfigDict(extra="forbid", frozen=True)

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

    def deposit(self) -> Deposit:
        """Return the deposit for the service. Raises UsageError for invalid values."""
        with refused_as_usage():
            return Deposit(
                name=self.name,
                profile=self.profile,
                kind=self.kind,
                submitter=self.submitter,
                update=self.update,
                digest=None if self.digest is None else _digest(self.digest),
                response=self.response,
                notify=tuple(self.notification),
                fail_at=self.fail_at,
                about=Description(
                    primary_id=self.primary_id,
                    local_ids=tuple(self.local_id),
                    title=self.title,
                    creator=self.creator,
                    date=self.date,
                ),
            )


def answer_of(accepted: Accepted) -> dict[str, Any]:
    """Return the answer to a submission."""
    return {name: getattr(accepted, name) for name in Accepted.__dataclass_fields__ if name != "repeated"}


def combine_fields(query: DepositFields, fields: Iterable[tuple[str, str]], file_name: str) -> Submit:
    """Combine the query and the fields of a form; a field may be named like an option of the command line
    (``local-id``), and an empty one is ignored. Raises UsageError, and ValidationError of pydantic."""
    query_values = query.model_dump(exclude_unset=True)
    form_values: dict[str, Any] = {}
    for field_name, value in fields:
        name = field_name.replace("-", "_")
        if name not in DepositFields.model_fields:
            names = [names.replace("_", "-") for names in DepositFields.model_fields]
            hint = did_you_mean(field_name, names) or f"; use one of: {listed(names)}"
            raise UsageError(f"there is no field '{shown(field_name[:100])}'{hint}")
        if name in REPEATED:
            form_values.setdefault(name, list(query_values.get(name, ()))).append(value)
        elif name in form_values or name in query_values:
            raise UsageError(f"the field {field_name!r} is given twice; give it once")
        else:
            form_values[name] = value
    non_empty = {name: value for name, value in form_values.items() if value not in ("", [""])}
    return Submit.model_validate({"name": file_name} | query_values | non_empty)


def _digest(text: str) -> Digest:
    algorithm, colon, value = text.partition(":")
    if not colon:
        raise UsageError("a digest is written as ALGORITHM:VALUE, as in sha256:9f86…; write --digest so")
    return digests.digest(algorithm, value)
