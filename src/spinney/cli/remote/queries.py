"""The counterpart of ``Queries``: all that commands read."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import cached_property
from typing import Any

from spinney.cli.remote.client import RetryingClient
from spinney.cli.remote.store_reads import RemoteStore, queue
from spinney.commands import each
from spinney.commands.job_filter import filter_fields
from spinney.features.holds.commands import ListHoldsOn
from spinney.features.jobs.commands import (
    TREE_MAX,
    CountJobs,
    ExplainJob,
    ListAttempts,
    ListJobs,
    ShowData,
    ShowJob,
    ShowResults,
    ShowTree,
)
from spinney.model.homes import DirectoryEntry as FileEntry
from spinney.model.jobs import Attempt, Filter, Job
from spinney.model.lineage import depth
from spinney.model.rights.operators import (
    Explanation,
    QueueInfo,
    Stats,
)
from spinney.model.settings.holds import Hold
from spinney.model.states import State
from spinney.model.types import TypeSpec
from spinney.schemas import JobDetails
from spinney.service.submission_lines import known_type

PAGE = 1_000
LOOK_S = 0.5
_OF_JOB = tuple(field.name for field in fields(Job))


class RemoteQueries:
    """As ``Queries``; secrets are masked by the server."""

    look_s = LOOK_S
    """Between two looks of a command that waits."""

    def __init__(self, client: RetryingClient) -> None:
        self._client = client
        self._allowed: dict[int, Sequence[str]] = {}

    @cached_property
    def store(self) -> RemoteStore:
        """What commands read of the store itself."""
        return RemoteStore(self._client)

    # --- jobs -----------------------------------------------------------------------------

    def job(self, job_id: int) -> Job:
        return self._plain(self._client.do(ShowJob(job=job_id)))

    def jobs(self, which: Filter, *, after: int = 0, limit: int = 100, newest: bool = False) -> list[Job]:
        if which.ids is not None:
            return [self.job(job_id) for job_id in which.ids[:limit]]
        asked, but = _translated(which)
        found: list[Job] = []
        for job in self._pages(asked, after=after, limit=limit, newest=newest):
            if job.id != but:
                found.append(self._plain(job))
            if len(found) == limit:
                break
        return found

    def counts(self, which: Filter) -> Mapping[str, int]:
        asked, but = _translated(which)
        found = Counter(self._client.do(CountJobs(**asked)))
        if but is not None and which.below is not None and asked.get("root") is not None:
            # The job at the top itself is counted, too.
            found.subtract(self._client.do(CountJobs(**{**asked, "roots": True})))
        return {State(state): n for state, n in found.items() if n > 0}

    def tree(self, job_id: int, *, limit: int = 1000) -> list[Job]:
        return [
            self._plain(job)
            for job in self._client.do(ShowTree(job=job_id, limit=min(limit, TREE_MAX))).items
        ]

    def attempts(self, job_id: int) -> list[Attempt]:
        return list(self._client.do(ListAttempts(job=job_id)).items)

    def data(self, job_id: int) -> Mapping[str, Any]:
        return self._client.do(ShowData(job=job_id))

    def results(self, job_id: int) -> Mapping[str, Any]:
        return self._client.do(ShowResults(job=job_id))

    def allowed(self, job: Job) -> list[str]:
        if job.id not in self._allowed:
            self.job(job.id)
        return list(self._allowed[job.id])

    def explain(self, job_id: int) -> Explanation:
        return self._client.do(ExplainJob(job=job_id))

    def job_files(self, job_id: int) -> "RemoteFiles":
        """Its files, and what it wrote. Raises NoSuchJob."""
        self._client.do(ShowJob(job=job_id))
        return RemoteFiles(self._client, job_id)

    # --- figures --------------------------------------------------------------------------

    def stats(self, window_s: float = 60.0) -> Stats:
        return self._client.stats(window_s=window_s)

    # --- what operators set ---------------------------------------------------------------

    def holds_on(self, job_id: int) -> Sequence[Hold]:
        return self._client.do(ListHoldsOn(job=job_id)).items

    def queue(self, name: str) -> QueueInfo:
        return queue(self._client, name)

    def types(self) -> Mapping[str, TypeSpec]:
        return self.store.types()

    def type(self, name: str) -> TypeSpec:
        return known_type(self.types(), name)

    # --- helping --------------------------------------------------------------------------

    def _pages(self, asked: Any, *, after: int, limit: int, newest: bool) -> Iterator[JobDetails]:
        # One more than is wanted, where the job at the top is among them.
        size = min(limit + 1, PAGE)
        yield from each(self._client, ListJobs(after=after, limit=size, newest=newest, **asked))

    def _plain(self, job: JobDetails) -> Job:
        self._allowed[job.id] = job.allowed
        return Job(**{name: getattr(job, name) for name in _OF_JOB})


class RemoteFiles:
    """As ``spinney.features.files.job_folder``: the files of one job."""

    def __init__(self, client: RetryingClient, job_id: int) -> None:
        self._client, self._job_id = client, job_id

    def content(self, path: str, *, start: int = 0, must: bool = True) -> Iterator[bytes]:
        """What a file has from there on. What is not there is refused, whether it must be or not."""
        return self._client.whole(lambda at: self._client.download(self._job_id, path, start=at), start)

    def output(self, attempt: Attempt, stream: str, *, start: int = 0) -> Iterator[bytes]:
        """What an attempt wrote."""
        fence = attempt.fence
        return self._client.whole(
            lambda at: self._client.output(self._job_id, fence, stream, start=at), start
        )

    def everything(self) -> Iterator[tuple[str, FileEntry]]:
        """All files, by path."""
        for file in self._client.files(self._job_id).items:
            yield file.path, FileEntry(name=file.path.rpartition("/")[2], kind=file.kind, size=file.size)


def _translated(filter_: Filter) -> tuple[Any, int | None]:
    """What to ask for, and which job of that is not meant. Below a job that is not at the top itself a server is
    asked for its direct subjobs alone."""
    if filter_.below is None:
        return filter_fields(filter_), None
    job_id, is_top = int(filter_.below.rpartition(".")[2]), depth(filter_.below) == 0
    around = replace(filter_, below=None)
    which = replace(around, root_id=job_id) if is_top else replace(around, parent_id=job_id)
    return filter_fields(which), job_id
