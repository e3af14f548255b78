"""How a command of the command line is made from a verb: the fields of the verb are its arguments and options
(``spinney.command_line.with_fields``). What remains to be written for a command is how its answer looks::

    @command(app, Sweep)
    def show_sweep(query: Sweep, answer: Mapping[str, Any], *, json: JsonOption = False) -> None: ...

A command that does more than one verb, or reads files, is a function of Typer's whose options come from
``with_fields`` itself.
"""

import inspect
from collections.abc import Callable, Mapping
from inspect import Parameter, Signature
from typing import Any, TypeVar

import typer

from spinney.apps.ingest.cli.session import open_session
from spinney.apps.ingest.verbs import Verb
from spinney.command_line import ByOption, StoreOption, with_fields

V = TypeVar("V", bound=Verb)
Show = Callable[..., None]
"""Prints the answer of a verb; it gets the verb, the answer, and the values of options of its own."""


def command(app: typer.Typer, verb: type[V]) -> Callable[[Show], Show]:
    """Add a command that runs ``verb`` and shows its answer by the decorated function.

    The command's options are the fields of the verb, the keyword parameters of the function, ``--by`` if the
    verb changes something, and ``--store``. Its help is the docstring of the verb, its name that of the verb. The
    function gets the verb with its parameters and the answer as JSON values, and returns nothing; it may end the
    command with ``typer.Exit``. It is called after the session has been closed.
    """

    def decorate(show: Show) -> Show:
        def run(
            fields: Mapping[str, Any], /, *, by: ByOption = None, store: StoreOption = None, **own: Any
        ) -> None:
            query = verb(**fields)
            with open_session(store, by) as session:
                answer = session.do(query)
            show(query, answer, **own)

        fields, *shared, _ = _parameters(run)
        own = [p for p in _parameters(show) if p.kind is Parameter.KEYWORD_ONLY]
        parameters = [fields, *own, *(p for p in shared if p.name == "store" or verb.changes)]
        run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        run.__doc__ = verb.__doc__
        app.command(verb.name)(with_fields(verb)(run))
        return show

    return decorate


def _parameters(function: Callable[..., None]) -> list[Parameter]:
    return list(inspect.signature(function, eval_str=True).parameters.values())
