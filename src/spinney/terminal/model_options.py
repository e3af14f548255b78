"""Arguments and options of a command made from the fields of a model of pydantic.

    class Find(BaseModel):
        name: Annotated[str, Field(description="The shelf."), typer.Argument(metavar="SHELF")]
        limit: int = Field(default=50, ge=1, description="At most so many rows.")

    @app.command()
    @with_fields(Find)
    def find(fields: Mapping[str, Any], json: JsonOption = False) -> None: ...

So a parameter that a route of the server takes too is described once: the description is the help, and limits are those
of the option. A field is an option named after it, unless typer's part of its annotation says more.
"""

import inspect
from collections.abc import Callable, Collection
from copy import copy
from inspect import Parameter, Signature
from typing import Annotated, Any, get_type_hints

import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from typer.models import ArgumentInfo, OptionInfo


def with_fields(
    model: type[BaseModel], *, without: Collection[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that gives a command the fields of ``model`` as further arguments and options.

    The function gets their values in its first parameter, by name; ``without`` names fields that it declares
    itself or has no use for. Values are not validated before the function makes a ``model`` of them.
    """

    def decorate(run: Callable[..., None]) -> Callable[..., None]:
        types = get_type_hints(model)
        names = [name for name in model.model_fields if name not in without]
        options = [_option(name, types[name], model.model_fields[name]) for name in names]
        own = list(inspect.signature(run, eval_str=True).parameters.values())[1:]

        def call(**values: Any) -> None:
            run({name: values.pop(name) for name in names}, **values)

        # Arguments stand before options, as they do on the command line.
        parameters = sorted([*options, *own], key=lambda p: not _is_argument(p))
        signature = Signature([p.replace(kind=Parameter.KEYWORD_ONLY) for p in parameters])
        call.__signature__ = signature  # type: ignore[attr-defined]
        call.__annotations__ = {p.name: p.annotation for p in parameters}
        call.__name__, call.__doc__ = run.__name__, run.__doc__
        return call

    return decorate


def _option(name: str, kind: Any, field: FieldInfo) -> Parameter:
    """Return the parameter of a field, as typer reads it.

    Typer's part of the annotation is copied, since types may be shared by several models. Limits of pydantic become
    those of the option, so that the command line refuses a value before anything is opened.
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
