"""The command ``top``: a live view of a store, with the operator's most frequent actions.

One thread does everything in turn: it queries the store, draws, and waits for a key until the next refresh is due. So
there is never more than one query, and the thread that took the terminal gives it back.
"""

import os
import signal
import time
from typing import TYPE_CHECKING, Annotated

import typer

from spinney.commands import Performs
from spinney.commands.job_filter import JobFilterBody
from spinney.commands.job_queries import ListJobs
from spinney.features.bulk.commands import RunBulk
from spinney.features.explain.commands import ExplainJob
from spinney.features.failures.commands import ListFailures
from spinney.features.holds.commands import LayHold, LiftHold, lying_on
from spinney.features.stats.commands import ShowStats
from spinney.features.stats.top_board import Action, Board, KeyCommand, Kind, Snapshot
from spinney.features.stats.top_view import picture
from spinney.model.errors import SpinneyError, StoreUnusable
from spinney.model.operators.bulk_orders import Verb
from spinney.model.settings.holds import Scope
from spinney.model.states import LEASED, State
from spinney.schemas import BulkProgress, BulkResult
from spinney.terminal import endpoint
from spinney.terminal.connection import now_us, open_client, open_control
from spinney.terminal.options.arguments import ByOption, StoreOption, length

if TYPE_CHECKING:
    from spinney.store.parts import Store
    from spinney.terminal.output.screen import Screen

EVERY_S = 1.0
"""The refresh interval in seconds, unless ``--every`` says otherwise."""
REST = 4
"""A query that took long is followed by a pause this many times as long, since the store is there for the
work."""
LISTED_MAX = 200
"""How many jobs and causes are read for scrolling; ``list`` and ``failures`` show all."""


app = typer.Typer()


@app.command()
def top(
    every: Annotated[
        float,
        typer.Option(
            metavar="TIME",
            parser=length("--every", 0.1, 3600),
            help="The refresh interval, for example 2 or 1m.",
        ),
    ] = EVERY_S,
    by: ByOption = None,
    store: StoreOption = None,
) -> None:
    """Watch a store live, and hold, release, retry or cancel the selected jobs. ? shows the keys."""
    from spinney.terminal.output.screen import Screen, require_terminal

    require_terminal("spinney top", "'spinney stats' prints the same figures")
    opened = (
        open_client(store, by, wait_for_server=False) if endpoint.server(store) else open_control(store, by)
    )
    with opened as performer:
        # Before the terminal is taken, so that the error of an unreadable store is printed as for every command.
        first = _look(performer, Board())
        with Screen() as screen:
            _Session(performer, screen, every).run(first)
    if screen.ended_by:
        # The terminal is restored; now the signal may end the process, as its exit status has to show.
        signal.signal(screen.ended_by, signal.SIG_DFL)
        os.kill(os.getpid(), screen.ended_by)


class _Session:
    """One run of the command, from taking the screen to leaving it.

    The loop refreshes when it is due, draws, and waits for keys until the next refresh. After a hold or
    release directly on the store it also sweeps: it moves the affected jobs between the tables of ready
    and held jobs, a step at a time between two drawings, since perhaps no node is running that would.
    """

    def __init__(self, performer: Performs, screen: "Screen", every_s: float) -> None:
        self._performer, self._screen, self._every_s = performer, screen, every_s
        self._store: Store | None = getattr(performer, "store", None)
        """The store; None: the board works through a server, which lets held jobs go on by itself."""
        self._board = Board()
        self._due = 0.0
        self._sweeping = False
        """A hold was placed or released, and its sweep is not over."""

    def run(self, first: Snapshot) -> None:
        """Draw and obey keys until ``q`` or a signal ends it. ``first``: the snapshot that was read
        before the screen was taken."""
        self._board.see(first)
        self._due = time.monotonic() + self._every_s
        while self._screen.ended_by is None:
            if time.monotonic() >= self._due:
                self._refresh()
            rest_s = self._sweep() if self._sweeping else self._due - time.monotonic()
            self._draw()
            for key in self._screen.wait(min(rest_s, self._due - time.monotonic())):
                command = self._board.press(key)
                if command is KeyCommand.QUIT:
                    return
                self._do(command)

    def _refresh(self) -> None:
        """Read a new snapshot, and set when the next one is due. An unreachable store leaves the last
        one on the screen."""
        begun = time.monotonic()
        try:
            self._board.see(_look(self._performer, self._board))
        except StoreUnusable as error:
            # Perhaps for a moment only: the last figures stay on the screen, with their time.
            self._board.message = str(error)
        ended = time.monotonic()
        self._due = ended + max(self._every_s, REST * (ended - begun))

    def _draw(self) -> None:
        seen_us = self._board.look.stats.at_us if self._board.look is not None else 0
        self._screen.draw(picture(self._board, self._screen.size, seen_us))

    # --- actions ---------------------------------------------------------------------------

    def _do(self, command: Action | KeyCommand | None) -> None:
        """Perform the action that a key has chosen, and refresh at once, so that its effect is seen. A refusal is shown
        as the message."""
        if command is None:
            return
        try:
            if isinstance(command, Action):
                self._board.message = self._done(command)
            elif command is KeyCommand.EXPLAIN and self._board.selected is not None:
                self._board.message = self._explained(int(self._board.selected.name))
                return
        except SpinneyError as error:
            self._board.message = str(error)
        self._due = 0.0

    def _done(self, action: Action) -> str:
        """Carry out a confirmed action, and return the message about its result.

        A job or the jobs of a failure are changed by a bulk command, so that a failure of 100,000
        jobs is retried in steps with progress; a queue is held and released by holds. Raises what
        these commands raise.
        """
        if action.item.kind is Kind.QUEUE:
            return self._queue(action)
        is_job = action.item.kind is Kind.JOB
        command = RunBulk(
            verb=action.verb,
            reason=action.reason or None,
            tree=action.tree,
            ids=[int(action.item.name)] if is_job else None,
            filter=None if is_job else JobFilterBody(failure=action.item.name),
        )
        return f"{action.verb} {action.item}: {_result_text(self._performer.do(command, tell=self._show_progress))}"

    def _show_progress(self, progress: BulkProgress) -> None:
        self._board.message = f"{progress.touched:,} jobs so far …"
        self._draw()

    def _queue(self, action: Action) -> str:
        """Hold a queue, or lift every hold on the queue itself, and return the message; wider holds
        that also cover it stay."""
        name, performer = action.item.name, self._performer
        if action.verb is Verb.HOLD:
            message = str(performer.do(LayHold(scope=Scope.QUEUE, name=name, reason=action.reason)))
        else:
            holds, reason = lying_on(performer, Scope.QUEUE, name), action.reason or None
            lifted = [performer.do(LiftHold(hold=hold.id, reason=reason)) for hold in holds]
            message = f"released: {'; '.join(map(str, lifted))}"
        self._sweeping = self._store is not None
        return message

    def _sweep(self) -> float:
        """Do one step of the sweep after a hold or its end, as nodes do; return how many seconds to
        rest after it."""
        begun = time.monotonic()
        self._sweeping = self._store is not None and self._store.holds.sweep(now_us=now_us())
        return REST * (time.monotonic() - begun)

    def _explained(self, job_id: int) -> str:
        explanation = self._performer.do(ExplainJob(job=job_id))
        return "; ".join(filter(None, (explanation.sentence, explanation.command)))


def _look(performer: Performs, board: Board) -> Snapshot:
    """Read what one refresh shows. Held and failed jobs are listed newest first, because those are the
    ones to look at; all others in the order of their numbers, oldest first, which is roughly that in
    which they run."""
    states: list[State] = sorted(LEASED) if board.listed is State.RUNNING else [board.listed]
    newest = board.listed in (State.HELD, State.FAILED)
    return Snapshot(
        stats=performer.do(ShowStats()),
        jobs=performer.do(ListJobs(state=states, limit=LISTED_MAX, newest=newest)).items,
        failures=performer.do(ListFailures(limit=LISTED_MAX)).items,
    )


def _result_text(result: BulkResult) -> str:
    """Return what a bulk command did in a few words: how many jobs, how many ancestors regrew, and the
    first refusal."""
    parts = [f"{result.touched:,} done"] if result.touched != 1 else ["done"]
    if result.reopened:
        parts.append(f"{result.reopened:,} that wait for them are open again")
    parts += list(result.refused.values())[:1]
    if result.refused_jobs > 1:
        parts.append(f"and {result.refused_jobs - 1:,} more refused")
    return "; ".join(parts if result.touched or not result.refused else parts[1:])
