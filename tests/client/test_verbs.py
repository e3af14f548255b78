"""The verbs are those of the server: each operation of its OpenAPI document has one, and says the same."""

import inspect
import re
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from spinney import jobs as jobs_module
from spinney import operations as operations_module
from spinney.client import Client, calls
from spinney.client.calls import Call, command_call, verb
from spinney.client.verbs import Verbs
from spinney.commands import Command
from spinney.commands.job_filter import JobFilterBody
from spinney.features.bulk.commands import CanaryFields
from spinney.features.external.commands import Lane
from spinney.features.submission.commands import SubmitJob, SubmitJobs
from spinney.model.access import AccessScope, Rights, Role
from spinney.model.settings.holds import Scope
from spinney.server import openapi
from spinney.server.api import COMMANDS
from spinney.server.application import Parts, make
from spinney.store.sql import open_store
from spinney.web.identity import StoreAuthenticator
from spinney.web.settings import ServerSettings

PREFIX = "/api/v1"
EXCEPT = {
    ("GET", "/events"): "a stream: Client.watch",
    ("GET", "/jobs/{job}/files/{path}"): "a stream: Client.download",
    ("GET", "/jobs/{job}/attempts/{fence}/{stream}"): "a stream: Client.output",
}
UNSAID_BODY: Mapping[str, set[str]] = {
    "PlanBulk": {"canary", "expect", "one_by_one"},
    "RunBulk": {"dry_run", "exact"},
    "LayHold": {"dry_run"},
}
UNSAID_QUERY: Mapping[str, set[str]] = {"LiftHold": {"dry_run", "together"}, "PlanRelease": {"reason"}}
"""By verb: what another verb of the same operation says."""
GIVEN: Mapping[str, Mapping[str, Any]] = {
    "submit_with_files": {"job": SubmitJob(type="x"), "files": {"a/b.txt": b"x"}},
    "upload": {"file": "a/b.txt", "content": b"x"},
    "send_upload": {"content": b"x"},
}
"""Arguments that their annotations do not tell."""


@dataclass(frozen=True)
class Operation:
    """An operation of the OpenAPI document, and the verbs of the client that call it."""

    method: str
    path: str
    description: Mapping[str, Any]
    verbs: list[str]


@pytest.fixture(scope="module")
def document() -> Mapping[str, Any]:
    parts = Parts(
        settings=ServerSettings(),
        open_store=lambda: open_store("sqlite://"),
        folders=Path("/nowhere"),
        run_dir=None,
        identity=StoreAuthenticator,
    )
    return openapi.document(make(parts), PREFIX)


@pytest.fixture(scope="module")
def operations(document: Mapping[str, Any]) -> list[Operation]:
    operations_read = [
        Operation(method=method.upper(), path=path.removeprefix(PREFIX), description=description, verbs=[])
        for path, methods in document["paths"].items()
        for method, description in methods.items()
    ]
    for name, call in made().items():
        # An address that several patterns fit is that of the plainest.
        fitting = [each for each in operations_read if _fits(call, each.method, each.path)]
        min(fitting, key=lambda each: each.path.count("{")).verbs.append(name)
    return operations_read


@cache
def made() -> Mapping[str, Call[Any]]:
    """By name, the call that each verb makes when everything is said."""
    calls: dict[str, Call[Any]] = {}
    for name, member in inspect.getmembers_static(Verbs):
        if isinstance(member, verb):
            calls[name] = member._make(None, **_arguments(name, member._make))
    for command in commands():
        values = {name: _value(field.annotation) for name, field in command.model_fields.items()}
        values |= {"lines": [b"{}"]} if command.route.lines else {}
        calls[command.__name__] = command_call(command.model_construct(**values))
    return calls


def commands() -> list[type[Command]]:
    return [SubmitJob, SubmitJobs, *(command for group in COMMANDS.values() for command in group)]


def _arguments(name: str, function: Any) -> dict[str, Any]:
    hints = typing.get_type_hints(function, localns={"SubmitJob": SubmitJob})
    arguments: dict[str, Any] = {}
    for parameter in list(inspect.signature(function).parameters.values())[1:]:
        hint = hints[parameter.name]
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            words = typing.get_args(hint)[0]
            arguments |= {key: _value(each) for key, each in typing.get_type_hints(words).items()}
        else:
            arguments[parameter.name] = _value(hint)
    return {**arguments, **GIVEN.get(name, {})}


def _value(hint: Any) -> Any:
    hint = hint.__origin__ if typing.get_origin(hint) is typing.Annotated else hint
    kinds = [part for part in (typing.get_args(hint) or (hint,)) if part is not type(None)]
    kinds = [part.__origin__ if typing.get_origin(part) is typing.Annotated else part for part in kinds]
    if typing.get_origin(hint) not in (typing.Union, type(int | None)):
        kinds = [hint]
    values = {
        int: 7,
        str: "x",
        float: 1.5,
        bool: True,
        Rights: Rights(role=Role.VIEWER),
        CanaryFields: CanaryFields(first=1),
        Lane: Lane(type="talk", stage="listen"),
        JobFilterBody: JobFilterBody(type="x"),
        Scope: Scope.QUEUE,
    }
    first = kinds[0]
    if first in values:
        return values[first]
    if isinstance(first, type) and issubclass(first, Enum):
        return next(iter(first))
    origin = typing.get_origin(first) or first
    if typing.is_typeddict(first):
        return {"type": "x"}
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"a": 1}
    return [_value(part) for part in typing.get_args(first)[:1]] or [1]


def _fits(call: Call[Any], method: str, path: str) -> bool:
    pattern = re.sub(r"\\{path\\}", ".+", re.escape(path))
    return (
        call.method == method
        and re.fullmatch(re.sub(r"\\{[a-z_]+\\}", "[^/]+", pattern), call.path) is not None
    )


def test_every_operation_has_a_verb(operations: list[Operation]) -> None:
    own = [
        each for each in operations if not each.path.startswith("/apps/")
    ]  # those are for applications to have
    assert {(each.method, each.path) for each in own if not each.verbs} == set(EXCEPT)
    assert sum(len(each.verbs) for each in operations) == len(made()) > 90


def test_parameters_are_those_of_the_operation(operations: list[Operation]) -> None:
    for each in operations:
        names = {p["name"] for p in each.description.get("parameters", ()) if p["in"] == "query"}
        for name in each.verbs:
            assert {key for key, _ in made()[name].query} == names - UNSAID_QUERY.get(name, set()) - {
                "format"
            }, name


def test_bodies_are_those_of_the_operation(document: Mapping[str, Any], operations: list[Operation]) -> None:
    checked = 0
    for each in operations:
        schema = (
            each.description.get("requestBody", {})
            .get("content", {})
            .get("application/json", {})
            .get("schema")
        )
        for name in each.verbs:
            call = made()[name]
            if schema is None or call.files or call.content is not None:
                continue
            names = set(_resolved(document, schema)["properties"])
            assert set(call.json or {}) == names - UNSAID_BODY.get(name, set()), name
            checked += 1
    assert checked > 30


def test_answers_are_those_of_the_operation(document: Mapping[str, Any], operations: list[Operation]) -> None:
    """The fields of the client's dataclasses are those that the server documents."""
    answers, checked = _answers(), 0
    for each in operations:
        schema = _answer_schema(document, each.description)
        for name in each.verbs:
            if schema is None or "properties" not in schema or not is_dataclass(answers[name]):
                continue
            own = {field.name for field in fields(answers[name])}
            assert own <= set(schema["properties"]), name
            checked += 1
    assert checked > 60


def test_a_client_has_them_with_their_words() -> None:
    with Client("http://127.0.0.1:1") as client:
        assert (
            client.me.__doc__
            == "Return the caller's name, how the caller was identified, and the caller's rights."
        )
        assert callable(client.me)
        assert [*inspect.signature(client.send_upload).parameters] == ["inbox", "upload", "content", "offset"]
    assert calls.path("/users/{}", "a/b c") == "/users/a%2Fb%20c"


def _answers() -> Mapping[str, Any]:
    """By verb, the class of its answer."""
    properties: dict[str, Any] = {}
    for name, member in inspect.getmembers_static(Verbs):
        if isinstance(member, verb):
            (answer,) = typing.get_args(
                typing.get_type_hints(member._make, localns={"SubmitJob": SubmitJob})["return"]
            )
            properties[name] = typing.get_origin(answer) or answer
    return properties | {
        each.__name__: typing.get_origin(each.answer()) or each.answer() for each in commands()
    }


def _answer_schema(document: Mapping[str, Any], operation: Mapping[str, Any]) -> Mapping[str, Any] | None:
    schemas = [
        response["content"]["application/json"]["schema"]
        for status, response in operation["responses"].items()
        if status.startswith("2") and "application/json" in response.get("content", {})
    ]
    if len(schemas) > 1:  # a dry run has a status of its own
        return _resolved(document, {"anyOf": schemas})
    return _resolved(document, schemas[0]) if schemas else None


def _resolved(document: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    if "anyOf" in schema:
        parts = [_resolved(document, each) for each in schema["anyOf"] if each.get("type") != "null"]
        return {"properties": {k: v for part in parts for k, v in part.get("properties", {}).items()}}
    reference = schema.get("$ref")
    if reference is None:
        return schema
    return _resolved(document, document["components"]["schemas"][reference.rpartition("/")[2]])


def test_applications_import_every_command_from_one_public_module() -> None:
    assert {command: getattr(operations_module, command.__name__, None) for command in commands()} == {
        command: command for command in commands()
    }


def test_applications_import_the_types_of_the_fields_of_commands_from_public_modules() -> None:
    classes = {each for command in commands() for each in _classes(command)} - {*commands()}

    assert {Scope, AccessScope} <= classes
    assert [
        each
        for each in classes
        if each is not getattr(operations_module, each.__name__, None) and each is not jobs_module.State
    ] == []


def _classes(annotation: Any) -> Iterator[type]:
    """Yield a class of Spinney's, and those in the annotations of its fields, at any depth."""
    if inspect.isclass(annotation) and annotation.__module__.startswith("spinney."):
        yield annotation
        names = getattr(annotation, "model_fields", {}) or getattr(annotation, "__dataclass_fields__", {})
        hints = typing.get_type_hints(annotation) if names else {}
        parts = [hints[name] for name in names]
    else:
        parts = list(typing.get_args(annotation))
    for part in parts:
        yield from _classes(part)


def test_the_document_names_every_verb() -> None:
    # given
    text = (Path(__file__).parents[2] / "docs" / "client.md").read_text()

    # when
    names = {
        name
        for row in re.findall(r"^\| .* \| (.*) \|$", text, flags=re.M)
        for name in re.findall(r"`(\w+)`", row)
    }

    # then
    assert names == set(made()) | {"do", "download", "output"}
