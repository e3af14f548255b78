"""The list of tasks: the files of a folder in the order of their names, each with the name that it gave itself.

Identifying a program starts it, so the answers are kept in a file beside the tasks' data, by name, size and time of
each file; only what is new or changed is asked. A task whose file is gone stays on the list as retired for as long as
checks that had begun before may still stand at it.

Only ``read`` runs tasks. Pages, routes and states of services use ``last_read``, which shows what ``read`` found last
on this host."""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import orjson

from spinney.apps.monitor.inventory.model import Service
from spinney.apps.monitor.settings import Settings
from spinney.apps.monitor.tasks import modules, programs
from spinney.apps.monitor.tasks.findings import Finding, error
from spinney.apps.monitor.tasks.modules import Context
from spinney.errors import BadName
from spinney.files.durable import place_durably
from spinney.jobs import names

KEPT_FILE = "tasks.json"
"""The file with the list, in the folder ``data`` of the settings."""
RETIRED_S = 7 * 86_400.0
"""How long a task whose file is gone stays on the list."""
RETRY_S = 60.0
"""After how long a file is tried again that did not answer in time, or that the machine could not start."""
_LANGUAGES = {".sh": "Bash", ".tcl": "Tcl", ".py": "Python"}
_WRAPPER = Path(__file__).with_name("tcl_task.tcl")


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One task. Tasks run in the order of their files' names."""

    name: str
    """The name by which it identified itself, which is that of its stage and of its results."""
    description: str
    file: str
    """The file's name in the folder of tasks."""
    kind: str
    """``program``, ``tcl`` (a Tcl file of procedures) or ``module``."""
    stamp: str
    """Size, time and executable bits of the file when it identified itself."""
    retired_s: float | None = None
    """When its file was found to be gone, in seconds since 1970; None: it is there."""

    @property
    def language(self) -> str:
        """Return the language of the file, by its ending."""
        return _LANGUAGES.get(Path(self.file).suffix, "program")


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A file of the folder that is no task, and why."""

    file: str
    problem: str
    """Why it is no task: a part of a sentence for people."""
    stamp: str = ""
    """Size and time of the file when it was tried; empty: it is tried each time."""
    again_s: float | None = None
    """When it is tried again although it has not changed, in seconds since 1970, because the machine may have been at
    fault; None: never."""

    def is_due(self) -> bool:
        """Return whether it is to be tried again although it has not changed."""
        return self.again_s is not None and self.again_s <= time.time()


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskList:
    """The tasks in the order in which they run, retired ones among them, and the files of the folder that are
    not tasks."""

    tasks: tuple[Task, ...] = ()
    broken: tuple[Broken, ...] = ()

    @property
    def current(self) -> tuple[Task, ...]:
        """Return the tasks whose files are there, in their order."""
        return tuple(task for task in self.tasks if task.retired_s is None)

    def is_due(self) -> bool:
        """Return whether a file is to be tried again."""
        return any(broken.is_due() for broken in self.broken)


def read(settings: Settings) -> TaskList:
    """Read the folder, identify what is new or changed, and keep the list. A missing folder has no tasks.
    Files whose names begin with a dot or an underscore are ignored.

    If two files have tasks of one name, the first counts, and the other is broken. A task whose name another file has
    taken is dropped; any other task whose file is gone, or is not a task any more, is retired. Several processes may
    read at once: each keeps its own list, and the last one wins."""
    kept = last_read(settings)
    tasks_by_file = {task.file: task for task in kept.tasks}
    broken_by_file = {broken.file: broken for broken in kept.broken}
    tasks: dict[str, Task] = {}
    broken: list[Broken] = []
    names_taken: set[str] = set()
    for file in _files(settings.tasks):
        entry = _entry(file, tasks_by_file.get(file.name), broken_by_file.get(file.name))
        if isinstance(entry, Task) and entry.name in names_taken:
            entry = Broken(file=file.name, problem=f"another task has the name {entry.name!r}")
        if isinstance(entry, Broken):
            broken.append(entry)
        else:
            tasks[file.name] = entry
            names_taken.add(entry.name)
    for name, task in tasks_by_file.items():
        since_s = task.retired_s or time.time()
        if name not in tasks and task.name not in names_taken and time.time() - since_s < RETIRED_S:
            tasks[name] = replace(task, retired_s=since_s)
    listed = TaskList(tasks=tuple(tasks[name] for name in sorted(tasks)), broken=tuple(broken))
    if listed != kept:
        _keep(settings, listed)
    return listed


def last_read(settings: Settings) -> TaskList:
    """Return the list as it was last read on this host, for those who only show it: no task is run for that.
    Empty where it never was, or where the file is of another version, so that all is identified again."""
    try:
        document = orjson.loads((settings.data / KEPT_FILE).read_bytes())
        return TaskList(
            tasks=tuple(Task(**row) for row in document["tasks"]),
            broken=tuple(Broken(**row) for row in document["broken"]),
        )
    except (OSError, orjson.JSONDecodeError, TypeError, KeyError):
        return TaskList()


def counted(settings: Settings) -> frozenset[str]:
    """Return the names of the tasks whose results count in the states of services: those whose files exist. Empty where
    no list was read yet, as on a host that has only the pages: then all count."""
    return frozenset(task.name for task in last_read(settings).current)


def fingerprint(settings: Settings) -> Mapping[str, str]:
    """Return what changes when the folder does: the stamp of each file, by its name."""
    return {file.name: _stamp(file) for file in _files(settings.tasks)}


def run(task: Task, settings: Settings, service: Service, context: Context, scratch: Path) -> Finding:
    """Run a task for one service. It returns an error for whatever goes wrong with the task, also a module
    that cannot be loaded; what goes wrong with the monitor itself (no memory, no processes) is raised as
    OSError. ``scratch``: a folder for the time being."""
    file = settings.tasks / task.file
    if task.kind == "module":
        return modules.run(lambda *arguments: _call_module(file, task.stamp, *arguments), service, context)
    command: tuple[str, ...]
    if task.kind == "tcl":
        command = ("tclsh", str(_WRAPPER), str(file), *_tcl_arguments(service, scratch, context.data))
    else:
        command = (*programs.command_of(file), *programs.arguments_of(service, scratch, context.data))
    return programs.run(command, file, timeout_s=context.timeout_s)


# --- the folder -------------------------------------------------------------------------------


def _files(folder: Path) -> list[Path]:
    """Return the files of the folder that may be tasks, by name."""
    try:
        entries = sorted(folder.iterdir(), key=lambda file: file.name)
    except FileNotFoundError:
        return []
    return [file for file in entries if file.is_file() and not file.name.startswith((".", "_"))]


def _stamp(file: Path) -> str:
    """Return what of a file changes when it does; an empty text where it is gone."""
    try:
        stat = file.stat()
    except OSError:
        return ""
    return f"{stat.st_size}-{stat.st_mtime_ns}-{stat.st_mode & 0o111:o}"


def _entry(file: Path, task: Task | None, broken: Broken | None) -> Task | Broken:
    """Return the entry of a file: the last one while the file has not changed, else what the file says of itself.
    ``task`` and ``broken``: its last entry, if that was a task, or was none."""
    stamp = _stamp(file)
    if broken is not None and broken.stamp == stamp and not broken.is_due():
        return broken
    if task is not None and task.stamp == stamp and task.retired_s is None:
        return task
    try:
        return _identified(file, stamp)
    except (programs.ProgramFailed, BadName, OSError) as problem:
        again_s = time.time() + RETRY_S if _may_pass(problem) else None
        return Broken(file=file.name, stamp=stamp, problem=str(problem), again_s=again_s)


def _may_pass(problem: Exception) -> bool:
    """Return whether the same file may be identified at another time."""
    return isinstance(problem, OSError) or (
        isinstance(problem, programs.ProgramFailed) and problem.code == "task_timeout"
    )


def _identified(file: Path, stamp: str) -> Task:
    """Ask a file for its name and description. A Python file without ``#!`` is a module, and a Tcl file that
    defines a procedure ``identify`` is run by a wrapper. Raises ProgramFailed, OSError, and BadName where the
    name cannot be that of a stage."""
    text = file.read_text("utf-8", "replace") if file.suffix in (".py", ".tcl") else ""
    command: Sequence[str]
    if file.suffix == ".py" and not text.startswith("#!"):
        kind, command = "module", modules.identification(file)
    elif file.suffix == ".tcl" and "proc identify" in text:
        kind, command = "tcl", ("tclsh", str(_WRAPPER), str(file))
    else:
        kind, command = "program", programs.command_of(file)
    name, description = programs.identify(command, file)
    names.name("task", name)
    return Task(name=name, description=description[:500], file=file.name, kind=kind, stamp=stamp)


# Modules that this process has loaded, by file and stamp; a changed file is loaded anew beside the old one.
_modules: dict[tuple[Path, str], modules.Check] = {}


def _call_module(file: Path, stamp: str, service: Service, context: Context) -> Finding:
    """Load a module and call its check. Both count in the time limit, because what a module does when it is loaded may
    take for ever, too."""
    try:
        check = _loaded(file, stamp)
    except modules.Unfit as problem:
        return error("task_error", f"the task {file.name} failed: {problem}")
    return check(service, context)


def _loaded(file: Path, stamp: str) -> modules.Check:
    """Return the check of a module, loaded once. Raises Unfit, each time it is tried."""
    key = (file, stamp)
    if key not in _modules:
        _modules[key] = modules.load(file)[2]
    return _modules[key]


def _tcl_arguments(service: Service, scratch: Path, data: Path) -> tuple[str, ...]:
    """Return the arguments of the wrapper for Tcl files, which hands the fields of a service on one by
    one."""
    return (
        str(service.gid),
        service.uri,
        service.uuid,
        service.type,
        service.version or programs.UNSPECIFIED,
        service.entity,
        service.description,
        str(scratch),
        str(data),
    )


def _keep(settings: Settings, listed: TaskList) -> None:
    """Write the list. Where that fails, the tasks are identified again next time."""
    with suppress(OSError):
        settings.data.mkdir(parents=True, exist_ok=True)
        document = orjson.dumps(asdict(listed), option=orjson.OPT_INDENT_2)
        place_durably(settings.data / KEPT_FILE, document)
