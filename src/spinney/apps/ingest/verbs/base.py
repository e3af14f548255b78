"""The base class of verbs, the fields that several verbs share, and the JSON form of answers."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import orjson
import typer
from pydantic import Field

from spinney.apps.ingest.application import STAGES
from spinney.apps.ingest.config import profiles, settings
from spinney.apps.ingest.deposits.orders import FrozenModel
from spinney.apps.ingest.verbs.service import Service
from spinney.command_line import completion
from spinney.errors import SpinneyError, UsageError, did_you_mean
from spinney.files.paths import shown
from spinney.jobs import JOB_ID_MAX

Text = Annotated[str, Field(pattern=r"^[^\x00]*$")]
"""Text without NUL, which databases cannot store."""


def profile_names(incomplete: str) -> list[str]:
    """Return the profiles whose names begin so, for the completion of shells."""
    try:
        return [name for name in profiles.names_of(settings.load()) if name.startswith(incomplete)]
    except (SpinneyError, OSError):
        return []


def stage_names(incomplete: str) -> list[str]:
    """Return the stages of an object that begin so, for the completion of shells."""
    return [stage for stage in STAGES if stage.startswith(incomplete)]


def require_stage(name: str) -> None:
    """Raise UsageError for a name that is not that of a stage of objects."""
    if name not in STAGES:
        hint = did_you_mean(name, STAGES) or f"; use one of: {', '.join(STAGES)}"
        raise UsageError(f"an object has no stage '{shown(name[:40])}'{hint}")


# The description of a field is also its help on the command line (``cli.session``), where typer's part of the
# annotation says whether it is an argument or an option, how it is called there, and how a shell completes it.
BatchName = Annotated[
    Text,
    Field(description="The batch: `bid-…`, or the number of its job.", examples=["4711"]),
    typer.Argument(metavar="BATCH"),
]
ObjectName = Annotated[
    Text,
    Field(description="The object: `jid-…`, or the number of its job.", examples=["4712"]),
    typer.Argument(metavar="OBJECT"),
]
Ark = Annotated[
    Text,
    Field(description="The object's ARK.", examples=["ark:/99999/fk4abc"]),
    typer.Argument(metavar="ARK"),
]
Version = Annotated[
    int | None, Field(ge=1, le=10**9, description="The version (default: the newest).", examples=[1])
]
ProfileName = Annotated[
    Text | None,
    Field(description="Only those with this profile.", examples=["maps"]),
    typer.Option(autocompletion=profile_names),
]
CollectionName = Annotated[
    Text | None,
    Field(description="Only those of this collection.", examples=["maps"]),
    typer.Option(autocompletion=completion.collections),
]
MessagePart = Annotated[
    Text | None,
    Field(description="Only objects whose message contains this text.", examples=["answers 503"]),
    typer.Option(metavar="TEXT"),
]
Submitter = Annotated[Text | None, Field(description="The submitter (default: you).", examples=["ann"])]
After = Annotated[
    int,
    Field(ge=0, le=JOB_ID_MAX, description="Start after this job: `next` of the previous page."),
    typer.Option(metavar="JOB"),
]
DryRun = Annotated[bool, Field(description="Only show what would change.")]


class Verb(FrozenModel):
    """An operation that a person requests from the service; its fields are its parameters.

    Everything that people use is made from this one definition: the route of the server with its part of the OpenAPI
    document (``routes``), and the command with its arguments and options (``cli.session``)::

        class Delete(Verb, changes=True, long=True):
            '''Delete a failed or held batch with all its files; archived objects are kept.'''

            batch: BatchName
            completed: bool = Field(default=False, description="Also delete completed batches.")

            def run(self, service: Service) -> Mapping[str, Any]: ...
    """

    name: ClassVar[str]
    """Its name on the command line, and at the end of its URL: that of the class in small letters."""
    changes: ClassVar[bool]
    """Whether it changes anything: a POST if so, else a GET."""
    is_long: ClassVar[bool]
    """Whether it may take longer than a moment."""

    def __init_subclass__(cls, *, changes: bool = False, long: bool = False, **config: Any) -> None:
        cls.name, cls.changes, cls.is_long = cls.__name__.lower(), changes, long
        super().__init_subclass__(**config)

    def run(self, service: Service) -> Mapping[str, Any]:
        """Run it in the name of the person, and return the answer; that of a list has ``items``, and ``next``
        if it has pages.

        It may be called in any thread. Raises Forbidden where the person has not the role, UsageError for
        invalid parameters, Refused for what the present state does not allow or the person may not see.
        """
        raise NotImplementedError


def written(answer: Mapping[str, Any]) -> bytes:
    """Serialize an answer as JSON: byte for byte the same locally and through a server.

    Answers may have dataclasses and times in them. Raises TypeError for what has no JSON form.
    """
    return orjson.dumps(answer, option=orjson.OPT_NON_STR_KEYS)
