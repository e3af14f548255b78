"""For all tests."""

import gc
import os
import signal
import tempfile
from collections.abc import Iterator

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers

from in_memory import MEMORY, in_memory
from long_tests import LONG

# What is slow on a busy machine is not wrong. The short form draws the same each time, so that whoever sees it fail has
# done it; the long form looks further, and at more.
settings.register_profile("spinney", deadline=None, derandomize=not LONG, max_examples=100 if LONG else 30)
settings.load_profile("spinney")
if not LONG:
    # Hypothesis also draws numbers and texts that stand in the modules that happen to be loaded: then what is drawn
    # would depend on what else the process tests, and each process would look for them in a thousand files first.
    providers._get_local_constants = lambda: providers._local_constants

# A shell starts what runs in the background with SIGINT ignored, and every process below would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Stores and folders sync what they promise to keep, and a directory on a disk takes a hundred times as long to make.
# The long form writes more than memory may have room for.
if not LONG and "TMPDIR" not in os.environ and (_memory := in_memory()) is not None:
    os.environ["TMPDIR"] = _memory  # for the processes that tests start, too
    os.environ["XDG_RUNTIME_DIR"] = _memory  # for nodes of a store on PostgreSQL, which would use /tmp
    # What failed tests leave can be looked at after the run: pytest removes it with a later one.
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))
    tempfile.tempdir = None  # whoever has looked it up before did so on the disk

# No test needs plugins of pydantic, for which each process would look through the metadata of 150 packages.
os.environ["PYDANTIC_DISABLE_PLUGINS"] = "__all__"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What a module makes once for all its tests is made in one of the processes that share the tests, not in each.
    The cases of one test stay together, too: for each group that it has ever handed to a process, xdist counts anew
    after each test what is left of it.
    Before xdist reads the groups: it comes behind this file, and is otherwise asked before it."""
    for item in items:
        if item.get_closest_marker("xdist_group") is not None:
            continue
        made = getattr(item, "_fixtureinfo").name2fixturedefs  # noqa: B009 - pytest has no public way to ask
        if any(fixture.scope == "module" for fixtures in made.values() for fixture in fixtures):
            assert isinstance(item, pytest.Function)
            item.add_marker(pytest.mark.xdist_group(item.module.__name__))
        elif hasattr(item, "callspec"):
            assert isinstance(item, pytest.Function)
            item.add_marker(pytest.mark.xdist_group(f"{item.module.__name__}.{item.originalname}"))


gc.disable()  # while tests are loaded and collected: nearly all of it stays


def pytest_collection_finish() -> None:
    """What is loaded and collected stays to the end: each full collection of garbage would look through all of it,
    which took a seventh of the time of one file's tests."""
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def no_store_of_others() -> Iterator[None]:
    """Commands of monitor and receivers name their store in the environment of their process, which tests share."""
    os.environ.pop("SPINNEY_STORE", None)
    yield
    os.environ.pop("SPINNEY_STORE", None)
