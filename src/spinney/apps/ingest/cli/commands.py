"""How a command of the command line is made from a verb: the fields of the verb are its arguments and options
(``spinney.command_line.add_command``). What remains to be written for a command is how its answer looks::

    @command(app, Sweep)
    def show_sweep(query: Sweep, answer: Mapping[str, Any], *, json: JsonOption = False) -> None: ...

A command that does more than one verb, or reads files, is a function of Typer's whose options come from
``spinney.command_line.with_fields``.
"""

from collections.abc import Callable, Mapping
from typing import Any

import typer

from spinney.apps.ingest.cli.session import open_session
from spinney.apps.ingest.verbs import Verb
from spinney.command_line import add_command

Show = Callable[..., None]
"""Prints the answer of a verb; it gets the verb, the answer, and the values of options of its own."""


def command(app: typer.Typer, verb: type[Verb]) -> Callable[[Show], Show]:
    """Add a command that runs ``verb`` and shows its answer by the decorated function.

    The command's options are the fields of the verb, the keyword parameters of the function, ``--by`` if the
    verb changes something, and ``--store``. Its help is the docstring of the verb, its name that of the verb. The
    function gets the verb with its parameters and the answer as JSON values, and returns nothing; it may end the
    command with ``typer.Exit``. It is called after the session has been closed.
    """

    def decorate(show: Show) -> Show:
        def run(
            query: Verb, own: Mapping[str, Any], *, json: bool, by: str | None, store: str | None
        ) -> None:
            with open_session(store, by) as session:
                answer = session.do(query)
            show(query, answer, **own)

        add_command(app, verb, verb.name, verb.__doc__, show, run, changes=verb.changes)
        return show

    return decorate
