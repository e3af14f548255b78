"""The command ``debug``: run a failed stage once more in the foreground, under a debugger."""

import signal
import sys
import tempfile
from bdb import BdbQuit
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spinney.model.errors import Refused, UsageError
from spinney.terminal import completion
from spinney.terminal.connection import open_local_store, resolve_settings
from spinney.terminal.exit_codes import Exit
from spinney.terminal.options.arguments import JobArgument, StoreOption, argument, option
from spinney.terminal.output.display import safe

if TYPE_CHECKING:
    from spinney.features.debug.stage_copy import StageCopy

_SHOWN = 200
"""How many characters of a value are printed."""


app = typer.Typer()


AppArgument = Annotated[
    str | None, argument("APP", "The application, as module:attribute (default: 'app' of spinney.toml).")
]
StageOption = Annotated[
    str | None,
    option(
        "--stage",
        metavar="STAGE",
        complete=completion.stages,
        help_="The stage to run (default: the one that failed last).",
    ),
]
KeepOption = Annotated[
    Path | None,
    option(
        "--keep",
        metavar="FOLDER",
        help_="A new or empty folder for the copies of the job's files, which stays (default: a temporary one).",
    ),
]


@app.command()
def debug(
    job: JobArgument,
    app: AppArgument = None,
    stage: StageOption = None,
    step: Annotated[
        bool, typer.Option("--step", help="Stop at the first line of the stage's function.")
    ] = False,
    debugger: Annotated[
        str, typer.Option(metavar="MODULE", help="The debugger: pdb, or a module like ipdb or pudb.")
    ] = "pdb",
    keep: KeepOption = None,
    store: StoreOption = None,
) -> None:
    """Run a failed stage once more in the foreground, under a debugger.

    The stage gets the same parameters, the data and the results of earlier stages, and a copy of the job's folder.
    Nothing is recorded: it changes no data, takes no lock and spawns no job in the store. What the stage does by itself
    (requests to other hosts, writes to files elsewhere, its own databases) happens again.
    """
    from spinney.app.loader import load_app
    from spinney.define.stage_guard import storeless
    from spinney.features.debug.debuggers import Debugger
    from spinney.features.debug.stage_copy import copy_stage

    configured = resolve_settings(store)
    application = app or configured.app
    if application is None:
        raise UsageError(
            f"no application is named; write 'spinney debug {job} module:app', or set app in spinney.toml"
        )
    if keep is not None and keep.exists() and any(keep.iterdir()):
        raise UsageError(f"the folder {keep} is not empty; name a new one with --keep")
    opened = Debugger(debugger)
    with storeless():
        loaded = load_app(application)
    with _temporary_folder() if keep is None else nullcontext(keep) as folder:
        copies = folder.resolve()
        with open_local_store(store) as opened_store:
            copy = copy_stage(opened_store, loaded, job, stage, root=configured.folders, copies=copies)
        typer.echo(f"running {copy.job.type}.{copy.job.stage} of job {job} in {copy.job.folder}")
        with storeless(loaded):
            failed = _run(
                copy, opened, function=loaded.types[copy.job.type].function(copy.job.stage), step=step
            )
    if failed:
        raise typer.Exit(Exit.REFUSED)


class _Ended(BaseException):
    """The process was asked to end by the signal of this number."""


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    """Yield a new folder that is removed at the end, also when SIGTERM or SIGHUP (the terminal was closed) ends the
    process."""

    def end(number: int, _: FrameType | None) -> None:
        raise _Ended(number)

    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        with tempfile.TemporaryDirectory(prefix="spinney-debug-") as folder:
            for number, handler in before.items():
                if handler is signal.SIG_DFL:
                    signal.signal(number, end)
            yield Path(folder)
    except _Ended as ended:
        from spinney.node.workers.termination import die_of

        die_of(ended.args[0])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _run(copy: "StageCopy", debugger: Any, *, function: Any, step: bool) -> bool:
    """Run the stage, open the debugger where it fails, print what became of it, and return whether it failed.

    ``function``: that of the stage; None for a program, which no debugger of Python opens. An outcome that
    the stage raises on purpose (defer, hold, warning) is printed and is no failure. Raises Refused when the
    debugger is left in the middle.
    """
    from spinney.features.debug.stage_copy import summary
    from spinney.model.attempts.signals import Signal, leaves, unwrapped
    from spinney.model.attempts.user_frames import user_frames
    from spinney.model.outcomes import Outcome

    def call() -> Any:
        return copy.runner(copy.params, copy.job)

    outcome, value = Outcome.OK, None
    try:
        value = debugger.step_into(function, call) if step else call()
    except (Exception, Signal, BaseExceptionGroup) as error:  # noqa: BLE001 - it is what the user looks for
        if any(isinstance(leaf, BdbQuit) for leaf in leaves(error)):
            raise Refused("the debugger was left before the stage ended") from None
        cause = unwrapped(error)
        if isinstance(cause, Signal):
            outcome, value = cause.outcome, cause.message
        else:
            outcome, value = Outcome.ERROR, f"{type(cause).__name__}: {cause}"
        # A program has none, and neither have parameters that do not fit the stage.
        frames = user_frames(cause)
        if outcome is Outcome.ERROR and frames is not None:
            import traceback

            traceback.print_exception(type(error), error, user_frames(error))
            debugger.post_mortem(frames)
    sys.stdout.flush()
    typer.echo(f"the stage ended with: {outcome}" + ("" if value is None else f", {_shown(value)}"))
    for name, of_it in summary(copy):
        typer.echo(f"  {name}: {_shown(of_it)}")
    return outcome is Outcome.ERROR


def _shown(value: Any) -> str:
    """Return the value as text that is safe for a terminal, cut after ``_SHOWN`` characters."""
    text = value if isinstance(value, str) else repr(value)
    return safe(text if len(text) <= _SHOWN else text[:_SHOWN] + " …")
