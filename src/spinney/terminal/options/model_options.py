"""Arguments and options of a command made from the fields of a model of pydantic.

    class Find(BaseModel):
        name: Annotated[str, Field(description="The shelf."), typer.Argument(metavar="SHELF")]
        limit: int = Field(default=50, ge=1, description="The maximum number of rows.")

    @app.command()
    @with_fields(Find)
    def find(fields: Mapping[str, Any], json: JsonOption = False) -> None: ...

So a parameter that a route of the server takes too is described once: the description is the help, and limits are those
of the option. A field is an option named after it, unless typer's part says more. That part is in the annotation, or,
where the model must not know of typer, beside it: ``with_fields(Find, name=argument("SHELF"))``.
"""

import inspect
from collections.abc import Callable, Collection, Iterator
from copy import copy
from inspect import Parameter, Signature
from typing import Annotated, Any, get_args, get_type_hints

import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from typer.models import ArgumentInfo, OptionInfo


def with_fields(
    model: type[BaseModel], /, *, without: Collection[str] = (), **parts: Any
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that gives a command the fields of ``model`` as further arguments and options.

    The function gets their values in its first parameter, by name; ``without`` names fields that it declares
    itself or has no use for. Values are not validated before the function makes a ``model`` of them.

    ``parts``: typer's parts of fields, by their names (``options.arguments.argument`` and ``option``). Any other value
    is that of the field itself, which then has no option. Raises TypeError for the name of no field.
    """
    unknown = parts.keys() - model.model_fields
    if unknown:
        raise TypeError(f"{model.__name__} has no field {unknown.pop()!r}")
    constants = {
        name: part for name, part in parts.items() if not isinstance(part, ArgumentInfo | OptionInfo)
    }

    def decorate(run: Callable[..., None]) -> Callable[..., None]:
        types = get_type_hints(model)
        names = [name for name in model.model_fields if name not in without and name not in constants]
        options = [_option(name, types[name], model.model_fields[name], parts.get(name)) for name in names]
        own = list(inspect.signature(run, eval_str=True).parameters.values())[1:]

        def call(**values: Any) -> None:
            run(constants | {name: values.pop(name) for name in names}, **values)

        # Arguments stand before options, as they do on the command line.
        parameters = sorted([*options, *own], key=lambda p: not _is_argument(p))
        signature = Signature([p.replace(kind=Parameter.KEYWORD_ONLY) for p in parameters])
        call.__signature__ = signature  # type: ignore[attr-defined]
        call.__annotations__ = {p.name: p.annotation for p in parameters}
        call.__name__, call.__doc__ = run.__name__, run.__doc__
        return call

    return decorate


def _option(name: str, kind: Any, field: FieldInfo, part: ArgumentInfo | OptionInfo | None) -> Parameter:
    """Return the parameter of a field, as typer reads it.

    Typer's part is copied, since it may be shared by several models. Limits of pydantic become those of the option, so
    that the command line refuses a value before anything is opened.
    """
    infos = (copy(info) for info in (part, *field.metadata) if isinstance(info, ArgumentInfo | OptionInfo))
    info = next(infos, None) or typer.Option()
    info.help = info.help or (field.description or "").replace("`", "")
    if info.parser is not None:  # it has limits of its own
        kind = str | None
    else:
        for rule in _rules(field):
            info.min = getattr(rule, "ge", info.min)
            info.max = getattr(rule, "le", info.max)
    default = Parameter.empty if field.is_required() else field.default
    has_name = str(info.default).startswith("-")  # as Option("--name") has it
    if isinstance(info, OptionInfo) and not has_name:
        default = default if info.default is ... else info.default
        info.default, info.param_decls = ..., info.param_decls or (f"--{name.replace('_', '-')}",)
    info.show_default = default not in (Parameter.empty, None, "", False) and not isinstance(default, list)
    return Parameter(name, Parameter.KEYWORD_ONLY, annotation=Annotated[kind, info], default=default)


def _rules(field: FieldInfo) -> Iterator[Any]:
    """Yield the constraints of a field, also those of a type that may be None."""
    yield from field.metadata
    for kind in get_args(field.annotation):
        for rule in getattr(kind, "__metadata__", ()):
            yield from rule.metadata if isinstance(rule, FieldInfo) else (rule,)


def _is_argument(parameter: Parameter) -> bool:
    return any(isinstance(info, ArgumentInfo) for info in getattr(parameter.annotation, "__metadata__", ()))
