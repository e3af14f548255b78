"""The port of a store stays small enough to be held in mind."""

import inspect

from spinney.store.contract import Kernel


def test_a_node_needs_no_more_than_forty_methods() -> None:
    methods = [name for name, _ in inspect.getmembers(Kernel, inspect.isfunction) if not name.startswith("_")]

    assert "flush_and_claim" in methods
    assert len(methods) <= 40
