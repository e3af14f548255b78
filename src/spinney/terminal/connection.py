"""Opens what a command works on, for as long as the command lasts: a store, or the client of a server
(``endpoint`` decides which).

``open_commands``     performs commands on either of them; what most commands use
``perform``           performs one command on either of them
``open_client``       only a server, for routes of applications
``open_control``      only a store, for what cannot be done through a server
``open_local_store``  only a store, without a caller: to create, copy or check it
``use_store``         opens nothing: makes a store that of the whole process

Each that opens is a context manager that closes the store or the connections at its end.
"""

import getpass
import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from spinney.config import ENVIRONMENT, Settings, settings
from spinney.model.errors import UsageError
from spinney.model.values import names
from spinney.model.values.times import now_us as now_us
from spinney.terminal import endpoint

if TYPE_CHECKING:
    from spinney.commands import Performs, Returns
    from spinney.commands.control import Control
    from spinney.service.service import Service
    from spinney.store.parts import Store
    from spinney.terminal.remote import RetryingClient

T = TypeVar("T")
ServiceT = TypeVar("ServiceT", bound="Service")


def resolve_settings(store: str | None, folders: str | None = None) -> Settings:
    """Return the settings in force: those of the option, the environment, ``spinney.toml`` or the default, in this
    order. ``store`` and ``folders`` are the values of the options; None: not given."""
    return settings(store, folders, environment=os.environ, directory=current_folder())


def use_store(store: str | None) -> None:
    """Make a store that of this process and of those that it starts, for commands of an application whose own settings
    depend on the store. ``store``: the value of the option. Raises UsageError where a server is named."""
    endpoint.require_local(store)
    os.environ[ENVIRONMENT] = resolve_settings(store).store


def current_folder() -> Path:
    """Return the current folder. Raises UsageError when somebody has removed it."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise UsageError(
            "the current folder was removed; change to an existing one (cd) and try again"
        ) from None


@contextmanager
def open_local_store(store: str | None) -> Iterator["Store"]:
    """Open the store of the settings, and close it at the end.

    While another process keeps the store locked, a sentence on stderr says what this one waits for. Nothing
    is checked or created by opening. Raises UsageError where a server is named.
    """
    from spinney.store.sql import open_store

    endpoint.require_local(store)
    opened = open_store(resolve_settings(store).store, on_wait=_say_wait)
    try:
        yield opened
    finally:
        opened.close()


def _say_wait(sentence: str) -> None:
    sys.stderr.write(f"spinney: {sentence}\n")
    sys.stderr.flush()


def open_control(store: str | None, by: str | None = None) -> "AbstractContextManager[Control]":
    """Open a store for the operations of one caller, for commands that need the store itself. ``by``: the caller's
    name; None: the login name. Raises UsageError where a server is named."""
    endpoint.require_local(store)
    from spinney.commands.control import Control

    return _open_locally(Control, store, by)


def open_commands(store: str | None, by: str | None = None) -> "AbstractContextManager[Performs]":
    """Open what performs commands in the name of the caller: a store, or the client of a server, which knows
    the user by the token. Raises UsageError for ``by`` with a server, and for the name of a caller that is not valid.
    """
    if endpoint.server(store) is not None:
        return open_client(store, by)
    from spinney.commands import CompletePerformer

    return _open_locally(CompletePerformer, store, by)


def perform(command: "Returns[T]", store: str | None, by: str | None = None) -> T:
    """Perform one command and return its answer, for what needs no other. Raises what ``open_commands`` and
    ``Performs.do`` raise."""
    with open_commands(store, by) as performer:
        return performer.do(command)


@contextmanager
def _open_locally(kind: "type[ServiceT]", store: str | None, by: str | None) -> Iterator["ServiceT"]:
    """Open the store of the settings with a service of this kind, which acts in the name of ``by``, wakes the
    nodes after a change, and removes the folders of deleted jobs."""
    in_force = resolve_settings(store)
    with open_local_store(store) as opened:
        yield kind(
            store=opened,
            clock=now_us,
            wake_nodes=lambda: _wake(opened, in_force.run_dir),
            by=actor_name(by),
            remove_folder=partial(_remove_folder, in_force.folders),
            folder_root=in_force.folders,
        )


def _remove_folder(root: Path, job_id: int) -> None:
    from spinney.folders import folders

    folders.remove(root, job_id)


def _wake(store: "Store", run_dir: Path | None) -> None:
    from spinney.wakeup import wake_all  # loads asyncio, which what only reads does not need

    wake_all(store, run_dir)


def open_client(
    store: str | None, by: str | None = None, *, wait_for_server: bool = True
) -> "RetryingClient":
    """Open the client of the server that is named, for commands of applications, which have routes of their own. Raises
    UsageError where no server is named, or ``by`` is given."""
    server = endpoint.server(store)
    if server is None:
        raise UsageError("no server is named; name it with --server URL")
    if by is not None:
        raise UsageError("--by does not work with a server, which knows the user by the token; leave it out")
    try:
        from spinney.terminal import remote
    except ImportError as error:  # pragma: no cover - the tests have them
        raise UsageError(
            f"a client needs more packages ({error}); install them: pip install spinney[client]"
        ) from None
    outage_limit_s = remote.PATIENCE_S if wait_for_server else 0.0
    return remote.RetryingClient(server.url, token=remote.token_of(server), outage_limit_s=outage_limit_s)


def actor_name(by: str | None) -> str:
    """Return the name of the caller: ``by``, or the login name; ``uid NUMBER`` for a user without one, as in
    a container.

    Raises UsageError for a name that nobody can have. The name is recorded in the audit, and not proven:
    whoever may write to the database may give any.
    """
    if by:
        return names.label("user's name", by)
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"
