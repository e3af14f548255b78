"""The port of a store stays small enough to be held in mind."""

import inspect
from pathlib import Path

from spinney.store.contract import Kernel

from .conftest import WITHOUT_BEING_ASKED, WITHOUT_BEING_ASKED_POOLED


def test_a_node_needs_no_more_than_forty_methods() -> None:
    methods = [name for name, _ in inspect.getmembers(Kernel, inspect.isfunction) if not name.startswith("_")]

    assert "flush_and_claim" in methods
    assert len(methods) <= 40


def test_only_few_modules_of_this_suite_know_the_sql_store() -> None:
    here = Path(__file__).parent
    knowing = {path.stem for path in here.glob("*.py") if "spinney.store.sql" in path.read_text()}

    assert knowing <= {"behind", "conftest", "everything", "test_doctor", "test_port"}


def test_the_modules_that_also_run_on_a_server_exist() -> None:
    modules = {path.stem for path in Path(__file__).parent.glob("test_*.py")}

    assert modules >= WITHOUT_BEING_ASKED
    assert modules >= WITHOUT_BEING_ASKED_POOLED
