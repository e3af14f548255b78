"""The part of a traceback that belongs to the application."""

from types import TracebackType

_ENGINE = (
    "spinney.node.worker",
    "spinney.define.jobtype",
    "spinney.define.params",
    "spinney.features.debug",
    "asyncio.",
)
"""Modules whose frames at the beginning of a traceback are of no use to a user."""


def user_frames(error: BaseException) -> TracebackType | None:
    """Return the traceback of an exception from the first frame on that is not of the engine; None when there is no
    such frame."""
    entry = error.__traceback__
    while entry is not None and _is_engine(entry):
        entry = entry.tb_next
    return entry


def _is_engine(entry: TracebackType) -> bool:
    name = entry.tb_frame.f_globals.get("__name__")
    return isinstance(name, str) and name.startswith(_ENGINE)
