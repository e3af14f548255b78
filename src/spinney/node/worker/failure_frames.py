"""Keep the frames of failed attempts beside their output: ``<job folder>/.spinney/<stage>.<fence>.frames``.

They are captured where the exception is caught, while its frames still exist, and written after the job's folder was
synced: like output they need not be durable, and a job without a folder must not wait for a disk because it failed."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from spinney.define.job.data import folder_of
from spinney.define.jobtype import JobType
from spinney.define.params.redaction import Redactor
from spinney.model.outcomes import Outcome
from spinney.model.types import Isolation
from spinney.model.values.paths import OWN
from spinney.node.worker.result_rows import Detail
from spinney.node.workers.termination import Terminated

SUFFIX = "frames"
"""The end of the name of the file, as ``stdout`` is of one with output."""


class FailureFrames:
    """Captures and writes the frames of one worker's failures. Its methods raise nothing but Terminated."""

    def __init__(
        self, folder_root: str, types: Mapping[str, JobType], *, most_bytes: int, depth: int
    ) -> None:
        """``types``: job types by name. ``most_bytes`` of one failure; 0: none are kept."""
        self._root, self._types = Path(folder_root), types
        self._most_bytes, self._depth = most_bytes, depth

    def capture(
        self, error: BaseException, detail: Detail, type_: str, stage: str, redactor: Redactor
    ) -> bytes | None:
        """Return the document of an attempt that ended with an error; None where none is kept: for other outcomes, for
        programs, which keep their own, and for job types that do without."""
        if detail["outcome"] is not Outcome.ERROR or self._most_bytes <= 0 or type_ not in self._types:
            return None
        spec = self._types[type_].spec
        stage_spec = spec.stage(stage)
        if not spec.postmortem or stage_spec is None or stage_spec.isolation is Isolation.PROGRAM:
            return None
        if redactor.hides_all:
            return None
        try:
            # Imported by the first failure of a worker, because most workers have none.
            from spinney.postmortem.descriptions import Bounds
            from spinney.postmortem.frames import capture

            bounds = Bounds(document_bytes=self._most_bytes, depth=self._depth)
            return capture(
                error,
                bounds=bounds,
                redact=redactor.text,
                secret_names=redactor.names,
                longest_secret=redactor.overlap_bytes + 1,
            )
        except Terminated:
            raise
        except BaseException:  # noqa: BLE001 - a __str__ may call exit, and nothing can be imported without descriptors
            return None

    def write(self, job_id: int, stage: str, fence: int, document: bytes) -> None:
        """Write the document of an attempt; without room or rights for it, the failure has its traceback all the
        same."""
        with suppress(OSError, ImportError):
            from spinney.postmortem.programs import write_document

            write_document(folder_of(self._root, job_id) / OWN / f"{stage}.{fence}.{SUFFIX}", document)
