"""The names of raw files of SensorGnome receivers.

    changeMe-7F5ERPI46977-000012-2016-05-23T16-00-54.1240P-all.txt.gz

are the short label of the receiver, its serial number, the number of its boot session, when the file was begun (UTC),
how sure its clock was (``P``: set by GPS), and the kind of the file."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

CLOCK_SET_S = 1_262_304_000.0
"""2010-01-01, when there was no such receiver yet: an earlier time is that of a clock which GPS has not set. Pictures
begin after it."""
AHEAD_S = 86_400.0
"""How many seconds the clock of a receiver may be ahead of this host's; a later time is that of a wrong clock."""
_NAME = re.compile(
    r"(?P<label>[\w.]{1,32})-(?P<serial>[0-9A-Z]{12})-(?P<session>\d{6})-"
    r"(?P<time>\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d)(?P<part>\.\d{1,6})?(?P<clock>[A-Z])?-(?P<kind>[a-z]{1,12})"
    r"\.txt(?P<packed>\.gz)?"
)


class SourceFile(NamedTuple):
    """What the name of a raw file says."""

    name: str
    """Without ``.gz``: a file is the same packed or not."""
    receiver: str
    """``SG-`` and the serial number."""
    session: int
    """The number of the receiver's boot session."""
    begun: float
    """When it was begun, in seconds since 1970."""


def source_file(path: Path | str) -> SourceFile | None:
    """Return what the name of a file says, by its last part; None for a name that no receiver gives, and for
    one with a date that no calendar has."""
    name = Path(path).name
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    try:
        moment = datetime.strptime(match["time"], "%Y-%m-%dT%H-%M-%S").replace(tzinfo=UTC)
    except ValueError:
        return None
    return SourceFile(
        name=name.removesuffix(".gz"),
        receiver=f"SG-{match['serial']}",
        session=int(match["session"]),
        begun=moment.timestamp() + float(match["part"] or 0),
    )
