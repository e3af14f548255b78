"""The guide for those who write applications does what it says: its snippets run in their order, page by page."""

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from importlib import import_module
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from fastapi import FastAPI

import spinney
from cli.shell import Shell
from new_store import new_store
from snippets import require_readable, run_console, run_python, run_session, snippets, texts
from spinney import routes
from spinney.define.job import Job
from spinney.define.job.options import Options
from spinney.define.jobtype import job_types
from spinney.model.errors import UsageError
from spinney.model.outcomes import STAGE_WORDS
from spinney.model.types import Isolation
from spinney.server import extensions
from spinney.store.sql import open_store
from spinney.terminal import endpoint
from spinney.terminal.applications import GROUP, Application
from spinney.testing import StageHarness, run_stage

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [DOCS / "applications.md", *sorted((DOCS / "applications").glob("*.md"))]
WHOLE = "\n".join(page.read_text() for page in PAGES)
NAMED = set(re.findall(r"`([^`\n]+)`", WHOLE))

Run = Callable[[Path], dict[str, Any]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Runs a page in a folder with a store, as a module; returns its names."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SPINNEY_STORE", raising=False)
    store = new_store(tmp_path / "spinney.db")
    module = ModuleType("jobs")
    module.__file__ = str(tmp_path / "jobs.py")
    monkeypatch.setitem(sys.modules, "jobs", module)
    shell = Shell(tmp_path)

    def run(page: Path) -> dict[str, Any]:
        names = vars(module)
        for snippet in snippets(page):
            if snippet.language == "python":
                run_python(page, snippet, names)
            elif snippet.language == "pycon":
                run_session(page, snippet, names)
            elif snippet.language == "toml":
                (tmp_path / "elsewhere").mkdir(exist_ok=True)
                require_readable(snippet, tmp_path / "elsewhere")
            elif snippet.language == "console":
                _register(store, names["app"]) if "app" in names else None
                run_console(snippet, tmp_path, shell.call)
        return names

    yield run
    if "app" in vars(module):
        vars(module)["app"].close()


def _register(url: str, app: spinney.Spinney) -> None:
    """What a node does when it starts."""
    with closing(open_store(url)) as store:
        store.register([kind.spec for kind in app.types.values()], app.queues, app.locks)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_runs_as_it_stands(page: Path, run: Run, tmp_path: Path) -> None:
    if page.stem == "submitting":
        graph = re.search(r"^\$ cat graph.jsonl\n((?:\{.*\n)+)", page.read_text(), flags=re.M)
        assert graph
        (tmp_path / "graph.jsonl").write_text(graph[1])

    names = run(page)

    for name, value in list(names.items()):
        if name.startswith("test_"):
            places = {"tmp_path": tmp_path / name} if inspect.signature(value).parameters else {}
            (tmp_path / name).mkdir()
            value(**places)


@pytest.mark.parametrize(
    ("params", "outcome"),
    [({"picture": "there"}, "ok"), ({"picture": "not there"}, "defer")],
    ids=["there", "not there"],
)
def test_the_program_does_what_the_page_says(
    params: dict[str, str], outcome: str, run: Run, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    page = DOCS / "applications" / "programs.md"
    script = tmp_path / "thumbnail.sh"
    script.write_text(texts(page, "text")[0])
    script.chmod(0o700)
    (tmp_path / "there").write_text("a picture")

    ran = run_stage(run(page)["thumbnail"], picture=tmp_path / params["picture"])

    assert ran.outcome == outcome
    assert ran.value == ({"file": "small.jpg"} if outcome == "ok" else None)
    assert capfd.readouterr().out == f"making {tmp_path / params['picture']} 200 wide, --quality 80\n"


def test_the_package_of_the_page_brings_its_route_its_page_and_its_command(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = run(DOCS / "applications" / "running.md")
    entry = EntryPoint("library", "jobs:router", routes.GROUP)
    monkeypatch.setattr(extensions, "installed", lambda group: [entry] if group == routes.GROUP else [])
    server = FastAPI()

    extensions.add_routes(server)

    assert "/api/v1/apps/library/shelves" in [getattr(route, "path", "") for route in server.routes]
    assert [getattr(route, "path", "") for route in names["pages"].router.routes] == ["/apps/library"]
    command = Application(EntryPoint("library", "jobs:commands", GROUP)).load()
    assert list(command.commands) == ["shelve"]


def test_the_command_of_the_page_is_refused_through_a_server(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The routes of its package admit it there, and it would work on the local store instead."""
    shelve = run(DOCS / "applications" / "running.md")["shelve"]
    monkeypatch.setenv("SPINNEY_SERVER", "http://127.0.0.1:1")
    endpoint.choose(None, None, None)
    try:
        with pytest.raises(UsageError, match="works directly on a store, not through a server"):
            shelve("Emma")
    finally:
        monkeypatch.delenv("SPINNEY_SERVER")
        endpoint.choose(None, None, None)


# --- nothing is missing -----------------------------------------------------------------------


def _options(*of: Any) -> set[str]:
    return {name for each in of for name in each.__optional_keys__}


def test_the_guide_names_every_option_and_outcome() -> None:
    names = (
        _options(
            job_types.JobOptions,
            job_types.TypeOptions,
            job_types.ProgramJobOptions,
            job_types.ExternalJobOptions,
        )
        | set(Options.__dataclass_fields__)
        | {str(isolation) for isolation in Isolation}
        | set(map(str, STAGE_WORDS))
    )

    assert names - {word.partition("=")[0] for word in NAMED} == set()


def test_the_guide_names_all_of_the_handle() -> None:
    names = {f"job.{n}" for n in dir(Job) if not n.startswith("_") and n != "folder_requested"}

    assert names - set(NAMED) == set()


def test_the_guide_names_what_may_be_imported() -> None:
    face = re.search(r"^## What an application may import\n(.*?)(?=^## |\Z)", WHOLE, flags=re.M | re.S)

    assert face
    assert [name for name in spinney.__all__ if f"`{name}`" not in face[1]] == []


def test_what_the_guide_says_may_be_imported_is_there() -> None:
    listed = re.findall(r"^\| `(spinney[.\w]*)` \| (.*) \|$", WHOLE, flags=re.M)

    assert listed
    assert [
        (module, name)
        for module, names in listed
        for name in re.findall(r"`(\w+)`", names)
        if not hasattr(import_module(module), name)
    ] == []


def test_the_guide_names_what_a_harness_has() -> None:
    page = (DOCS / "applications" / "testing.md").read_text()

    assert [n for n in vars(StageHarness()) if not n.startswith("_") and f"`{n}`" not in page] == []
