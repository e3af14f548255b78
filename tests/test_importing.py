"""What ``import spinney`` gives, and that no room needs another to be loaded first."""

import subprocess
import sys
from graphlib import TopologicalSorter
from importlib.metadata import entry_points

import grimp
import pytest

import spinney
from spinney.store.parts import Part, Parts

ENTRANCES = [
    "app",
    "define.job",
    "define.jobtype.job_types",
    "define.jobtype.signature",
    "commands.control",
    "store.sql",
    "node.supervisor_main",
    "node.worker.worker",
    "cli.main",
    "client",
    "features.jobs.cli",
    "server.application",
    "testing",
    "apps.ingest",
]
QUICK = {"node.supervisor_main", "cli.main", "features.jobs.cli", "server.application"}
"""These never alter the schema."""


def test_every_public_name_is_there() -> None:
    assert set(spinney.__all__) <= set(dir(spinney))
    for name in spinney.__all__:
        assert getattr(spinney, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = spinney.Nothing


@pytest.mark.parametrize("room", ENTRANCES)
def test_every_entrance_can_be_the_first_and_loads_what_alters_the_schema_only_to_do_so(room: str) -> None:
    """That would double what a command or a node takes to start."""
    document = loads(room)
    assert f"spinney.{room}" in document
    if room in QUICK:
        assert not {"sqlalchemy", "alembic", "psutil"} & document


def test_the_commands_and_stages_of_ingest_load_no_database_and_no_connections() -> None:
    """Each command and each worker would wait for them, and most need none of them."""
    document = loads(
        "apps.ingest.cli",
        "apps.ingest.batches.stages",
        "apps.ingest.objects",
        "apps.ingest.upkeep.cleanup",
        "apps.ingest.access.package_job",
    )
    assert "spinney.apps.ingest.objects.downloading" in document
    assert not {"sqlalchemy", "alembic", "httpx", "httpcore", "smtplib", "jinja2", "botocore"} & document


def test_the_commands_and_routes_of_ingest_load_no_stages() -> None:
    """Each command would wait for them, and needs them only to register the application in a new store."""
    document = loads("apps.ingest.cli", "apps.ingest.routes")
    assert "spinney.apps.ingest.batches.batch_reports" in document
    assert not {"spinney.apps.ingest.objects", "spinney.apps.ingest.batches.stages"} & document


def test_a_server_loads_what_sends_webhooks_when_it_sends_one() -> None:
    """With httpx comes its command line, for which it loads rich and pygments, too."""
    assert not {"httpx", "rich", "pygments"} & loads("server.application")


def test_what_applications_add_to_a_server_loads_no_database_and_no_arrays() -> None:
    """A server that nobody asks for them would have 25 MB more, and one without NumPy no pages of receivers."""
    modules = {
        entry.module.removeprefix("spinney.")
        for group in ("spinney.routes", "spinney.pages")
        for entry in entry_points(group=group)
        if entry.module.startswith("spinney.")
    }
    assert "apps.receivers.pages" in modules
    assert not {"sqlalchemy", "alembic", "numpy"} & loads("server.application", *sorted(modules))


def test_a_worker_without_coroutines_loads_no_event_loop() -> None:
    """With ssl, which comes with it, it is 2 MB of a worker's memory."""
    assert not {"asyncio", "ssl"} & loads("node.worker.worker", "node.worker.serial_worker", "app")


def test_a_worker_loads_nothing_of_what_stores_return() -> None:
    """Every dataclass takes a millisecond to make, and each worker would make those of jobs and nodes."""
    assert not {"spinney.model.jobs", "spinney.model.fleet"} & loads(
        "node.worker.worker", "node.worker.serial_worker", "app"
    )


def test_the_guard_of_a_node_loads_neither_the_command_line_nor_what_makes_job_types() -> None:
    """It stays for as long as the node runs."""
    document = loads("node.run")
    assert "spinney.node.lifecycle.guard" in document
    assert not {"asyncio", "pydantic", "sqlite3", "typer"} & document


def loads(*rooms: str) -> set[str]:
    names = ", ".join(f"spinney.{room}" for room in rooms)
    code = f"import sys, {names}; print(*sys.modules)"
    return set(
        subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True
        ).stdout.split()
    )


def test_a_bare_import_loads_no_application() -> None:
    code = "import sys, spinney; sys.exit('pydantic' in sys.modules or 'sqlalchemy' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_no_modules_import_each_other_in_a_circle_not_even_for_types() -> None:
    graph = grimp.build_graph("spinney", cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}

    TopologicalSorter(imports).prepare()  # raises CycleError, which names the circle


def test_a_part_of_the_class_of_stores_loads_nothing() -> None:
    """Python 3.12 looks at each attribute of a protocol when the class is made: no part could be imported then."""
    assert isinstance(Parts.audit, Part)
