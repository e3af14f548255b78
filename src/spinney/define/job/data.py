"""The named values and the folder of a job, which last over its stages and attempts."""

from collections.abc import Iterator, MutableMapping
from errno import ENOENT
from pathlib import Path
from typing import Any

from spinney.define.job.port import Assignment, Port
from spinney.define.params.values import finite_text
from spinney.model.errors import BadParameters, Refused
from spinney.model.submission import DATA_MAX_BYTES
from spinney.model.values.paths import HOME_MARK, ROOT_TOKEN, job_folder


def folder_of(root: Path, job_id: int, *, is_marked: bool = True) -> Path:
    """Return a job's folder below the folder root; make it when it is missing. It is not synced: the worker
    syncs it with the attempt's files. Raises OSError, also where the root ``is_marked`` and lacks its
    token."""
    path = root / job_folder(job_id)
    if not is_marked:
        path.mkdir(parents=True, exist_ok=True)
    elif not path.is_dir():
        make_below_root(path)
    return path


def make_below_root(folder: Path, mode: int = 0o777) -> None:
    """Make a folder and those above it, as long as the folder root is there: what is written to the empty mount point
    of a shared folder is lost when that is mounted again. Raises OSError."""
    if not any((above / ROOT_TOKEN).exists() for above in folder.parents):
        raise FileNotFoundError(
            ENOENT, "its folder root does not exist or is not mounted; mount it again", str(folder)
        )
    folder.mkdir(mode=mode, parents=True, exist_ok=True)


class Data(MutableMapping[str, Any]):
    """Named JSON values of a job, up to 64 kB each. Every read gets the current value; an assignment is durable when it
    returns.

    They remain when the attempt fails.
    """

    __slots__ = ("_generated", "_port", "_target")

    def __init__(self, port: Port, target: int, *, generated: bool = False) -> None:
        """``generated``: refuse names that do not end in ``_`` (``names="generated_"`` of the job type)."""
        self._port, self._target, self._generated = port, target, generated

    def __getitem__(self, name: str) -> Any:
        return self._entry(name)[name]

    def __setitem__(self, name: str, value: Any) -> None:
        text = finite_text(value, f"data[{name!r}]")
        self._port.ask("put_data", target=self._target, name=self._checked(name), value=text)

    def __delitem__(self, name: str) -> None:
        if name not in self._entry(name):
            raise KeyError(name)
        self._port.ask("put_data", target=self._target, name=name, value=None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())

    def snapshot(self) -> dict[str, Any]:
        """Return all current values by one request; ``dict(data)`` makes one for each."""
        values: dict[str, Any] = self._port.ask("get_data", target=self._target, name=None)
        return values

    def append(self, name: str, value: Any) -> int:
        """Append to the list of that name, which is created when missing; return its length.

        Many jobs may append to their parent's at once: none loses another's. An attempt that runs again
        appends again, so put something into the value by which the two can be told apart. Raises Refused when
        the entry is no list, and BadParameters when it would be larger than 64 kB."""
        text = finite_text(value, f"data[{name!r}]")
        length: int = self._port.ask("append_data", target=self._target, name=self._checked(name), value=text)
        return length

    def _checked(self, name: str) -> str:
        """Return the name if an entry may be written under it. Raises BadParameters."""
        if self._generated and not str(name).endswith("_"):
            raise BadParameters(
                f"names of data that jobs of this type write end in '_' (names=\"generated_\"); write {name}_"
            )
        return data_name(name)

    def _entry(self, name: str) -> dict[str, Any]:
        """Return the entry of that name, if there is one, by name. All entries together may be too long for one
        message."""
        if not _is_name(name):
            return {}
        values: dict[str, Any] = self._port.ask("get_data", target=self._target, name=name)
        return values

    def _names(self) -> list[str]:
        """Return the names of all entries, without their values."""
        names: list[str] = self._port.ask("data_names", target=self._target)
        return names

    def __repr__(self) -> str:
        return f"Data({self.snapshot()!r})"


class Relative:
    """The parent or the root of a job: what a subjob may use of it."""

    __slots__ = ("_generated", "_observer", "_port", "_root", "id")

    def __init__(self, job_id: int, port: Port, observer: Assignment, *, generated: bool) -> None:
        """``observer``: the attempt that uses it; a root uses itself. ``generated``: as for ``Data``."""
        self.id, self._port, self._root, self._observer = job_id, port, observer.folder_root, observer
        self._generated = generated

    @property
    def data(self) -> Data:
        """Return its named values; many subjobs may write to those of one parent at once."""
        return Data(self._port, self.id, generated=self._generated)

    @property
    def folder(self) -> Path:
        """Return its folder. Where folders are local, it has to exist on this host: otherwise this raises Refused,
        rather than make a folder that the job itself will never see."""
        local = self.id != self._observer.job_id and (self._root / HOME_MARK).exists()
        if local and not (self._root / job_folder(self.id)).is_dir():
            raise Refused(
                f"the folder of job {self.id} is not on this host, where folders are local, or it has none yet; hand "
                f"over by job.data, or make its folder there before it spawns"
            )
        return folder_of(self._root, self.id, is_marked=self._observer.has_marked_root)


def data_name(name: str) -> str:
    """Return ``name`` when it is a valid name of an entry; else raise BadParameters."""
    if not _is_name(name):
        raise BadParameters(f"{name!r} cannot name an entry of job.data: use 1 to 200 printable characters")
    return name


def require_small(name: str, value: str) -> None:
    """Raise BadParameters when the JSON text of an entry is too long to be kept."""
    if len(value.encode()) > DATA_MAX_BYTES:
        raise BadParameters(
            f"data entry {name!r} is larger than {DATA_MAX_BYTES // 1024} kB; put it into a file in the job's folder"
        )


def _is_name(name: object) -> bool:
    return isinstance(name, str) and 0 < len(name) <= 200 and name.isprintable()
