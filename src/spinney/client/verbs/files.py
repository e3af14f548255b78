"""Files of jobs, and who asks."""

from collections.abc import Iterable
from typing import IO

from spinney.client.calls import Call, decode_json, get, path, verb
from spinney.schemas import Files, Me, UploadedFile


class FileVerbs:
    """What is in the folder of a job. What else is asked about jobs are commands."""

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

    @verb
    def me(self: None) -> Call[Me]:
        """Who asks, and what that one may."""
        return get("/me", Me)


def file_path(text: str) -> str:
    """A path in a job's folder, as an address writes it."""
    return "/".join(path("{}", part) for part in text.split("/"))
