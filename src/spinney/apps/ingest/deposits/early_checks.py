"""Checks of a manifest's rows that would otherwise fail only when the stages of their objects run.

The command ``check`` runs them on a manifest before it is submitted. The stages call the same functions, so that both
give the same messages. Checks that need more than the manifest are left to the stages: allowed hosts, maximum sizes of
downloads, the owners of local ids.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import orjson

from spinney.apps.ingest.fetch import urls
from spinney.apps.ingest.identifiers import arks
from spinney.apps.ingest.inventory import entry_rules
from spinney.apps.ingest.manifests import PayloadKind, Row, fields
from spinney.containers import formats
from spinney.files.paths import PATH_MAX_BYTES, PRODUCER, NotAdmitted, relative, shown
from spinney.jobs import PARAMS_MAX_BYTES

MANIFEST_MAX_BYTES = 1 << 30
"""The maximum size of the manifest of one object."""

_ANY_FILE_ROOT = (Path("/"),)
"""Stands in for the configured folders of ``file:`` URLs, which are checked by the stages."""
_ROW_MAX_BYTES = PARAMS_MAX_BYTES - 4096
"""The maximum size of an object's row in a manifest, as JSON: the parameters of the object's job contain the row and up
to 4096 bytes more."""


def require_file(row: Row) -> None:
    """Raise NotAdmitted unless the file that a row describes can be stored and recorded in the inventory."""
    if row.mime_type is not None:
        entry_rules.name("MIME type", row.mime_type)
    if len(row.name.encode()) > PATH_MAX_BYTES:
        raise NotAdmitted(
            f"the path '{shown(row.name[:60])}…' is longer than {PATH_MAX_BYTES} bytes; shorten it"
        )
    relative(f"{PRODUCER}/{row.name}")


def require_total_size(size_bytes: int) -> None:
    """Raise NotAdmitted if an object's files are larger together than the inventory can record."""
    if size_bytes > fields.SIZE_MAX_BYTES:
        raise NotAdmitted(f"the sizes of its files add up to {size_bytes} bytes; correct the sizes")


def row_checker(kind: PayloadKind) -> Callable[[Row], Iterator[str]]:
    """Return a function that yields the errors of one row of a manifest of this kind, as messages. It remembers earlier
    rows: call it once for each row of one manifest, in order."""
    return _ObjectChecks(kind).messages if kind.is_batch else _FileChecks().messages


class _FileChecks:
    """Checks the files of one object, row by row, and their total size."""

    def __init__(self) -> None:
        self._size_bytes = 0

    def messages(self, row: Row) -> Iterator[str]:
        """Yield the errors of a row of an object manifest. A total that is too large is reported once, at the
        first row beyond it."""
        yield from _messages(lambda: require_file(row), lambda: _require_url(row.url))
        before, self._size_bytes = self._size_bytes, self._size_bytes + (row.size_bytes or 0)
        if before <= fields.SIZE_MAX_BYTES:  # otherwise the error has been reported at an earlier row
            yield from _messages(lambda: require_total_size(self._size_bytes))


class _ObjectChecks:
    """Checks the objects of a batch, row by row.

    It keeps the ARK of each local id that was given with one, because two objects cannot share a local id;
    memory grows with these. Two rows without an ARK may name the same local id: they are versions of one
    object.
    """

    def __init__(self, kind: PayloadKind) -> None:
        self._kind = kind
        self._arks: dict[str, str] = {}

    def messages(self, row: Row) -> Iterator[str]:
        """Yield the errors of a row of a batch manifest, and of the files that it lists itself."""
        yield from _messages(
            lambda: self._require_identity(row),
            lambda: entry_rules.local_ids_admitted(row.about.local_ids),
            lambda: _require_parameters(row),
            lambda: self._require_payload(row),
            *([lambda: _require_url(row.url)] if row.url else []),
        )
        files = _FileChecks()
        for number, file in enumerate(row.files, 1):
            yield from (f"files, entry {number}: {reason}" for reason in files.messages(file))

    def _require_identity(self, row: Row) -> None:
        """Raise NotAdmitted if a local id of this row belongs to another ARK in a row above."""
        local_ids = row.about.local_ids
        primary_ark = None if row.about.primary_id is None else arks.canonical(row.about.primary_id)
        known_arks = {local_id: self._arks[local_id] for local_id in local_ids if local_id in self._arks}
        for local_id, ark in known_arks.items():
            if ark != (primary_ark or next(iter(known_arks.values()))):
                raise NotAdmitted(
                    f"the local id '{shown(local_id)}' belongs to {ark} in a row above, and this is another object; "
                    f"correct the primary id or the local ids"
                )
        if primary_ark is not None:
            self._arks.update(dict.fromkeys(local_ids, primary_ark))

    def _require_payload(self, row: Row) -> None:
        """Raise NotAdmitted for a name that is not that of a container, or for sizes beyond the limits."""
        if self._kind is PayloadKind.CONTAINER_BATCH_MANIFEST:
            try:
                formats.require_kind(row.name)
            except NotAdmitted as error:
                raise NotAdmitted(f"container '{shown(row.name)}': {error}") from None
        if self._kind is not PayloadKind.BATCH_MANIFEST:
            require_file(row)
        elif row.size_bytes is not None and row.size_bytes > MANIFEST_MAX_BYTES:
            raise NotAdmitted(
                f"an object manifest of {row.size_bytes} bytes is more than the {MANIFEST_MAX_BYTES} that are read; "
                f"divide the object"
            )


def _require_url(url: str) -> None:
    """Raise NotAdmitted unless the URL is one that payloads may have."""
    parsed = urls.admitted(url)
    if parsed.scheme == "file":
        urls.beneath(parsed, _ANY_FILE_ROOT)


def _require_parameters(row: Row) -> None:
    """Raise NotAdmitted for a row that is too long for the parameters of a job."""
    about = row.about
    described = (about.primary_id, about.local_ids, about.creator, about.title, about.date)
    if len(orjson.dumps((row.url, row.name, row.mime_type, *described))) > _ROW_MAX_BYTES:
        raise NotAdmitted(f"the description of the object takes more than {_ROW_MAX_BYTES} bytes; shorten it")


def _messages(*checks: Callable[[], object]) -> Iterator[str]:
    """Run every check, and yield the messages of those that raise NotAdmitted."""
    for check in checks:
        try:
            check()
        except NotAdmitted as error:
            yield str(error)
