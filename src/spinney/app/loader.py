"""The application that ``module:attribute`` names."""

import re

from spinney.app.application import Spinney
from spinney.host.imports import import_by_name
from spinney.model.errors import UsageError
from spinney.model.values.hints import listed

_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_TARGET = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


def load_app(target: str) -> Spinney:
    """Import the application that ``module:attribute`` names; the current directory is searched, too.

    Raises UsageError with one sentence that says what is missing, or what failed in the module.
    """
    module_name, colon, attribute = target.partition(":")
    is_file = module_name.endswith(".py")
    if is_file or not colon or not _MODULE.fullmatch(module_name) or not attribute.isidentifier():
        right = re.sub(r"\.py(:|$)", r"\1", target).replace("/", ".").strip(".:")
        right = right if _TARGET.fullmatch(right) else f"{right.partition(':')[0] or 'jobs'}:app"
        raise UsageError(f"{target!r} names no application; write module:attribute, for example {right}")
    module = import_by_name(module_name)
    app = getattr(module, attribute, None)
    if isinstance(app, Spinney):
        return app
    names = [name for name, value in vars(module).items() if isinstance(value, Spinney)]
    hint = f"it has: {listed(names)}" if names else "make one there with 'app = Spinney()'"
    kind = "nothing named" if app is None else "no Spinney as"
    raise UsageError(f"the module {module_name!r} has {kind} {attribute!r}; {hint}")
