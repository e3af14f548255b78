"""What is said of a payload that is handed in."""

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from spinney.apps.ingest.deposits.orders import Description
from spinney.apps.ingest.files import digests
from spinney.apps.ingest.files.digests import Digest
from spinney.apps.ingest.files.paths import shown
from spinney.apps.ingest.manifests import PayloadKind
from spinney.apps.ingest.staff import Accepted, Deposit, refused_as_meant
from spinney.apps.ingest.verbs.base import Text
from spinney.errors import UsageError, did_you_mean, listed

REPEATED = ("local_id", "notification")
"""Of these there may be several."""


class Said(BaseModel):
    """What the words of a command line, of an address or of a form say of a payload."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Text | None = Field(
        default=None, description="Its file name; a form's file has one already.", examples=["map.tif"]
    )
    profile: Text | None = Field(default=None, description="How it is to be treated.", examples=["maps"])
    kind: PayloadKind | None = Field(
        default=None, description="What it is; a manifest says so itself.", examples=["file"]
    )
    submitter: Text | None = Field(
        default=None, description="In whose name, if not in yours.", examples=["ann"]
    )
    update: bool = Field(
        default=False, description="Lay its files over those that the objects have; else they replace them."
    )
    digest: Text | None = Field(
        default=None, description="`ALGORITHM:VALUE` of the payload; checked.", examples=["sha256:9f86d081"]
    )
    primary_id: Text | None = Field(
        default=None, description="ARK of the object, if it has one.", examples=["ark:/99999/fk4abc"]
    )
    local_id: list[Text] = Field(default=[], description="Of the object; may be repeated.")
    title: Text | None = Field(default=None, description="Of the object.", examples=["A map"])
    creator: Text | None = Field(default=None, description="Of the object.", examples=["Ann"])
    date: Text | None = Field(default=None, description="Of the object.", examples=["1912"])
    response: Text = Field(default="json", description="The form kept with each object.")
    notification: list[Text] = Field(
        default=[],
        description="A mail address that gets the reports of this batch; may be repeated.",
        examples=[["ann@example.org"]],
    )
    fail_at: Text | None = Field(
        default=None,
        description="A drill, in test mode: each object fails once at this stage.",
        examples=["downloading"],
    )


class Submit(Said):
    """All that has to be said."""

    name: Text = Field(description="Its file name.")
    profile: Text = Field(description="How it is to be treated.")

    def deposit(self) -> Deposit:
        """As the service takes it. Raises UsageError for what cannot be meant."""
        with refused_as_meant():
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
    """The answer to a payload that was handed in."""
    return {name: getattr(accepted, name) for name in Accepted.__dataclass_fields__ if name != "repeated"}


def of_fields(asked: Said, fields: Iterable[tuple[str, str]], file_name: str) -> Submit:
    """What an address and the fields of a form say together; a field may be called as an option of the command line is
    (``local-id``), and an empty one says nothing. Raises UsageError, and ValidationError of pydantic."""
    said = asked.model_dump(exclude_unset=True)
    found: dict[str, Any] = {}
    for given, value in fields:
        name = given.replace("-", "_")
        if name not in Said.model_fields:
            known = [known.replace("_", "-") for known in Said.model_fields]
            hint = did_you_mean(given, known) or f"; use one of: {listed(known)}"
            raise UsageError(f"there is no field '{shown(given[:100])}'{hint}")
        if name in REPEATED:
            found.setdefault(name, list(said.get(name, ()))).append(value)
        elif name in found or name in said:
            raise UsageError(f"the field {given!r} is given twice; give it once")
        else:
            found[name] = value
    given_ = {name: value for name, value in found.items() if value not in ("", [""])}
    return Submit.model_validate({"name": file_name} | said | given_)


def _digest(text: str) -> Digest:
    algorithm, colon, value = text.partition(":")
    if not colon:
        raise UsageError("a digest is written as ALGORITHM:VALUE, as in sha256:9f86…; write --digest so")
    return digests.digest(algorithm, value)
