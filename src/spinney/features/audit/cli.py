"""The command ``audit``: the log of what operators did, a chain of entries that can be verified.

``audit`` alone lists the entries; ``head``, ``verify`` and ``export`` are commands below it. The list joins the steps
of one call into a line, unless ``--steps`` asks for single entries.
"""

import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from spinney.commands import Performs, Returns, each
from spinney.commands.fields import PAGE_MAX
from spinney.features.audit.commands import (
    ChainedEntry,
    ChainHead,
    ListAuditCalls,
    ListAuditEntries,
    ShowAuditHead,
    VerifyAudit,
)
from spinney.features.audit.details import in_words
from spinney.files.copies import sync_folder
from spinney.model.errors import AuditBroken, Refused, UsageError
from spinney.model.operators.audits import AuditCall, AuditEntry, details
from spinney.model.values.lists import Page
from spinney.model.values.texts import counted
from spinney.terminal.commands import Shown, command, steps
from spinney.terminal.connection import open_commands
from spinney.terminal.options.arguments import (
    SEQ_MAX,
    JsonOption,
    StoreOption,
    argument,
    command_group,
    option,
)
from spinney.terminal.options.option_groups import with_option_groups
from spinney.terminal.output import display


@dataclass(frozen=True, kw_only=True)
class ListOptions:
    """The options of the list, which ``audit`` and ``audit list`` have alike."""

    after: Annotated[
        int | None,
        option(metavar="N", min=0, max=SEQ_MAX, help_="Start after entry N instead of with the latest."),
    ] = None
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="The maximum number of entries.")] = 50
    verb: Annotated[str | None, option(help_="Only this action, for example retry.")] = None
    by: Annotated[str | None, option(metavar="NAME", help_="Only actions of this user.")] = None
    steps: Annotated[
        bool, typer.Option("--steps", help="Show each step of a bulk action as an entry of its own.")
    ] = False
    json: JsonOption = False
    store: StoreOption = None


app = typer.Typer()
group = command_group(app, "audit")


@group.callback(invoke_without_command=True, no_args_is_help=False)
@with_option_groups
def audit(context: typer.Context, list_options: ListOptions) -> None:
    """Show the audit log of operators' actions, the latest last, and its head."""
    if context.invoked_subcommand is None:
        _list(list_options)
        return
    options = [
        name
        for name in context.params
        if context.get_parameter_source(name) is not None
        and context.get_parameter_source(name).name == "COMMANDLINE"  # type: ignore[union-attr]
    ]
    if options:
        option = f"--{options[0]}"
        raise UsageError(
            f"write {option} after the subcommand: spinney audit {context.invoked_subcommand} {option} …"
        )


@group.command("list")
@with_option_groups
def list_entries(list_options: ListOptions) -> None:
    """Show the audit log of operators' actions, the latest last, and its head.

    An action on many jobs works in steps, each with an entry of its own; the list shows them as one line.
    """
    _list(list_options)


def _list(options: ListOptions) -> None:
    """Print the entries and the head."""
    listing = ListAuditEntries if options.steps else ListAuditCalls
    pages: Returns[Page[Any]] = listing(
        verb=options.verb,
        by=options.by,
        newest=options.after is None,
        after=options.after or 0,
        limit=min(options.limit, PAGE_MAX),
    )
    with open_commands(options.store) as performer:
        lines: list[AuditCall | ChainedEntry] = [*islice(each(performer, pages), options.limit)]
        head = performer.do(ShowAuditHead()).head
    if options.after is None:
        lines.reverse()
    if options.json:
        display.print_json_lines(_parsed(line) for line in lines)
        return
    if lines:
        display.print_list(
            lines,
            {
                "ENTRY": _numbers,
                "WHEN": lambda line: display.format_time(line.at_us),
                "BY": lambda line: line.by,
                "VERB": lambda line: line.verb,
                "COUNT": lambda line: f"{line.count:,}",
                "WHAT": _details,
                "REASON": lambda line: line.reason,
            },
            json=False,
        )
    typer.echo(f"head {head}")


@command(group, ShowAuditHead, "head")
def print_head(answer: ChainHead) -> Shown:
    """Print the audit log's head. Kept elsewhere, it lets 'audit verify HEAD' prove that nothing before was changed."""
    head = answer.head
    return Shown({"entries": int(head.partition(":")[0]), "head": head}, head)


@steps(
    group,
    VerifyAudit,
    "verify",
    head=argument(
        "HEAD",
        "A head that was printed or exported earlier; also proves that no entry up to it was "
        "removed or rewritten.",
    ),
)
def verify(query: VerifyAudit, performer: Performs, *, json: JsonOption = False) -> None:
    """Verify that no entry was changed or removed; exit code 1 if one was."""
    chain = performer.do(query)
    if chain.broken is not None:
        raise AuditBroken(chain.broken)
    now = performer.do(ShowAuditHead()).head
    if json:
        display.print_json({"entries": chain.proven, "up_to": query.head, "head": now})
        return
    typer.echo(chain.intact_text(query.head))
    typer.echo(f"head {now}")


@group.command()
def export(
    file: Annotated[Path, argument("FILE", "The file to write; it must not exist.")],
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Export all entries with their hashes to a file, one JSON object a line."""
    if file.exists():
        raise Refused(f"{file} already exists and is not overwritten; name another file")
    with open_commands(store) as performer:
        head = performer.do(ShowAuditHead()).head
        until = int(head.partition(":")[0])
        # As they are chained, so that the links can be computed anew from the file alone.
        entries = islice(each(performer, ListAuditEntries(newest=False, limit=PAGE_MAX)), until)
        _write_new(file, (orjson.dumps(entry, option=orjson.OPT_APPEND_NEWLINE) for entry in entries))
    if json:
        display.print_json({"entries": until, "head": head})
        return
    typer.echo(f"{counted(until, 'entry', 'entries')} written to {display.safe(str(file))}")
    typer.echo(f"head {head}")


# --- output -----------------------------------------------------------------------------------


def _numbers(line: AuditCall | ChainedEntry) -> str:
    """Return the number of an entry, or the first and the last of a call that took several steps."""
    if isinstance(line, AuditEntry):
        return str(line.seq)
    return str(line.first) if line.steps == 1 else f"{line.first}–{line.last}"


def _details(line: AuditCall | ChainedEntry) -> str:
    """Return the details of a line as text: ``job 17, with all subjobs``. Lists are cut; the reason has a column of
    its own."""
    what = details(line.what)
    if not isinstance(what, dict):
        return line.what
    without_reason = {name: value for name, value in what.items() if name != "reason"}
    return in_words(without_reason, display.format_time, line.count)


def _parsed(line: AuditCall | ChainedEntry) -> Mapping[str, Any]:
    """Return the line for programs, with the details as an object instead of a text."""
    return {**asdict(line), "what": details(line.what)}


# --- export -----------------------------------------------------------------------------------


def _write_new(file: Path, lines: Iterator[bytes]) -> None:
    """Write a file that appears whole or not at all, and never in place of another. Raises Refused when there
    is one.

    The lines go to a temporary file beside it, which is synchronized and then linked to the name: unlike
    ``rename``, ``link`` fails where the name is taken. A crash leaves at most the hidden temporary file.
    """
    handle, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    try:
        with os.fdopen(handle, "wb") as out:
            out.writelines(lines)
            out.flush()
            os.fsync(out.fileno())
        try:
            os.link(name, file)
        except FileExistsError:
            raise Refused(f"{file} already exists and is not overwritten; name another file") from None
    finally:
        Path(name).unlink()
    sync_folder(file.parent)
