"""Jobs to look at, their files, figures, and who asks."""

from collections.abc import Iterable, Mapping
from typing import IO, Any, Unpack

from spinney.client.calls import Call, decode_json, get, path, verb
from spinney.client.verbs.filters import JobFilter
from spinney.model.jobs import Attempt
from spinney.model.rights.operators import Explanation, Stats
from spinney.model.types import TypeSpec
from spinney.model.values import durations
from spinney.model.values.durations import Duration
from spinney.model.values.lists import Page
from spinney.schemas import (
    Files,
    JobDetails,
    Me,
    UploadedFile,
)


class JobVerbs:
    """Reading of jobs."""

    @verb
    def jobs(
        self: None, *, newest: bool = True, after: int = 0, limit: int = 100, **which: Unpack[JobFilter]
    ) -> Call[Page[JobDetails]]:
        """A page of jobs that fit, the newest first."""
        return get("/jobs", Page[JobDetails], newest=newest, after=after, limit=limit, **which)

    @verb
    def count(self: None, **which: Unpack[JobFilter]) -> Call[Mapping[str, int]]:
        """How many jobs that fit stand in each state, exactly."""
        return get("/jobs/count", Mapping[str, int], **which)

    @verb
    def job(self: None, job: int) -> Call[JobDetails]:
        """One job. Raises NoSuchJob."""
        return get(path("/jobs/{}", job), JobDetails)

    @verb
    def tree(self: None, job: int, *, limit: int = 1_000) -> Call[Page[JobDetails]]:
        """A job and all below it, depth first."""
        return get(path("/jobs/{}/tree", job), Page[JobDetails], limit=limit)

    @verb
    def children(self: None, job: int, *, after: int = 0, limit: int = 100) -> Call[Page[JobDetails]]:
        """A page of its direct subjobs that count."""
        return get(path("/jobs/{}/children", job), Page[JobDetails], after=after, limit=limit)

    @verb
    def attempts(self: None, job: int) -> Call[Page[Attempt]]:
        """Its history, oldest first."""
        return get(path("/jobs/{}/attempts", job), Page[Attempt])

    @verb
    def data(self: None, job: int) -> Call[Mapping[str, Any]]:
        """What it keeps, by name."""
        return get(path("/jobs/{}/data", job), Mapping[str, Any])

    @verb
    def results(self: None, job: int) -> Call[Mapping[str, Any]]:
        """The values of the stages that have passed, by stage."""
        return get(path("/jobs/{}/results", job), Mapping[str, Any])

    @verb
    def explain(self: None, job: int) -> Call[Explanation]:
        """Why a job is not running, in one sentence."""
        return get(path("/jobs/{}/explain", job), Explanation)

    @verb
    def files(self: None, job: int) -> Call[Files]:
        """All below its folder, by path; ``download`` and ``output`` of the clients give what is in them."""
        return get(path("/jobs/{}/files", job), Files)

    @verb
    def upload(
        self: None, job: int, file: str, content: bytes | IO[bytes] | Iterable[bytes]
    ) -> Call[UploadedFile]:
        """Put a file into its folder; not while it is at work. An AsyncClient takes bytes alone."""
        return Call(
            method="PUT",
            path=f"/jobs/{job}/files/{file_path(file)}",
            decode=decode_json(UploadedFile),
            content=content,
            headers={"Content-Type": "application/octet-stream"},
        )

    # --- figures -----------------------------------------------------------

    @verb
    def me(self: None) -> Call[Me]:
        """Who asks, and what that one may."""
        return get("/me", Me)

    @verb
    def stats(self: None, *, window_s: Duration = 60.0) -> Call[Stats]:
        """Depths, rates, times and slots."""
        return get("/stats", Stats, window_s=durations.seconds(window_s, "window_s"))

    @verb
    def types(self: None) -> Call[Page[TypeSpec]]:
        """Job types, by name."""
        return get("/types", Page[TypeSpec])

    @verb
    def type(self: None, name: str) -> Call[TypeSpec]:
        """A job type: its stages, its policy, the schema of its parameters."""
        return get(path("/types/{}", name), TypeSpec)


def file_path(text: str) -> str:
    """A path in a job's folder, as an address writes it."""
    return "/".join(path("{}", part) for part in text.split("/"))
