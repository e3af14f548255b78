"""The routes of commands: parameters of the path, query and body are made from a command's fields."""

from collections.abc import Callable, Sequence
from inspect import Parameter, Signature, cleandoc
from typing import Annotated, Any

from fastapi import APIRouter, Body, Path, Query
from pydantic import BaseModel, ConfigDict, create_model
from pydantic.fields import FieldInfo

from spinney.commands import Command
from spinney.web.api.json_routes import routes
from spinney.web.problems import documented
from spinney.web.request_context import Authenticated, RequestContext

_KW = Parameter.KEYWORD_ONLY


def command_routes(tag: str, commands: Sequence[type[Command]]) -> APIRouter:
    """Return a router with a route of each."""
    router = routes(tag)
    for command in commands:
        summary, _, description = cleandoc(command.__doc__ or "").partition("\n\n")
        answer = command.answer()
        router.add_api_route(
            command.route.path,
            _endpoint(command),
            methods=[command.route.method],
            name=command.__name__,
            summary=" ".join(summary.split()).rstrip("."),
            description=description or None,
            status_code=204 if answer is None else command.route.status,
            responses=documented(*((404, 409, 415) if command.route.has_body else (404, 409))),
        )
    return router


def _endpoint(command: type[Command]) -> Callable[..., Any]:
    route = command.route

    async def endpoint(context: RequestContext, **values: Any) -> Any:
        rest = values.pop("rest", None)
        asked = command(**values, **(_given(rest) if rest is not None else {}))
        return await context.run(lambda control: control.do(asked), long=route.long)

    parameters = [Parameter("context", _KW, annotation=Authenticated)]
    fields = command.model_fields
    parameters += [
        Parameter(name, _KW, annotation=_annotated(fields[name], Path())) for name in route.in_path
    ]
    others = {name: field for name, field in fields.items() if name not in route.in_path}
    if others:
        model = _model(command, others)
        if not route.has_body:
            parameters.append(Parameter("rest", _KW, annotation=Annotated[model, Query()]))
        elif any(field.is_required() for field in others.values()):
            parameters.append(Parameter("rest", _KW, annotation=Annotated[model, Body()]))
        else:
            parameters.append(Parameter("rest", _KW, annotation=Annotated[model, Body()], default=model()))
    endpoint.__signature__ = Signature(parameters, return_annotation=command.answer())  # type: ignore[attr-defined]
    endpoint.__name__ = command.__name__
    endpoint.__doc__ = command.__doc__
    return endpoint


def _annotated(field: FieldInfo, place: Any) -> Any:
    """A parameter of that field's type, constraints and words."""
    place.description, place.examples = field.description, field.examples
    return Annotated[(field.annotation, *field.metadata, place)]


def _model(command: type[Command], fields: dict[str, FieldInfo]) -> type[BaseModel]:
    """What is sent beside the path. A query's values are texts, so they are turned into what the fields take."""
    made: dict[str, Any] = {name: (field.annotation, field) for name, field in fields.items()}
    config = ConfigDict(extra="forbid", strict=command.route.has_body, frozen=True)
    return create_model(command.__name__, __config__=config, __doc__=command.__doc__, **made)


def _given(rest: BaseModel) -> dict[str, Any]:
    """What the request says; what it leaves out is the command's own default."""
    return {name: getattr(rest, name) for name in rest.model_fields_set}
