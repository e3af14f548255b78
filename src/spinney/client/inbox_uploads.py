"""Uploads of whole files to inboxes, which go on where they were interrupted."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from spinney.folders.upload_pieces import described, piece_of
from spinney.model.errors import Refused, StoreUnavailable
from spinney.model.settings.inboxes import Upload

AGAIN_S = 1.0
"""Seconds between two tries when no byte has arrived."""
TRIES = 300
"""How often bytes are sent again when none arrive although the server answers: another request may still work on the
upload."""


class UploadCalls(Protocol):
    """The calls of a client by which a file is uploaded (``verbs``)."""

    def begin_upload(self, inbox: str, name: str, size: int, *, announced: str | None = None) -> Upload: ...
    def show_upload(self, inbox: str, upload: str) -> Upload: ...
    def send_upload(self, inbox: str, upload: str, content: bytes, *, offset: int) -> Upload: ...


def send_file(client: UploadCalls, inbox: str, file: Path, *, name: str | None = None) -> Iterator[Upload]:
    """Upload a file, and yield how far it is after each piece, until it has its job. An upload of the same file that
    was interrupted is continued. ``name``: the name of the file in the inbox; None: its own name. Raises Refused when
    it is rejected, what the server refuses, and StoreUnavailable when no byte arrives in ``TRIES`` tries, or the server
    does not say how far it is. The file must not change meanwhile."""
    description = described(inbox, file, name)
    upload = client.begin_upload(inbox, description.name, description.size, announced=description.announced)
    failed = 0
    with file.open("rb") as source:
        while not upload.is_done:
            before = upload.received
            try:
                upload = client.send_upload(inbox, upload.id, piece_of(source, upload), offset=before)
            except StoreUnavailable:
                upload = client.show_upload(inbox, upload.id)  # whose client may wait for the server
                failed = 0 if upload.received > before else failed + 1
                if failed >= TRIES:
                    raise
                if failed:
                    time.sleep(AGAIN_S)
            else:
                failed = 0
            if upload.reason is not None:
                raise Refused(upload.reason)
            yield upload
