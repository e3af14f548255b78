"""The store that a command works on, open while the command lasts: at hand, or behind a server (``place``)."""

import getpass
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

from spinney.cli import place
from spinney.config import Settings, settings
from spinney.model import names
from spinney.model.errors import UsageError

if TYPE_CHECKING:
    from spinney.cli.afar import Afar, Patient
    from spinney.control import Control
    from spinney.control.looking import Looking
    from spinney.stores.contract import Store


def where(store: str | None, folders: str | None = None) -> Settings:
    """What is in force here: the option, the environment, ``spinney.toml``, the default."""
    return settings(store, folders, environment=os.environ, directory=current_folder())


def current_folder() -> Path:
    """Raises UsageError where somebody has removed it."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise UsageError(
            "the current folder is not there any more; change to one that is (cd) and try again"
        ) from None


@contextmanager
def opened(store: str | None) -> Iterator["Store"]:
    """The store at hand, closed at the end. Raises UsageError where a server is to be asked."""
    from spinney.stores.sql import open_store

    place.require_at_hand(store)
    found = open_store(where(store).store, on_wait=_say_wait)
    try:
        yield found
    finally:
        found.close()


def _say_wait(sentence: str) -> None:
    sys.stderr.write(f"spinney: {sentence}\n")
    sys.stderr.flush()


@contextmanager
def looking(store: str | None) -> Iterator["Looking"]:
    """What is read of that store, with secrets masked; through a server its twin (``spinney.cli.afar``)."""
    if (server := place.server(store)) is not None:
        with _connected(server) as client:
            yield cast("Looking", _afar(client).look)
        return
    from spinney.control.looking import Looking

    with opened(store) as found:
        yield Looking(store=found, clock=now_us, nudge=lambda: None, by="")


@contextmanager
def hand(store: str | None, by: str | None = None, *, patient: bool = True) -> Iterator["Control"]:
    """The operator's verbs on that store, in somebody's name; through a server their twin, in the name that it knows
    one by. ``patient``: wait for a server that goes away meanwhile."""
    if (server := place.server(store)) is not None:
        if by is not None:
            raise UsageError(
                "--by is for a store at hand: a server knows by the token who asks; leave it out"
            )
        with _connected(server, patient=patient) as client:
            yield cast("Control", _afar(client))
        return
    from spinney.control import Control
    from spinney.waking import wake_all

    run_dir = where(store).run_dir
    with opened(store) as found:
        yield Control(
            store=found,
            clock=now_us,
            nudge=lambda: wake_all(found, run_dir),
            by=whoever(by),
        )


def client_of(control: "Control") -> "Patient":
    """The client of a hand on the store of a server: for commands of applications, which have routes of their own."""
    return cast("Afar", control).client


@contextmanager
def _connected(server: place.Place, *, patient: bool = True) -> Iterator["Patient"]:
    try:
        from spinney.cli.afar import connecting
    except ImportError as error:  # pragma: no cover - the tests have them
        raise UsageError(
            f"a client needs more packages ({error}); install them: pip install spinney[client]"
        ) from None
    with connecting.connected(server, patience_s=connecting.PATIENCE_S if patient else 0.0) as client:
        yield client


def _afar(client: "Patient") -> "Afar":
    from spinney.cli.afar import Afar

    return Afar(client)


def now_us() -> int:
    """Microseconds since 1970 UTC."""
    return time.time_ns() // 1000


def whoever(by: str | None) -> str:
    """Who asks: as named, else the login name. Raises UsageError for what names nobody."""
    if by:
        return names.label("name of who asks (--by)", by)
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"
