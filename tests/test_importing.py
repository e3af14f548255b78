"""What ``import spinney`` gives, and that no room needs another to be loaded first."""

import subprocess
import sys

import pytest

import spinney

ENTRANCES = [
    "app", "job", "jobtype.kinds", "params.signature", "control", "stores.sql", "node.supervisor_main",
    "node.executors.worker", "cli.main", "client", "server.application", "testing", "apps.ingest",
]  # fmt: skip


def test_every_public_name_is_there() -> None:
    assert set(spinney.__all__) <= set(dir(spinney))
    for name in spinney.__all__:
        assert getattr(spinney, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = spinney.Nothing


@pytest.mark.parametrize("room", ENTRANCES)
def test_every_entrance_can_be_the_first(room: str) -> None:
    subprocess.run([sys.executable, "-c", f"import spinney.{room}"], check=True)


def test_a_bare_import_loads_no_application() -> None:
    code = "import sys, spinney; sys.exit('pydantic' in sys.modules or 'sqlalchemy' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("room", ["node.supervisor_main", "cli.main", "cli.looking", "server.application"])
def test_only_who_alters_the_schema_loads_what_that_takes(room: str) -> None:
    """It would double what a command or a node takes to start."""
    code = f"import sys, spinney.{room}; sys.exit('sqlalchemy' in sys.modules or 'alembic' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
