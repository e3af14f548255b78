"""What an external worker prints, kept where a node would keep it: in the job's folder, by stage, fence and stream."""

from pathlib import Path

from spinney.folders import folders
from spinney.model.errors import Refused
from spinney.node.worker.capture import append

OUTPUT_BYTES = 10 * 2**20
"""How many bytes of a stream of an attempt are kept; what comes after is cut off."""
_CUT = b"\n[spinney: more output was cut here]\n"


def keep(root: Path, job_id: int, attempt: str, stream: str, data: bytes, *, most: int = OUTPUT_BYTES) -> int:
    """Append output to the file of a stream, and return how many bytes were kept: fewer than were given once
    the file has ``most`` bytes.

    ``attempt``: ``<stage>.<fence>``. Where output is cut off, a line in the file says so, once. Raises
    Refused when the disk takes none.
    """
    try:
        file = folders.make(root, job_id) / folders.OWN / f"{attempt}.{stream}"
        size = file.lstat().st_size if file.exists() else 0
        head = data[: max(0, most - size)]
        cut = len(head) < len(data) and size <= most  # said once: with it the file is longer than that
        written = append(file, head + _CUT if cut else head) if head or cut else 0
    except OSError as error:
        raise Refused(
            f"the output of job {job_id} cannot be kept: {error.strerror or error}; continue without it, or send it "
            f"again later"
        ) from error
    return min(written, len(head))
