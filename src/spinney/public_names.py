"""Public modules that re-export names of other modules, and import those when a name is first used.

Workers, commands and servers all import an application; none of them has to load what only another one needs. Such a
module lists its names twice: for type checkers in imports under ``TYPE_CHECKING`` (``as`` makes them its own), and for
the interpreter, under ``else``, in the mapping that it passes to ``on_demand``. A test compares the two. A type checker
that saw the module's ``__getattr__`` would take every name for one of the module's.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def on_demand(
    module: str, homes: Mapping[str, str]
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__all__``, ``__getattr__`` and ``__dir__`` for a module that re-exports names (PEP 562).

    ``homes``: by the module that defines them, its names, separated by blanks. A name that is no attribute of that
    module is a module below it."""
    home_of = {name: home for home, names in homes.items() for name in names.split()}
    public = sorted(home_of)

    def getattr_(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        home = import_module(home_of[name])
        return getattr(home, name) if hasattr(home, name) else import_module(f"{home_of[name]}.{name}")

    return public, getattr_, lambda: public
