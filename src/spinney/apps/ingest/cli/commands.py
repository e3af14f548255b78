"""How a command of the command line is made from a verb: the fields of the verb are its arguments and options.

A field is an option named after it, with its description as help, unless typer's part of its annotation says more
(``verbs.base``). So a parameter of a verb is described once, for the API and for the command line. What remains to be
written for a command is how its answer looks::

    @command(app, Sweep)
    def show_sweep(query: Sweep, answer: Mapping[str, Any], *, json: JsonOption = False) -> None: ...

A command that does more than one verb, or reads files, is a function of Typer's whose options come from
``with_fields``.
"""

import inspect
from collections.abc import Callable, Collection, Mapping
from copy import copy
from inspect import Parameter, Signature
from typing import Annotated, Any, TypeVar, get_type_hints

import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from typer.models import ArgumentInfo, OptionInfo

from spinney.apps.ingest.cli.session import open_session
from spinney.apps.ingest.verbs import Verb
from spinney.command_line import ByOption, StoreOption

V = TypeVar("V", bound=Verb)
Show = Callable[..., None]
"""Prints the answer of a verb; it gets the verb, the answer, and the values of options of its own."""


def command(app: typer.Typer, verb: type[V], name: str | None = None) -> Callable[[Show], Show]:
    """Add a command that runs ``verb`` and shows its answer by the decorated function.

    The command's options are the fields of the verb, the keyword parameters of the function, ``--by`` if the
    verb changes something, and ``--store``. Its help is the docstring of the verb, its name that of the verb
    unless ``name`` is given. The function gets the verb with its parameters and the answer as JSON values,
    and returns nothing; it may end the command with ``typer.Exit``. It is called after the session has been
    closed.
    """

    def decorate(show: Show) -> Show:
        def run(
            fields: Mapping[str, Any], /, *, by: ByOption = None, store: StoreOption = None, **own: Any
        ) -> None:
            query = verb(**fields)
            with open_session(store, by) as session:
                answer = session.do(query)
            show(query, answer, **own)

        own = [p for p in _parameters(show) if p.kind is Parameter.KEYWORD_ONLY]
        shared = [p for p in _parameters(run) if p.name == "store" or (p.name == "by" and verb.changes)]
        run.__doc__ = verb.__doc__
        app.command(name or verb.name)(_with_fields(run, verb, verb.model_fields, [*own, *shared]))
        return show

    return decorate


def with_fields(
    model: type[BaseModel], *, without: Collection[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that gives a command the fields of ``model`` as further arguments and options.

    The function gets their values in its first parameter, by name; ``without`` names fields that it declares
    itself or has no use for. Values are not validated before the function makes a ``model`` of them.
    """

    def decorate(run: Callable[..., None]) -> Callable[..., None]:
        names = [name for name in model.model_fields if name not in without]
        return _with_fields(run, model, names, _parameters(run)[1:])

    return decorate


def _with_fields(
    run: Callable[..., None], model: type[BaseModel], names: Collection[str], own: Collection[Parameter]
) -> Callable[..., None]:
    """Return a function for Typer with these parameters, which calls ``run`` with the values of the fields as one."""
    types = get_type_hints(model)
    options = [_option(name, types[name], model.model_fields[name]) for name in names]

    def call(**values: Any) -> None:
        run({name: values.pop(name) for name in names}, **values)

    # Arguments stand before options, as they do on the command line.
    parameters = sorted([*options, *own], key=lambda p: not _is_argument(p))
    signature = Signature([p.replace(kind=Parameter.KEYWORD_ONLY) for p in parameters])
    call.__signature__ = signature  # type: ignore[attr-defined]
    call.__annotations__ = {p.name: p.annotation for p in parameters}
    call.__name__, call.__doc__ = run.__name__, run.__doc__
    return call


def _option(name: str, kind: Any, field: FieldInfo) -> Parameter:
    """Return the parameter of a field, as typer reads it.

    Typer's part of the annotation is copied, since types such as ``BatchName`` are shared by several verbs.
    Limits of Pydantic become those of the option, so that the command line refuses a value before anything is
    opened.
    """
    infos = (copy(info) for info in field.metadata if isinstance(info, ArgumentInfo | OptionInfo))
    info = next(infos, None) or typer.Option()
    info.help = (field.description or "").replace("`", "")
    for rule in field.metadata:
        info.min = getattr(rule, "ge", info.min)
        info.max = getattr(rule, "le", info.max)
    if isinstance(info, OptionInfo) and info.default is ...:  # no name of its own, as in Option("--name")
        info.param_decls = (f"--{name.replace('_', '-')}",)
    info.show_default = field.default not in (None, "", False) and not isinstance(field.default, list)
    default = Parameter.empty if field.is_required() else field.default
    return Parameter(name, Parameter.KEYWORD_ONLY, annotation=Annotated[kind, info], default=default)


def _is_argument(parameter: Parameter) -> bool:
    return any(isinstance(info, ArgumentInfo) for info in parameter.annotation.__metadata__)


def _parameters(function: Callable[..., None]) -> list[Parameter]:
    return list(inspect.signature(function, eval_str=True).parameters.values())
