"""Settings: where the store, the folders and the application are, from arguments, environment and ``spinney.toml``.

    # spinney.toml
    [spinney]
    store = "postgresql://spinney@db.example.org/spinney"
    folders = "/srv/spinney/folders"
    app = "jobs:app"

An argument takes precedence over ``SPINNEY_STORE``, which takes precedence over ``spinney.toml`` of the current
directory, which takes precedence over ``sqlite:///spinney.db``. This module only reads; it creates nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spinney.model.errors import UsageError
from spinney.model.values.hints import did_you_mean, listed
from spinney.model.values.paths import run_dir
from spinney.model.values.store_urls import database_file, is_postgres, without_password

__all__ = ["ENVIRONMENT", "Settings", "database_file", "is_postgres", "settings", "without_password"]

FILE = "spinney.toml"
"""The file of settings; it is looked for in the current directory only, so that a command never works on the store of a
directory above by surprise."""
ENVIRONMENT = "SPINNEY_STORE"
DEFAULT_STORE = "sqlite:///spinney.db"
_KEYS = ("store", "folders", "app")
_TABLES = ("spinney", "node", "server")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Where the store, the folders and the application are."""

    store: str
    """The URL of the store; by default ``SPINNEY_STORE``, or ``sqlite:///spinney.db``."""
    folders: Path
    """The folder root, below which jobs have their folders; by default beside the file of the store."""
    app: str | None = None
    """The application that ``spinney node`` runs when it names none, as ``module:attribute``."""

    @property
    def run_dir(self) -> Path | None:
        """Return the directory where nodes of this host listen for wake-ups: beside the database file; None without
        one."""
        return run_dir(self.store)


def settings(
    store: str | None = None,
    folders: str | Path | None = None,
    *,
    environment: Mapping[str, str],
    directory: Path,
) -> Settings:
    """Return the settings in force. Raises UsageError, which names the file and the key, for an invalid value."""
    table = _own_table(directory / FILE)
    if store is not None and not store:
        raise UsageError(
            "the store that was named is an empty text; write it as sqlite:///spinney.db, or leave it out"
        )
    url = store or environment.get(ENVIRONMENT) or table.get("store") or DEFAULT_STORE
    _require_store(url)
    root = folders or table.get("folders") or default_folders(url)
    return Settings(store=url, folders=(directory / root).absolute(), app=table.get("app"))


def _require_store(url: str) -> None:
    if "://" not in url and ("@" in url or "=" in url):  # meant for PostgreSQL, perhaps with a password
        raise UsageError(
            "the store that was named is no URL; write it as postgresql://user@host/database, or as sqlite:///spinney.db"
        )
    if "://" not in url:
        raise UsageError(f"{url!r} is no URL of a store; write it as sqlite:///{url}")
    if database_file(url) is None and not is_postgres(url):
        scheme, _, rest = without_password(url).partition("://")
        suggestion = (
            f"sqlite:///{rest.strip('/') or 'spinney.db'}" if scheme == "sqlite" else "sqlite:///spinney.db"
        )
        raise UsageError(
            f"{without_password(url)!r} is no URL of a store; write it as {suggestion} or "
            f"postgresql://user@host/database"
        )


def default_folders(store: str) -> Path:
    """Return the default folder root of a store: beside its file (``spinney.db``: ``spinney.folders``).

    Raises UsageError when the store has no file: nodes of a store on a server run on several hosts, and where those
    share a directory only their operator knows."""
    path = database_file(store)
    if path is None:
        raise UsageError(
            f"a store at {store.partition('://')[0]}:// has no place for job folders beside it; "
            f'write folders = "/…", a directory that all its nodes see, below [spinney] in {FILE}'
        )
    return path.with_name(f"{path.stem}.folders")


def table(name: str, directory: Path) -> Mapping[str, Any]:
    """Return a table of ``spinney.toml`` for another part of Spinney; empty where there is none. Raises UsageError."""
    return _table(directory / FILE, name)


def document(path: Path, *, optional: bool = False) -> dict[str, Any]:
    """Return what a TOML file has; with ``optional`` nothing where there is none. Raises UsageError."""
    try:
        text = path.read_text("utf-8")
        import tomllib  # where there is a file to read

        return tomllib.loads(text)
    except OSError as error:
        if optional and isinstance(error, FileNotFoundError):
            return {}
        raise UsageError(
            f"{path} cannot be read ({error.strerror}); correct its permissions, or the path"
        ) from None
    except ValueError as error:  # of TOML, or of UTF-8
        raise UsageError(f"{path} is not valid TOML: {error}; correct it there") from None


def _own_table(path: Path) -> Mapping[str, str]:
    table = _table(path, "spinney")
    _require_known(path, "key", table, _KEYS)
    for key, value in table.items():
        if not isinstance(value, str) or not value:
            raise UsageError(f"{path}: {key} must be text in quotes, not {value!r}")
    return table


def _table(path: Path, name: str) -> Mapping[str, Any]:
    tables = document(path, optional=True)
    for key, value in tables.items():
        if key not in _TABLES and not isinstance(value, dict):
            raise UsageError(
                f"{path}: {key} belongs to no table; write it below one of [{'], ['.join(_TABLES)}]"
            )
    _require_known(path, "table", tables, _TABLES)
    table: Any = tables.get(name, {})
    if not isinstance(table, dict):
        raise UsageError(f"{path}: {name} must be a table; write [{name}] and the keys below it")
    return table


def _require_known(path: Path, kind: str, keys: Mapping[str, Any], allowed: Sequence[str]) -> None:
    for key in keys:
        if key not in allowed:
            raise UsageError(
                f"{path}: there is no {kind} {key!r}{did_you_mean(key, allowed)}; use one of: {listed(allowed)}"
            )
