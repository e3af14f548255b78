"""The way out of an attempt: what a job handle asks, and how it is answered.

A handle holds no database connection. What it cannot answer itself it *asks* through its ``Port``,
which belongs to one attempt: in a worker the supervisor answers, which adds the fence and calls the
store; in a test ``spinney.testing`` does. ``ask`` blocks until the answer is there, so that what was
written is durable when the assignment returns; an error of the answering side is raised here.

The verbs, with their arguments by name and their answers, all of them JSON values (``…: text`` is
JSON as text, as the store keeps it):

    get_data(target: int)                           -> {name: value}, read fresh
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
                                                       ``after``; params as a JSON value

``target`` is the id of the job itself, of its parent or of its root.
"""

from pathlib import Path
from typing import Any, NamedTuple, Protocol


class Port(Protocol):
    """The way out of an attempt. See the module's docstring for the verbs."""

    def ask(self, verb: str, **args: Any) -> Any:
        """Ask, wait, and return the answer; raises what the answering side raised."""

    def cancelled(self) -> bool:
        """Whether somebody wishes this attempt to end."""


class Assignment(NamedTuple):
    """What a worker is told to run. A plain tuple: thousands a second."""

    job_id: int
    fence: int
    type: str
    stage: str
    attempt: int
    params: str
    parent_id: int | None
    root_id: int
    folder_root: Path
