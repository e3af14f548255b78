"""The routes of commands: parameters of the path, query and body are made from a command's fields.

Where a field is sent follows from the route: those named in its path are there; the others of a GET or
DELETE, and those that ``Route.query`` names, are in the query; the rest is one JSON body. A dry run, lines of
progress and CSV are other forms of the same route, so that a client needs no further address for them."""

from collections.abc import Callable, Collection, Sequence
from inspect import Parameter, Signature, cleandoc
from typing import Annotated, Any

from fastapi import APIRouter, Body, Path, Query, Request
from pydantic import BaseModel, ConfigDict, WithJsonSchema, create_model
from pydantic.fields import FieldInfo
from starlette.background import BackgroundTask
from starlette.responses import StreamingResponse

from spinney.commands import Command, csv_lines
from spinney.commands.csv_lines import CSV
from spinney.web.api import csv_lists
from spinney.web.api.command_progress import CommandRun
from spinney.web.api.json_routes import respond, routes
from spinney.web.media_types import JSON, NDJSON, preferred
from spinney.web.problems import documented
from spinney.web.request_context import Authenticated, RequestContext

_KW = Parameter.KEYWORD_ONLY


def command_routes(tag: str, commands: Sequence[type[Command]]) -> APIRouter:
    """Return a router with a route for each command, in the group ``tag`` of the document. A command that is
    the dry run of another has no route of its own: the other's has a parameter ``dry_run``. Summary and
    description come from the docstring's first paragraph and the rest."""
    router = routes(tag)
    plans = {_place(command): command for command in commands if command.route.dry_run}
    for command in commands:
        if command.route.dry_run:
            continue
        plan = plans.get(_place(command))
        summary, _, description = cleandoc(command.__doc__ or "").partition("\n\n")
        answer = command.answer()
        router.add_api_route(
            command.route.path,
            _endpoint(command, plan),
            methods=[command.route.method],
            name=command.__name__,
            summary=" ".join(summary.split()).rstrip("."),
            description=description or None,
            status_code=204 if answer is None else command.route.status,
            responses=documented(*((404, 409, 415) if command.route.has_body else (404, 409)))
            | _lines_documented(command)
            | _csv_documented(command)
            | _plan_documented(command, plan),
        )
    return router


def _lines_documented(command: type[Command]) -> dict[int | str, dict[str, Any]]:
    """Document the second form of the answer of a command with progress: lines of JSON."""
    if not command.progress:
        return {}
    names = " or ".join(f'`{{"{name}": …}}`' for name in command.progress)
    return {
        200: {
            "description": f"Its answer. With `Accept: {NDJSON}` it is lines: {names} while it runs, and a last one, "
            '`{"report": …}` with the answer or `{"problem": …}`.',
            "content": {NDJSON: {"schema": {"type": "string"}}},
        }
    }


def _csv_documented(command: type[Command]) -> dict[int | str, dict[str, Any]]:
    """Document the second form of the answer of a list: CSV."""
    item = csv_lines.item_type(command.answer()) if command.route.method == "GET" else None
    if item is None:
        return {}
    header = csv_lines.header(item).decode()
    return {
        200: {"description": "The list.", "content": {CSV: {"schema": {"type": "string"}, "example": header}}}
    }


def _plan_documented(command: type[Command], plan: type[Command] | None) -> dict[int | str, dict[str, Any]]:
    """Document the answer of a dry run where its status, 200, is not that of the command."""
    if plan is None or command.route.status == 200:
        return {}
    return {200: {"description": "With `dry_run`: what it would do.", "model": plan.answer()}}


def _place(command: type[Command]) -> tuple[str, str]:
    """Return method and path, by which a command and its dry run are matched."""
    return command.route.method, command.route.path


def _endpoint(command: type[Command], plan: type[Command] | None) -> Callable[..., Any]:
    """Return the function of the route of a command, with a signature from which FastAPI makes parameters and
    documentation: fields of the path, of the query and of the body. ``plan``: the command that a dry run performs."""
    route = command.route

    item = csv_lines.item_type(command.answer()) if route.method == "GET" else None

    async def endpoint(context: RequestContext, **values: Any) -> Any:
        for name in ("query", "body"):
            values |= set_fields(values.pop(name, None))
        if item is not None and csv_lists.is_wanted(values.pop("request"), values.pop(csv_lists.FIELD, None)):
            return await csv_lists.answer(context, command(**values), item)
        if plan is not None and values.pop("dry_run", False):
            planned = plan(**_fields(plan, values))
            return respond(await context.run(lambda control: control.do(planned), long=planned.is_long()))
        request = values.pop("request", None)
        requested = command(**(values if plan is None else _fields(command, values)))
        if request is not None:
            run = CommandRun(context, request, requested)
            if preferred(request, (JSON, NDJSON)) == NDJSON:
                return StreamingResponse(run.lines(), media_type=NDJSON)
            return await run.answer()
        long, disk = requested.is_long(), requested.uses_folders()
        done = await context.run(lambda control: control.do(requested), long=long, disk=disk)
        if command.then is None:
            return done
        return respond(done, route.status, background=BackgroundTask(context.run, command.then, long=True))

    parameters = [Parameter("context", _KW, annotation=Authenticated)]
    if command.progress or item is not None:
        parameters.append(Parameter("request", _KW, annotation=Request))
    fields, answer = dict(command.model_fields), command.answer()
    if item is not None:
        fields[csv_lists.FIELD] = csv_lists.format_field()
    if plan is not None:
        words = cleandoc(plan.__doc__ or "")
        fields |= plan.model_fields | {
            "dry_run": FieldInfo(annotation=bool, default=False, description=words)
        }
        if route.status == 200:
            answer |= plan.answer()
    parameters += [Parameter(name, _KW, annotation=_in_path(fields[name])) for name in route.in_path]
    others = {name: field for name, field in fields.items() if name not in route.in_path}
    query = {name: others.pop(name) for name in [*others] if not route.has_body or name in route.query}
    if query:
        model = _model(command, query, strict=False)
        parameters.append(Parameter("query", _KW, annotation=Annotated[model, Query()]))
    if others:
        model = _model(command, others, strict=True)
        default = Parameter.empty if any(field.is_required() for field in others.values()) else model()
        parameters.append(Parameter("body", _KW, annotation=Annotated[model, Body()], default=default))
    endpoint.__signature__ = Signature(parameters, return_annotation=answer)  # type: ignore[attr-defined]
    endpoint.__name__ = command.__name__
    endpoint.__doc__ = command.__doc__
    endpoint.progress = command.progress  # type: ignore[attr-defined]  # for the OpenAPI document
    return endpoint


def _fields(command: type[Command], values: dict[str, Any]) -> dict[str, Any]:
    """Return those values that are fields of the command."""
    return {name: value for name, value in values.items() if name in command.model_fields}


def _in_path(field: FieldInfo) -> Any:
    """Return the annotation of a path parameter with the field's type, constraints and description."""
    metadata = [  # a schema that a type brings along keeps examples out that stand beside it
        WithJsonSchema({**part.json_schema, "examples": field.examples})
        if isinstance(part, WithJsonSchema) and part.json_schema and field.examples
        else part
        for part in field.metadata
    ]
    return Annotated[
        (field.annotation, *metadata, Path(description=field.description, examples=field.examples))
    ]


def request_model(
    command: type[Command], *, without: Collection[str], strict: bool = True
) -> type[BaseModel]:
    """Return the model of a request that has the command's fields, except those in ``without``, for a route
    by hand; ``set_fields`` reads it. ``strict``: see ``_model``."""
    fields = {name: field for name, field in command.model_fields.items() if name not in without}
    return _model(command, fields, strict=strict)


def _model(command: type[Command], fields: dict[str, FieldInfo], *, strict: bool) -> type[BaseModel]:
    """Return a model of what is sent beside the path. The values of a query are texts (``strict`` is False), and are
    converted to what the fields take."""
    made: dict[str, Any] = {name: (field.annotation, field) for name, field in fields.items()}
    config = ConfigDict(extra="forbid", strict=strict, frozen=True)
    return create_model(command.__name__, __config__=config, __doc__=command.__doc__, **made)


def set_fields(part: BaseModel | None) -> dict[str, Any]:
    """Return the fields that the request sets; for the others the command has its defaults. A field that was
    sent as null is among them: to a command that changes something, null says more than silence."""
    return {} if part is None else {name: getattr(part, name) for name in part.model_fields_set}
