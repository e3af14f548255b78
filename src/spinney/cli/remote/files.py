"""The files of a job, through a server."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spinney.model.homes import DirectoryEntry
from spinney.model.jobs import Attempt

if TYPE_CHECKING:
    from spinney.cli.remote.client import RetryingClient


class RemoteFiles:
    """As ``spinney.features.files.job_folder``: the files of one job."""

    def __init__(self, client: "RetryingClient", job_id: int) -> None:
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

    def everything(self) -> Iterator[tuple[str, DirectoryEntry]]:
        """All files, by path."""
        for file in self._client.files(self._job_id).items:
            yield (
                file.path,
                DirectoryEntry(name=file.path.rpartition("/")[2], kind=file.kind, size=file.size),
            )
