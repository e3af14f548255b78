"""The checks of the stages of an object that need only its manifest, which ``check`` runs before a submission.

The stages call the same functions, so that both give the same messages. Other checks (allowed hosts, maximum sizes,
the owners of local ids) need more than a manifest, and are not made here.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import orjson

from spinney.apps.ingest.containers import formats
from spinney.apps.ingest.fetching import urls
from spinney.apps.ingest.files.paths import PRODUCER, NotAdmitted, relative, shown
from spinney.apps.ingest.identifiers import arks
from spinney.apps.ingest.inventory import entry_rules
from spinney.apps.ingest.manifests import PayloadKind, Row, fields
from spinney.jobs import PARAMS_MAX_BYTES

PATH_MAX_BYTES = 2048
"""The maximum length of a file's path, the same as in containers, so that it can be opened below the folder of a job
(Linux: 4096 in all)."""
MANIFEST_MAX_BYTES = 1 << 30
"""The maximum size of the manifest of one object."""

_ANYWHERE = (Path("/"),)
_PARAMS_MAX_BYTES = PARAMS_MAX_BYTES - 4096
"""The maximum size of an object's row in a manifest; its job's parameters contain a little more."""


def require_file(row: Row) -> None:
    """Raise NotAdmitted for a file that cannot be stored or recorded."""
    if row.mime_type is not None:
        entry_rules.name("MIME type", row.mime_type)
    if len(row.name.encode()) > PATH_MAX_BYTES:
        raise NotAdmitted(
            f"the path '{shown(row.name[:60])}…' is longer than {PATH_MAX_BYTES} bytes; shorten it"
        )
    relative(f"{PRODUCER}/{row.name}")


def require_total_size(size_bytes: int) -> None:
    """Raise NotAdmitted for an impossible total size of an object's files."""
    if size_bytes > fields.SIZE_MAX_BYTES:
        raise NotAdmitted(f"its files weigh {size_bytes} bytes together, as is said; mend the sizes")


def of_rows(kind: PayloadKind) -> Callable[[Row], Iterator[str]]:
    """Return the function that yields the refusals of a row of such a manifest; called once for each row, in order."""
    return _Objects(kind).refusals if kind.is_batch else _Files().refusals


class _Files:
    """The checks of the files of one object."""

    def __init__(self) -> None:
        self._size_bytes = 0

    def refusals(self, row: Row) -> Iterator[str]:
        yield from _refusals(lambda: require_file(row), lambda: _require_url(row.url))
        before, self._size_bytes = self._size_bytes, self._size_bytes + (row.size_bytes or 0)
        if before <= fields.SIZE_MAX_BYTES:  # reported once
            yield from _refusals(lambda: require_total_size(self._size_bytes))


class _Objects:
    """The checks of the objects of a batch. Local ids are kept with their ARKs, since two objects cannot share one."""

    def __init__(self, kind: PayloadKind) -> None:
        self._kind = kind
        self._arks: dict[str, str] = {}

    def refusals(self, row: Row) -> Iterator[str]:
        yield from _refusals(
            lambda: self._require_identity(row),
            lambda: entry_rules.local_ids_admitted(row.about.local_ids),
            lambda: _require_parameters(row),
            lambda: self._require_payload(row),
            *([lambda: _require_url(row.url)] if row.url else []),
        )
        files = _Files()
        for number, file in enumerate(row.files, 1):
            yield from (f"files, entry {number}: {reason}" for reason in files.refusals(file))

    def _require_identity(self, row: Row) -> None:
        local_ids = row.about.local_ids
        ark_ = None if row.about.primary_id is None else arks.canonical(row.about.primary_id)
        known_arks = {local_id: self._arks[local_id] for local_id in local_ids if local_id in self._arks}
        for local_id, ark in known_arks.items():
            if ark != (ark_ or next(iter(known_arks.values()))):
                raise NotAdmitted(
                    f"the local id '{shown(local_id)}' is that of {ark} in a row above, and this is another object; "
                    f"mend the primary id or the local ids"
                )
        if ark_ is not None:
            self._arks.update(dict.fromkeys(local_ids, ark_))

    def _require_payload(self, row: Row) -> None:
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
    parsed = urls.admitted(url)
    if parsed.scheme == "file":
        urls.beneath(parsed, _ANYWHERE)


def _require_parameters(row: Row) -> None:
    about = row.about
    values = (
        row.url,
        row.name,
        row.mime_type,
        about.primary_id,
        about.local_ids,
        about.creator,
        about.title,
        about.date,
    )
    if len(orjson.dumps(values)) > _PARAMS_MAX_BYTES:
        raise NotAdmitted(f"what is said of the object takes more than {_PARAMS_MAX_BYTES} bytes; shorten it")


def _refusals(*required: Callable[[], object]) -> Iterator[str]:
    for require in required:
        try:
            require()
        except NotAdmitted as error:
            yield str(error)
