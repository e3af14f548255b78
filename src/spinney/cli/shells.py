"""The completion scripts of the shells, and how each shell passes a line and takes the answer.

zsh and fish pass the line that is being written, and replace the whole word: their scripts and protocols are typer's.
bash divides a word at ``:``, ``=`` and ``@`` and replaces what is behind the last of these, so that the pieces that it
passes to a script are not the words of the command. The script for bash is therefore Spinney's own: it passes the line
as it was typed, and the piece that will be replaced.
"""

import os
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

PROGRAM = "spinney"
VARIABLE = "_SPINNEY_COMPLETE"
"""Set by a shell's script: ``complete_`` or ``source_`` and the name of the shell."""
LINE, PIECE = "_SPINNEY_LINE", "_SPINNEY_PIECE"
"""What bash's script hands over: the line up to the cursor, and what an offer will replace."""

# mapfile, since what comes from a command's output by itself would have its wildcards expanded.
BASH = f"""
%(complete_func)s() {{
    local program=${{1/#\\~\\//"$HOME/"}} lines
    mapfile -t lines < <(
        {LINE}="${{COMP_LINE:0:COMP_POINT}}" {PIECE}="${{2-}}" \\
            %(autocomplete_var)s=complete_bash "$program" 2>/dev/null
    )
    COMPREPLY=("${{lines[@]:1}}")
    [[ ${{lines[0]-}} != files ]] || compopt -o default
}}

complete -F %(complete_func)s %(prog_name)s
"""

_END = "\0"
"""Stands in no line: marks the end of the word that is completed, though it be empty or its quote open."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A word that could stand at the cursor."""

    value: str
    help: str | None = None
    """The summary of the command, for shells that show it."""


FILES = Suggestion("")
"""Returned in place of words where the name of a file may stand: the shell then offers files."""


Ask = Callable[[Sequence[str], str], list[Suggestion]]
"""Returns the suggestions for the words before the cursor (without the program's name) and the word that is begun."""


def install_bash_script() -> None:
    """Let Typer's ``--install-completion`` and ``--show-completion`` use Spinney's script for bash, in place
    of Typer's own."""
    from typer import _completion_shared  # typer gives no public way

    _completion_shared._completion_scripts["bash"] = BASH


def script(shell: str) -> str:
    """Return the completion script of a shell, as ``--show-completion`` prints it. ``shell`` is ``bash``,
    ``zsh``, ``fish`` or another that Typer knows. Raises ``typer.Exit``, after a message, for one that it
    does not know."""
    from typer._completion_shared import get_completion_script

    install_bash_script()
    return get_completion_script(prog_name=PROGRAM, complete_var=VARIABLE, shell=shell)


def answer(shell: str, ask: Ask) -> str:
    """Return what the script of a shell expects to be printed, possibly nothing.

    The line being typed is in environment variables that the script set: those of ``BASH`` for bash, Typer's
    for the others. ``ask`` is called once at most.
    """
    return _bash(ask) if shell == "bash" else _typers(shell, ask)


def _bash(ask: Ask) -> str:
    """Return the answer to bash: ``files`` or ``words`` on the first line, then a word a line.

    bash replaces only the piece behind the last ``:``, ``=`` or ``@``, so the part of each word before that
    piece is cut off. Nothing is offered where the piece is not the end of the word, as within quotes that
    bash splits in another way.
    """
    *before, begun = split(os.environ[LINE])[1:]
    piece = split(os.environ[PIECE])[-1]
    if not begun.endswith(piece):
        return ""
    stays = begun[: len(begun) - len(piece)]
    offers = ask(before, begun)
    words = [offer.value for offer in offers if offer is not FILES and offer.value.startswith(stays)]
    return "\n".join(["files" if FILES in offers else "words", *(word[len(stays) :] for word in words)])


def split(line: str) -> list[str]:
    """Return the words of a line that is not finished; the last is the one being written, perhaps empty.

    Quotes and backslashes are read as a POSIX shell reads them; an open quote begins the last word. Nothing
    is expanded.
    """
    lexer = shlex.shlex(line + _END, posix=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    words: list[str] = []
    try:
        words += lexer
    except ValueError:  # a quote is open: what came since is the word
        words.append(lexer.token)
    return [*words[:-1], words[-1].removesuffix(_END)]


def _typers(shell: str, ask: Ask) -> str:
    """Return the answer in the protocol of Typer for zsh, fish and PowerShell."""
    from typer._click.shell_completion import get_completion_class
    from typer._completion_classes import completion_init

    completion_init()
    kind: Any = get_completion_class(shell)
    protocol = kind(None, {}, PROGRAM, VARIABLE)
    # Where there are no words these shells' scripts offer files by themselves.
    protocol.get_completions = lambda before, begun: [
        offer for offer in ask(before, begun) if offer is not FILES
    ]
    text: str = protocol.complete()
    return text
