"""The requests of a job handle to the engine, and their answers.

A handle has no database connection. What it cannot answer itself it *asks* through its ``Port``, which belongs to one
attempt: in a worker the supervisor answers, which adds the fence and calls the store; in a test ``spinney.testing``
answers. ``ask`` blocks until the answer has arrived, so that written data are durable when it returns; an error on the
answering side is raised here.

The verbs, with their arguments by name and their answers, all of them JSON values (``…: text`` is
JSON as text, as the store keeps it):

    get_data(target: int, name: str|None)           -> {name: value}, read fresh; with a name, of that
                                                       entry alone, empty where there is none
    data_names(target: int)                         -> [name, …] of all entries
    put_data(target: int, name, value: text|None)   -> None; a value of None removes the entry
    append_data(target: int, name, value: text)     -> the length of the list now
    results()                                       -> {stage: value} of the stages that passed
    spawn(submissions: [{…}])                       -> [id, …]; rows made by ``options.to_json``, which
                                                       ``options.from_json`` makes Submissions again
    submit(submissions: [{…}], beside: int|None)    -> [id, …]; jobs of their own, else as ``spawn``.
                                                       ``beside``: one of those that earlier requests of
                                                       the same call made
    type_schema(type)                               -> the JSON schema of a type in the store
    take_lock(name, until, amount: int, capacity: int|None)
                                                    -> whether it was taken
    prioritise(priority: int)                       -> None
    progress(fraction: float, message: str|None)    -> None
    children(after: int, limit: int)                -> [[id, type, state, stage, code, message,
                                                         warnings, params], …] by id, from behind
                                                       ``after``; params as a JSON value. It is empty
                                                       only when there are no more, and shorter than
                                                       ``limit`` when those are large

``target`` is the id of the job itself, of its parent or of its root.
"""

from pathlib import Path
from typing import Any, NamedTuple, Protocol


class Port(Protocol):
    """The requests of one attempt. See the module's docstring for the verbs."""

    def ask(self, verb: str, **args: Any) -> Any:
        """Send a request, wait, and return the answer. Raises the exception of the answering side."""

    def cancelled(self) -> bool:
        """Return whether cancellation of this attempt was requested."""


class Assignment(NamedTuple):
    """An attempt that a worker is to run. It is a plain tuple because there are thousands a second."""

    job_id: int
    fence: int
    type: str
    stage: str
    attempt: int
    params: str
    parent_id: int | None
    root_id: int
    folder_root: Path
    results: str | None = None
    """The results of earlier stages as JSON text, where they came with the attempt; None: to be asked for."""
    trace: str | None = None
    """The ``traceparent`` of the submission of its job, where it was in a trace."""
    has_marked_root: bool = True
    """Whether folders are made only below a folder root that bears its token; it is any folder in a test, and for a
    debugger."""
