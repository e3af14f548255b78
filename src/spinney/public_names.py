"""Public modules that re-export names of other modules, and import those when a name is first used.

Workers, commands and servers all import an application; none of them has to load what only another one needs.
"""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def on_demand(
    module: str, homes: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for a module that re-exports names. ``homes``: the names, by the module
    that defines them."""
    home_of = {name: home for home, names in homes.items() for name in names}

    def getattr_(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        home = import_module(home_of[name])
        # A name that is no attribute is a module of that package.
        return getattr(home, name) if hasattr(home, name) else import_module(f"{home_of[name]}.{name}")

    return getattr_, lambda: sorted(home_of)
