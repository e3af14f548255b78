"""Durable batch processing for people who run long pipelines on machines of their own.

``Spinney`` makes an application, ``Job`` is the handle that a stage gets, and the others are signals by which a stage
ends: ``raise Defer(60)``. The rest of the public API is in ``spinney.jobs``, ``spinney.errors``,
``spinney.operations``, ``spinney.command_line``, ``spinney.routes``, ``spinney.pages``, ``spinney.reports``,
``spinney.safe_http``, ``spinney.containers``, ``spinney.files``, ``spinney.tables``, ``spinney.client``,
``spinney.config`` and ``spinney.testing``."""

from spinney.version import VERSION

__version__ = VERSION

# As in ``typing``, which is slow to import: a command handles Ctrl-C only after this module is imported.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from spinney.app.application import Spinney as Spinney
    from spinney.app.loader import load_app as load_app
    from spinney.define.job import Job as Job
    from spinney.define.params.secrets import Secret as Secret
    from spinney.model.attempts.signals import Defer as Defer
    from spinney.model.attempts.signals import Fail as Fail
    from spinney.model.attempts.signals import Finish as Finish
    from spinney.model.attempts.signals import Hold as Hold
    from spinney.model.attempts.signals import NotApplicable as NotApplicable
    from spinney.model.attempts.signals import Warn as Warn
    from spinney.model.errors import SpinneyError as SpinneyError
    from spinney.model.types import Backoff as Backoff
    from spinney.model.types import LockSpec as LockSpec
else:  # a type checker that sees this function takes any name for one that is here

    def __getattr__(name: str) -> object:
        """Import a public name when it is first used: a command that lists jobs, or completes a word, need not wait for
        the import of what turns functions into job types."""
        if name not in _HOME_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(_HOME_OF[name]), name)


# The module that defines each public name. The imports above say the same to type checkers.
_HOME_OF = {
    "Backoff": "spinney.model.types",
    "Defer": "spinney.model.attempts.signals",
    "Fail": "spinney.model.attempts.signals",
    "Finish": "spinney.model.attempts.signals",
    "Hold": "spinney.model.attempts.signals",
    "Job": "spinney.define.job",
    "LockSpec": "spinney.model.types",
    "NotApplicable": "spinney.model.attempts.signals",
    "Secret": "spinney.define.params.secrets",
    "Spinney": "spinney.app.application",
    "SpinneyError": "spinney.model.errors",
    "Warn": "spinney.model.attempts.signals",
    "load_app": "spinney.app.loader",
}
__all__ = [*_HOME_OF]


def __dir__() -> list[str]:
    return [*globals(), *__all__]
