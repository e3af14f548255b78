"""Import of modules that users name: applications, and what defines them."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

from spinney.model.errors import SpinneyError, UsageError


def import_by_name(module_name: str) -> ModuleType:
    """Import the module of this name, which is searched in the current directory, too.

    Raises UsageError with one sentence that says what is missing, or where the module failed: a person who starts a
    node or a command with a wrong name needs no traceback of Spinney."""
    directory = str(Path.cwd())
    if directory not in sys.path:
        sys.path.insert(0, directory)
    importlib.invalidate_caches()
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and (module_name == error.name or module_name.startswith(f"{error.name}.")):
            raise UsageError(
                f"there is no module {error.name!r}; start in the folder that holds it "
                f"({directory} was searched), or correct the name"
            ) from error
        raise _broken(module_name, error) from error
    except SpinneyError as error:
        raise UsageError(f"{module_name}: {error}") from error
    except (Exception, SystemExit) as error:
        raise _broken(module_name, error) from error


def _broken(module_name: str, error: BaseException) -> UsageError:
    """Return the error for a module that raises when it is imported; it names the last line outside of the import
    system."""
    place = ""
    trace = error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not file.startswith("<frozen ") and file not in (__file__, importlib.__file__):
            place = f" ({Path(file).name}, line {trace.tb_lineno})"
        trace = trace.tb_next
    return UsageError(
        f"importing {module_name!r} failed with {type(error).__name__}: {error}{place}; "
        f"fix it and start again"
    )
