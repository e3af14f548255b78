"""The state of ``top``: what it shows, and what a key does. It knows no terminal and no store.

Everything that can be selected is an ``Item``, remembered by its name instead of its line, so that a refresh
never puts another item under the user's hand. A change takes three steps, each a ``Mode``: a verb's key
chooses the action for the selected item (LOOK), ``y`` or ``t`` confirms it (CONFIRM), a reason is typed and
sent with Enter (REASON). Only then does ``press`` return the ``Action``; whoever shows the board carries it
out.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from spinney.model.attempts.failure_groups import Failure
from spinney.model.jobs import Job
from spinney.model.operators.bulk_orders import Verb
from spinney.model.operators.stats import QueueStats, Stats
from spinney.model.states import State

LISTED = (State.RUNNING, State.PENDING, State.WAITING, State.SCHEDULED, State.HELD, State.FAILED)
"""The states of which jobs can be listed; Tab goes from one to the next, and from the last to the first."""
_STEPS = {"up": -1, "k": -1, "down": 1, "j": 1, "page up": -10, "page down": 10}
"""How many lines a key moves the selection."""
REASON_MAX = 200
"""How many characters a typed reason may have; further ones are ignored."""


class Kind(Enum):
    """The kind of thing that a line shows."""

    QUEUE = "queue"
    JOB = "job"
    FAILURE = "failure"


@dataclass(frozen=True, slots=True)
class Item:
    """Something that can be selected while the store has it."""

    kind: Kind
    name: str
    """A queue's name, a job's number, or the fingerprint of a failure."""

    def __str__(self) -> str:
        return f"{self.kind.value} {self.name[:8] if self.kind is Kind.FAILURE else self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The figures and the jobs that one refresh of ``top`` has read."""

    stats: Stats
    jobs: Sequence[Job]
    """The jobs of the state that is listed, at most as many as can be scrolled through."""
    failures: Sequence[Failure]
    """The causes of failures, those with the most jobs first."""

    @property
    def queues(self) -> list[QueueStats]:
        """Return the queues that have jobs or throughput, or a limit."""
        return [
            q
            for q in self.stats.queues
            if any((q.running, q.pending, q.scheduled, q.waiting, q.held, q.failed, q.rate))
            or q.limit is not None
        ]

    @property
    def items(self) -> list[Item]:
        """Return everything that can be selected, in the order of the screen."""
        return [
            *(Item(Kind.QUEUE, q.queue) for q in self.queues),
            *(Item(Kind.JOB, str(job.id)) for job in self.jobs),
            *(Item(Kind.FAILURE, failure.fingerprint) for failure in self.failures),
        ]


class Mode(Enum):
    """How a key is understood just now."""

    LOOK = "look"
    CONFIRM = "confirm"
    REASON = "reason"
    HELP = "help"


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """An action on an item, done once it has been confirmed."""

    verb: Verb
    """What the action does."""
    item: Item
    """What the action is applied to."""
    tree: bool = False
    """Whether it is also done to all jobs below."""
    reason: str = ""
    """What was typed; empty unless the verb needs a reason."""


class KeyCommand(Enum):
    """What a key makes the program do that the board cannot do itself, because it knows no store."""

    QUIT = "quit"
    REFRESH = "look again"
    EXPLAIN = "explain"


VERBS: Mapping[str, Verb] = {"h": Verb.HOLD, "u": Verb.RELEASE, "r": Verb.RETRY, "c": Verb.CANCEL}
"""The verb of each key that begins an action."""
ALLOWED_VERBS: Mapping[Kind, frozenset[Verb]] = {
    Kind.QUEUE: frozenset({Verb.HOLD, Verb.RELEASE}),
    Kind.JOB: frozenset(VERBS.values()),
    Kind.FAILURE: frozenset({Verb.RETRY}),
}
"""What can be done to each kind of item: a queue is only held and released; the jobs of a failure have
failed, so only a retry makes sense for all of them."""


@dataclass(slots=True)
class Board:
    """What is shown, what is selected, and the action that is being confirmed. Changed only by ``see``
    and ``press``."""

    look: Snapshot | None = None
    """What the last refresh has read; None: nothing yet."""
    listed: State = LISTED[0]
    """The state of the jobs that are listed."""
    mode: Mode = Mode.LOOK
    """How the next key is understood."""
    pending_action: Action | None = None
    """The action that waits for its confirmation or reason."""
    message: str = ""
    """The result of the last action, or why there was none."""
    selected: Item | None = None
    """The selected item, by its name."""
    _line: int = field(default=0)
    """The line of the selected item when it was last there; when it vanishes, its successor on that line
    is selected."""

    # --- the snapshot shown ---------------------------------------------------------------

    def see(self, look: Snapshot) -> None:
        """Show a new snapshot. The selected item stays selected while it exists, wherever it stands now."""
        self.look = look
        items = look.items
        if self.selected in items:
            self._line = items.index(self.selected)
        else:
            self._go(self._line)

    def _go(self, line: int) -> None:
        """Select the item on a line; beyond the ends the first or last. Without items nothing is selected."""
        items = self.look.items if self.look is not None else []
        self._line = max(0, min(line, len(items) - 1))
        self.selected = items[self._line] if items else None

    # --- keys -----------------------------------------------------------------------------

    def press(self, key: str) -> Action | KeyCommand | None:
        """Handle a key, and return what the program has to do because of it.

        That is an action that has been confirmed, or a command; None: nothing but drawing again. Keys
        are single characters, or names such as ``page up`` and ``enter``. A key without a meaning
        does nothing, except that any key leaves the help and any key but ``y`` (and ``t``, where it
        is offered) drops the action that is to be confirmed.
        """
        if self.mode is Mode.HELP:
            self.mode = Mode.LOOK
            return None
        if self.mode is Mode.CONFIRM:
            self._confirm(key)
            return None
        if self.mode is Mode.REASON:
            return self._write(key)
        return self._look(key)

    def _look(self, key: str) -> Action | KeyCommand | None:
        """Handle a key while nothing is being confirmed."""
        self.message = ""
        if key in _STEPS:
            self._go(self._line + _STEPS[key])
        elif key in ("home", "end"):
            self._go(0 if key == "home" else sys.maxsize)
        elif key in VERBS:
            self._ask(VERBS[key])
        elif key in ("tab", "back tab"):
            self.listed = LISTED[(LISTED.index(self.listed) + (1 if key == "tab" else -1)) % len(LISTED)]
            return KeyCommand.REFRESH
        elif key == "?":
            self.mode = Mode.HELP
        elif key == "q":
            return KeyCommand.QUIT
        elif key == "e" and self.selected is not None and self.selected.kind is Kind.JOB:
            return KeyCommand.EXPLAIN
        return None

    def _ask(self, verb: Verb) -> None:
        """Begin to confirm an action on the selected item, or say in the message why it cannot be
        done to it."""
        if self.selected is None:
            self.message = "there is nothing to select"
        elif verb not in ALLOWED_VERBS[self.selected.kind]:
            kinds = " or a ".join(kind.value for kind in Kind if verb in ALLOWED_VERBS[kind])
            self.message = f"{verb} is for a {kinds}; select one with the arrow keys"
        else:
            self.pending_action, self.mode = Action(verb=verb, item=self.selected), Mode.CONFIRM

    def _confirm(self, key: str) -> None:
        """Handle the answer to the question whether an action is to be done; it still needs a reason,
        which may be empty."""
        assert self.pending_action is not None
        if key == "t" and self.with_tree:
            self.pending_action, self.mode = replace(self.pending_action, tree=True), Mode.REASON
        elif key == "y":
            self.mode = Mode.REASON
        else:
            self._drop()

    @property
    def with_tree(self) -> bool:
        """Whether the action that is being confirmed may also be done to all jobs below: only a
        cancellation may."""
        return self.pending_action is not None and self.pending_action.verb is Verb.CANCEL

    def _write(self, key: str) -> Action | None:
        """Handle a key while the reason of an action is typed; return the action when it is complete."""
        action = self.pending_action
        assert action is not None
        if key == "escape":
            self._drop()
        elif key == "enter":
            if action.verb is Verb.HOLD and not action.reason.strip():
                self.message = "enter a reason: it is shown with every held job"
                return None
            self.pending_action, self.mode, self.message = None, Mode.LOOK, ""
            return action
        elif key == "backspace":
            self.pending_action = replace(action, reason=action.reason[:-1])
        elif key == "clear":
            self.pending_action = replace(action, reason="")
        elif len(key) == 1 and len(action.reason) < REASON_MAX:
            self.pending_action = replace(action, reason=action.reason + key)
        return None

    def _drop(self) -> None:
        self.pending_action, self.mode, self.message = None, Mode.LOOK, "nothing was done"
