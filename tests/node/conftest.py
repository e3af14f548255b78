"""For the tests of nodes."""

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Who shares a host of workers shares its event loop, too."""
    for item in items:
        if "shared_host" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.asyncio(loop_scope="module"), append=False)
