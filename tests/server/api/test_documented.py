"""The OpenAPI document against a server that listens, as each role: whatever is asked, nothing is answered but what is
documented.

Requests are made up by schemathesis, such as fit the document and such as do not. The short form asks every operation
a little; SPINNEY_LONG=1 asks much.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import requests
import schemathesis
from fastapi import FastAPI
from fastapi.routing import APIRoute
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from jsonschema import Draft202012Validator
from schemathesis import Case, GenerationMode, openapi
from schemathesis.checks import not_a_server_error
from schemathesis.schemas import APIOperation
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from http_listener import Listening
from long_tests import LONG
from spinney.model.access import Role
from spinney.server import api
from spinney.server.openapi import document
from spinney.web.api import examples
from spinney.web.api.json_routes import PREFIX
from spinney.web.settings import ServerSettings

from ..conftest import unserved

EXAMPLES = 100 if LONG else 1
MODES = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
"""What fits the document, and what does not."""
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


ROLES = (*(str(role) for role in Role), "limited", "admin")
"""Who may most asks last, when others have been refused, and once more for what he has changed himself."""
PATIENCE_S = 30.0


@dataclass
class Live:
    """A server that listens, and who asks it."""

    url: str
    connection: requests.Session = field(default_factory=requests.Session)

    def __post_init__(self) -> None:
        self.connection.trust_env = False  # proxies would be looked for before each request

    def ask(self, role: str, method: str, url: str, **sent: Any) -> requests.Response:
        made = requests.Request(method, url, **sent)
        made.headers = {**(made.headers or {}), "X-Asker": role}
        answer = self.connection.send(made.prepare(), stream=True, timeout=PATIENCE_S, allow_redirects=False)
        if answer.headers.get("content-type", "").startswith("text/event-stream"):
            answer._content = b""  # it would go on as long as anybody listens
            answer.close()
        return answer


@schemathesis.serializer("application/x-ndjson")
def lines(context: object, value: object) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """With something of everything, so that answers have something in them."""
    with unserved(tmp_path_factory.mktemp("documented")) as world:
        jobs = world.site.submit("one", n=5, collection="lab", submitter="submitter")
        world.site.submit("double", {"n": 1, "pin": "open sesame"})
        world.site.submit("locked", {"serno": "1"})
        top = world.site.submit_one("batch", {})
        leases = world.site.claim()
        world.site.spawn(next(lease for lease in leases if lease.job_id == top), "one", n=3)
        for lease in leases:
            (world.site.fail if lease.job_id in jobs[:2] else world.site.pass_)(lease)
        listening = Listening(world.app, ServerSettings())
        yield Live(listening.url)
        listening.end()


LABELS = [
    f"{method} {route.path_format}"
    for part in api.PARTS
    for route in part.routes
    if isinstance(route, APIRoute)
    for method in sorted(route.methods)
]
"""Of all operations. Those themselves are read from the document, which takes a second, where they are asked."""


@pytest.fixture(scope="module")
def api_document(live: Live) -> dict[str, Any]:
    """Return the OpenAPI document of the server."""
    return dict(live.ask("viewer", "get", f"{live.url}{PREFIX}/openapi.json").json())


@pytest.fixture(scope="module")
def operations() -> dict[str, APIOperation]:
    """By label; without those of applications."""
    app = FastAPI(title="Spinney", version="0")
    app.state.beside, app.state.folders = [], Path()
    api.add_to(app)
    output = (result.ok() for result in openapi.from_dict(document(app, PREFIX)).get_all_operations())
    return {operation.label: operation for operation in output}


def each(api_document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, item in api_document["paths"].items():
        for method, operation in item.items():
            yield f"{method} {path}", operation


def fits(api_document: dict[str, Any], value: object, schema: dict[str, Any]) -> list[str]:
    """Return what is wrong with the value by its schema."""
    whole = {**schema, "components": api_document["components"]}
    return [f"{error.json_path}: {error.message}" for error in Draft202012Validator(whole).iter_errors(value)]


@pytest.mark.parametrize("mode", MODES, ids=[mode.value for mode in MODES])
@pytest.mark.parametrize("label", LABELS)
def test_nothing_but_documented_answers(
    live: Live, operations: dict[str, APIOperation], label: str, mode: GenerationMode
) -> None:
    operation = operations[label]

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=not LONG,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def ask(case: Case) -> None:
        for role in ROLES:
            answer = live.ask(role, **case.as_transport_kwargs(base_url=live.url))
            case.validate_response(answer, checks=CHECKS)

    try:
        ask()
    except Unsatisfiable:
        assert mode is GenerationMode.NEGATIVE, label  # whatever is sent there fits


def test_every_documented_operation_is_asked(operations: dict[str, APIOperation]) -> None:
    assert sorted(operations) == sorted(LABELS)


def test_every_operation_is_told(api_document: dict[str, Any]) -> None:
    for name, operation in each(api_document):
        assert operation["summary"], name
        assert operation["description"], name
        assert {"401", "403", "422"} <= set(operation["responses"]), name


def test_every_body_and_every_answer_has_an_example_that_fits(api_document: dict[str, Any]) -> None:
    for name, operation in each(api_document):
        sent = operation.get("requestBody", {}).get("content", {})
        answers = [
            answer.get("content", {}) for code, answer in operation["responses"].items() if code < "300"
        ]
        for content in (sent, *answers):
            for kind, of in content.items():
                if kind in ("application/json", "application/x-ndjson", "text/plain", "text/event-stream"):
                    assert fits(api_document, of["example"], of["schema"]) == [], (name, kind)


def test_every_parameter_has_an_example_a_default_or_a_choice(api_document: dict[str, Any]) -> None:
    for name, operation in each(api_document):
        for parameter in operation.get("parameters", ()):
            schema = parameter["schema"]
            if "$ref" in schema:
                schema = api_document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
            if "example" in parameter:
                assert fits(api_document, parameter["example"], parameter["schema"]) == [], (
                    name,
                    parameter["name"],
                )
            else:
                assert {"examples", "default", "enum"} & {*schema, *parameter}, (name, parameter["name"])


def test_every_body_that_is_written_out_is_that_of_an_operation(api_document: dict[str, Any]) -> None:
    assert examples.BODIES.keys() <= api_document["components"]["schemas"].keys()


def test_what_may_be_wrong_with_any_body_is_told_of_each(api_document: dict[str, Any]) -> None:
    for name, operation in each(api_document):
        if "requestBody" in operation:
            assert {"400", "408", "413", "415", "422"} <= set(operation["responses"]), name
