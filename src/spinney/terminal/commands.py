"""Commands of the command line that are made from command classes (``spinney.commands.Command``).

    @command(app, ResumeNode, "resume", node=argument("NODE", complete=completion.nodes))
    def resumed_text(orders: NodeOrders) -> str:
        \"\"\"Let a drained node take new jobs again.\"\"\"
        return f"node {orders.node} goes on"

The fields of the class are arguments and options, with the descriptions that the API has (``model_options``). What
remains to be written is how the answer looks.

``command``       performs one command, and shows its answer by the decorated function
``list_command``  shows a list as a table
``steps``         leaves to the decorated function what is done
``add_command``   makes a command of any model of pydantic, for applications with operations of their own

Each of these commands has ``--store``, ``--by`` if its class changes something, and ``--json`` if its function returns
something to show or asks for it.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, cast

import typer
from pydantic import BaseModel

from spinney.terminal.connection import open_commands, perform
from spinney.terminal.options.arguments import ByOption, JsonOption, StoreOption
from spinney.terminal.options.model_options import with_fields
from spinney.terminal.options.option_groups import with_option_groups
from spinney.terminal.output import display

if TYPE_CHECKING:
    from spinney.commands import Command, Returns

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Function = TypeVar("Function", bound=Callable[..., Any])
Facts = Sequence[tuple[str, Any]]
"""Labelled values, one a line; those that are None are left out."""


class Shown(NamedTuple):
    """What a command prints."""

    value: Any
    """The value for ``--json``."""
    text: "str | Facts"
    """A sentence, or facts, for people."""


class Items(Protocol[T_co]):
    """An answer that is a list, or a page of one."""

    @property
    def items(self) -> Sequence[T_co]:
        """The items, in their order."""


def command(
    app: typer.Typer,
    of: "type[Command]",
    name: str,
    help_: str | None = None,
    /,
    *,
    others: bool = True,
    **parts: Any,
) -> Callable[[Function], Function]:
    """Return a decorator that adds the command ``name``, which performs ``of`` and shows its answer.

    The function gets the answer, and the command itself if it has a second parameter. Its other parameters, which are
    keywords, are further options; those that all commands share it gets only if it names them. It returns a sentence or
    facts, in place of which ``--json`` prints the answer; ``Shown`` if that prints something else; or None if it prints
    everything itself. ``help_``: None for the docstring of the function; ``parts``: see ``with_fields``; ``others``:
    whether fields without a part are options, too; if not, they are left out, except ``reason``.
    """

    def decorate(show: Function) -> Function:
        wants_command = len(_parameters(show, keywords=False)) > 1

        def run(made: Any, own: Mapping[str, Any], *, json: bool, by: str | None, store: str | None) -> None:
            answer = perform(made, store, by)
            result = show(answer, made, **own) if wants_command else show(answer, **own)
            if result is not None:
                _print(result if isinstance(result, Shown) else Shown(answer, result), json=json)

        text = help_ or show.__doc__
        add_command(app, of, name, text, show, run, changes=_changes(of), others=others, **parts)
        return show

    return decorate


def list_command(
    app: typer.Typer,
    of: "type[Returns[Items[T]]]",
    name: str,
    help_: str,
    columns: Mapping[str, Callable[[T], Any]],
    /,
    *,
    empty: str = "",
    **parts: Any,
) -> None:
    """Add the command ``name``, which performs ``of`` and prints the items as a table. ``columns`` and ``empty``: see
    ``display.print_list``; ``parts``: see ``with_fields``."""

    def show(answer: Items[T], *, json: JsonOption = False) -> None:
        display.print_list(answer.items, columns, json=json, empty=empty)

    command(app, cast("type[Command]", of), name, help_, **parts)(show)


def steps(
    app: typer.Typer, of: "type[Command]", name: str, /, *, others: bool = True, **parts: Any
) -> Callable[[Function], Function]:
    """Return a decorator that adds the command ``name``, whose options are those of ``of``.

    The function gets the command, and what performs it and others (``Performs``). It does everything, and returns what
    is shown, or None if it prints that itself. Its other parameters are as those of ``command``.
    """

    def decorate(function: Function) -> Function:
        def run(made: Any, own: Mapping[str, Any], *, json: bool, by: str | None, store: str | None) -> None:
            with open_commands(store, by) as performer:
                result = function(made, performer, **own)
            if result is not None:
                _print(result, json=json)

        text = function.__doc__
        add_command(app, of, name, text, function, run, changes=_changes(of), others=others, **parts)
        return function

    return decorate


def add_command(
    app: typer.Typer,
    of: type[BaseModel],
    name: str,
    help_: str | None,
    function: Callable[..., Any],
    run: Callable[..., None],
    /,
    *,
    changes: bool,
    others: bool = True,
    **parts: Any,
) -> None:
    """Add the command ``name``, whose options are the fields of a model, the keywords of ``function``, and those that
    all commands share; ``--by`` only if it ``changes`` something.

    ``run`` gets the model that was made of the options, those of the options that the function names, and ``json``,
    ``by`` and ``store`` as keywords. ``others`` and ``parts``: as those of ``command``.
    """
    own = _parameters(function, keywords=True)
    is_shared = {
        "json": "json" in own or inspect.signature(function).return_annotation is not None,
        "by": changes,
        "store": True,
    }

    def call(values: Mapping[str, Any], /, **options: Any) -> None:
        shared = {name: options.get(name, p.default) for name, p in _SHARED.items()}
        run(of(**values), {name: options[name] for name in own}, **shared)

    parameters = [Parameter("values", Parameter.POSITIONAL_ONLY)]
    parameters += [p for p in own.values() if p.name not in _SHARED]
    parameters += [p for p in _SHARED.values() if is_shared[p.name]]
    call.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    call.__doc__ = help_
    without = set() if others else of.model_fields.keys() - parts.keys() - {"reason"}
    app.command(name)(with_option_groups(with_fields(of, without=without, **parts)(call)))


def _print(shown: Shown, *, json: bool) -> None:
    """Print the value as JSON, or the text for people."""
    if json:
        display.print_json(shown.value)
    elif isinstance(shown.text, str):
        typer.echo(display.safe(shown.text))
    else:
        display.print_facts(shown.text)


def _shared(*, json: JsonOption = False, by: ByOption = None, store: StoreOption = None) -> None:
    """Have the parameters that commands share, as ``inspect`` reads them."""


_SHARED = inspect.signature(_shared).parameters


def _changes(of: "type[Command]") -> bool:
    return of.route.method != "GET"


def _parameters(function: Callable[..., Any], *, keywords: bool) -> dict[str, Parameter]:
    """Return the parameters of a function that are keywords, or those that are not, by their names."""
    parameters = inspect.signature(function).parameters
    return {name: p for name, p in parameters.items() if (p.kind is Parameter.KEYWORD_ONLY) is keywords}
