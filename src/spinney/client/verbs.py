"""The methods of both clients for what is not a command: files, output, and the caller.

Each is the request that it makes, and names its parameters as the API does."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import IO

import orjson

from spinney.client.calls import (
    NO_PARTS,
    Call,
    command_call,
    decode_json,
    get,
    json_body,
    path,
    request,
    verb,
)
from spinney.commands.command import Returns
from spinney.model.errors import UsageError
from spinney.model.settings.inboxes import Upload
from spinney.schemas import CreatedJob, Files, KeptOutput, Me, UploadedFile


class Verbs:
    """The methods that both clients have. They raise what the server refuses, and ServerUnavailable."""

    @verb
    def submit_with_files(
        self: None, job: Returns[CreatedJob], files: Mapping[str, bytes | IO[bytes]]
    ) -> Call[CreatedJob]:
        """Submit a job (``SubmitJob``) with files, which are in its folder, under these paths, before it may start."""
        call = command_call(job)
        parts = [("file", (name, content, "application/octet-stream")) for name, content in files.items()]
        body = orjson.dumps(call.json)
        return replace(call, json=None, files=(("job", (None, body, "application/json")), *parts))

    @verb
    def files(self: None, job: int) -> Call[Files]:
        """List the files in a job's folder, by path; ``download`` and ``output`` of the clients read them."""
        return get(path("/jobs/{}/files", job), Files)

    @verb
    def upload(
        self: None, job: int, file: str, content: bytes | IO[bytes] | Iterable[bytes]
    ) -> Call[UploadedFile]:
        """Put a file into a job's folder, which is refused while the job runs. An AsyncClient takes only bytes."""
        return Call(
            method="PUT",
            path=f"/jobs/{job}/files/{file_path(file)}",
            decode=decode_json(UploadedFile),
            content=content,
            headers={"Content-Type": "application/octet-stream"},
        )

    @verb
    def begin_upload(
        self: None,
        inbox: str,
        name: str,
        size: int,
        *,
        announced: str | None = None,
        modified: str | None = None,
    ) -> Call[Upload]:
        """Begin an upload of a file to an inbox, or resume one of the same file that was interrupted."""
        body = json_body(name=name, size=size, announced=announced, modified=modified)
        return request("POST", path("/inboxes/{}/uploads", inbox), Upload, body)

    @verb
    def show_upload(self: None, inbox: str, upload: str) -> Call[Upload]:
        """Return an upload to an inbox: how many bytes have come, and its job when it is done."""
        return get(path("/inboxes/{}/uploads/{}", inbox, upload), Upload)

    @verb
    def send_upload(self: None, inbox: str, upload: str, content: bytes, *, offset: int) -> Call[Upload]:
        """Send the next bytes of an upload to an inbox; the last ones answer with its job."""
        call = request("PUT", path("/inboxes/{}/uploads/{}", inbox, upload), Upload, offset=offset)
        return replace(call, content=content, headers={"Content-Type": "application/octet-stream"})

    @verb
    def withdraw_upload(self: None, inbox: str, upload: str) -> Call[None]:
        """Remove an open upload to an inbox, with what has come of it."""
        return request("DELETE", path("/inboxes/{}/uploads/{}", inbox, upload), None)

    @verb
    def me(self: None) -> Call[Me]:
        """Return the caller's name, how the caller was identified, and the caller's rights."""
        return get("/me", Me)

    @verb
    def keep_output(
        self: None, worker: str, job: int, fence: int, text: str, *, stream: str = "stdout"
    ) -> Call[KeptOutput]:
        """Append to the output of an attempt of an external worker."""
        address = path("/external/{}/attempts/{}/{}/output", worker, job, fence)
        return request("POST", address, KeptOutput, json_body(stream=stream, text=text))


def file_path(text: str) -> str:
    """Return a path in a job's folder as part of an address, each of its parts quoted. Raises UsageError for
    one that is no such path: it is empty, begins or ends with a slash, or has ``..`` in it."""
    parts = text.split("/")
    if not NO_PARTS.isdisjoint(parts):
        raise UsageError(
            f"{text!r} is no path within a job's folder; name it as in 'scans/page-1.tif', without '..'"
        )
    return "/".join(path("{}", part) for part in parts)
