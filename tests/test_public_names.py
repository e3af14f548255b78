"""The public modules: each name is there, and nothing is imported for it before it is asked for."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

PUBLIC = ("command_line", "errors", "jobs", "operations", "safe_http", "tables")


@pytest.mark.parametrize("name", PUBLIC)
def test_every_name_is_there(name: str) -> None:
    module = import_module(f"spinney.{name}")

    assert sorted(module.__all__) == dir(module)
    for each in module.__all__:
        assert getattr(module, each) is not None
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = module.Nothing


@pytest.mark.parametrize("name", ["", *PUBLIC])
def test_type_checkers_see_the_same_names_from_the_same_modules(name: str) -> None:
    module = import_module(f"spinney.{name}".rstrip("."))
    tree = ast.parse(Path(str(module.__file__)).read_text())
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.asname: import_from.module
        for import_from in block.body
        if isinstance(import_from, ast.ImportFrom)
        for alias in import_from.names
        if alias.asname
    }

    assert sorted(seen) == sorted(module.__all__)
    for public, home in seen.items():
        assert getattr(module, public) is getattr(import_module(str(home)), public)


def test_importing_them_imports_nothing_else() -> None:
    names = ", ".join(f"spinney.{name}" for name in PUBLIC)
    code = f"import sys, {names}; print(*sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)

    loaded = {name for name in result.stdout.split() if name.startswith("spinney")}
    assert loaded == {
        "spinney",
        "spinney.public_names",
        "spinney.version",
        *(f"spinney.{name}" for name in PUBLIC),
    }
