"""What generators of clients need of the OpenAPI document: names of their own, and a type for all that is answered."""

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from jsonschema import Draft202012Validator

from spinney.server import api
from spinney.server.openapi import document
from spinney.web.api.json_routes import LINE_SCHEMA, PREFIX
from spinney.web.media_types import JSON, NDJSON

ROOT = Path(__file__).parents[3]
GENERATOR = Path(sys.prefix) / "openapi-client" / "bin" / "openapi-python-client"


@pytest.fixture(scope="module")
def described() -> dict[str, Any]:
    app = FastAPI(title="Spinney", version="0")
    app.state.beside, app.state.folders = [], Path()
    api.add_to(app)
    return document(app, PREFIX)


def operations(described: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, item in described["paths"].items():
        for method, operation in item.items():
            yield f"{method} {path}", operation


def test_no_two_schemas_have_one_title(described: dict[str, Any]) -> None:
    schemas = described["components"]["schemas"]
    titles = Counter(schema.get("title", name) for name, schema in schemas.items())
    assert {title: n for title, n in titles.items() if n > 1} == {}
    assert [name for name in schemas if not re.fullmatch(r"[A-Z]\w*[A-Za-z0-9]", name)] == []


def test_no_two_operations_have_one_name(described: dict[str, Any]) -> None:
    names = Counter(operation["operationId"] for _, operation in operations(described))
    assert {name: n for name, n in names.items() if n > 1} == {}


def test_every_list_says_what_it_lists(described: dict[str, Any]) -> None:
    schemas = described["components"]["schemas"]
    lists = {name: schema for name, schema in schemas.items() if name.endswith(("List", "Page"))}
    assert len(lists) >= 24
    for name, schema in lists.items():
        items = schema["properties"]["items"]["items"]
        assert items["$ref"].removeprefix("#/components/schemas/") in schemas, name


def test_every_reference_leads_somewhere(described: dict[str, Any]) -> None:
    references = set(re.findall(r'"\$ref": "#/components/schemas/([^"]+)"', json.dumps(described)))
    assert references - described["components"]["schemas"].keys() == set()


def test_a_dry_run_is_answered_with_its_own_status(described: dict[str, Any]) -> None:
    responses = described["paths"][f"{PREFIX}/holds"]["post"]["responses"]
    schemas = {status: responses[status]["content"][JSON]["schema"] for status in ("200", "201")}
    assert schemas == {
        "200": {"$ref": "#/components/schemas/HoldPreview"},
        "201": {"$ref": "#/components/schemas/Hold"},
    }


def test_json_lines_say_what_a_line_is(described: dict[str, Any]) -> None:
    contents = [
        (name, part["content"][NDJSON])
        for name, operation in operations(described)
        for part in (operation.get("requestBody", {}), *operation["responses"].values())
        if NDJSON in part.get("content", {})
    ]
    assert {"post /api/v1/jobs/batch", "post /api/v1/jobs/verbs"} <= {name for name, _ in contents}
    for name, content in contents:
        schema = {**content["schema"][LINE_SCHEMA], "components": described["components"]}
        for line in content["example"].splitlines():
            errors = [error.message for error in Draft202012Validator(schema).iter_errors(json.loads(line))]
            assert errors == [], name


@pytest.mark.skipif(
    not GENERATOR.exists(), reason="openapi-python-client is not there; 'make test' installs it for itself"
)
def test_a_client_is_generated_without_a_warning(described: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "openapi.json").write_text(json.dumps(described))
    words = [
        "generate",
        "--path",
        "openapi.json",
        "--output-path",
        "made",
        "--meta",
        "none",
        "--fail-on-warning",
    ]
    config = ["--config", ROOT / "docs" / "openapi-python-client.yml"]
    result = subprocess.run(
        [GENERATOR, *words, *config],
        cwd=tmp_path,
        env={"PATH": str(Path(sys.prefix) / "bin")},  # of ruff, with which it formats
        capture_output=True,
        text=True,
    )
    assert "arning" not in result.stdout + result.stderr, result.stdout
    assert result.returncode == 0, result.stderr
    listed = (tmp_path / "made" / "models" / "hold_list.py").read_text()
    assert re.search(r"items: (list\[Hold\]|list\[\"?Hold\"?\])", listed)
    made = [path for path in (tmp_path / "made" / "api").rglob("*.py") if path.name != "__init__.py"]
    assert len(made) == len(list(operations(described)))
