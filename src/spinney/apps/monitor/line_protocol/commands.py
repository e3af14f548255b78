"""What each command of the line protocol does. All of them run in a thread; patterns reach SQL as parameters.

A command takes the open store and its arguments, and returns a reply in both formats. What is wrong with the arguments
is a reply with a code of its own; only trouble of the monitor is raised. Names of fields, texts, codes and their
spelling are those of the old server, also where they mislead: programs compare them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from spinney.apps.monitor import requests
from spinney.apps.monitor.inventory import entities, results, services
from spinney.apps.monitor.inventory.model import CurrentStatus, Service
from spinney.apps.monitor.line_protocol import layout
from spinney.apps.monitor.line_protocol.replies import Reply, box, nothing_found, refusal, reply
from spinney.apps.monitor.line_protocol.selections import integer, named
from spinney.apps.monitor.requests import SequenceStatus
from spinney.apps.monitor.sequences import Selection
from spinney.apps.monitor.settings import Settings
from spinney.apps.monitor.tasks import task_list
from spinney.operations import Control
from spinney.tables.database import Database

# What the old server called the procedures that run tasks, by language; all others are ``run_program``.
_PROCEDURES = {"Tcl": "run_tcl", "Bash": "run_bash"}


@dataclass(frozen=True, slots=True)
class CommandContext:
    """The store, the inventory and the settings on which commands of the line protocol work. It belongs to
    the thread that opened it."""

    control: Control
    tables: Database
    settings: Settings

    def local(self, at_us: int, form: str = "%Y-%m-%d %H:%M:%S") -> str:
        """Return a time in the zone of the settings. ``form``: as for ``strftime``."""
        return datetime.fromtimestamp(at_us / 1_000_000, ZoneInfo(self.settings.zone)).strftime(form)


Arguments = Sequence[str]


def noop(context: CommandContext, arguments: Arguments) -> Reply:
    """Reply that the server is there; the spelling is the old server's."""
    return box(120, "Noop command acknoledged")


def stop(context: CommandContext, arguments: Arguments) -> Reply:
    """Stop all sequences; checks at work end after the task that they are at."""
    requests.stop(context.control)
    return box(502, "Stopping operations", status="ok")


def registered_tasks(context: CommandContext, arguments: Arguments) -> Reply:
    """List the tasks in their order (``REGTASKS``). The footer counts the caption, too, as clients know it;
    in JSON ``script`` is the language and ``procedure`` the file."""
    tasks = task_list.last_read(context.settings).current
    rows = [
        (task.name, _PROCEDURES.get(task.language, "run_program"), task.description, task.file, task.language)
        for task in tasks
    ]
    hr = layout.table(
        "[110] Registered Tasks",
        ("Task", "Procedure", "Description", "Script", "Language"),
        rows,
        f"[110] {len(rows) + 1} registered tasks",
    )
    listed = [
        {
            "task": name,
            "script": language,
            "function": procedure,
            "description": description,
            "procedure": file,
        }
        for name, procedure, description, file, language in rows
    ]
    return reply(110, hr, {"message": f"{len(rows)} jobs running", "tasks": listed})


def list_entities(context: CommandContext, arguments: Arguments) -> Reply:
    """List the entities whose description is like a pattern (``ENTITIES [-alpha] [PATTERN]``), those with
    most services first or, with ``-alpha``, by description. If there are several patterns, the last one counts."""
    patterns = [argument for argument in arguments if argument != "-alpha"]
    pattern = patterns[-1] if patterns else "%"
    listed = entities.query(context.tables, pattern, alphabetically="-alpha" in arguments)
    hr = layout.table(
        "[108] List of Entities",
        ("Eid", "Description", "Records"),
        [(entity.eid, layout.cut(entity.description, 80), entity.services) for entity in listed],
    )
    fields = [
        {"eid": entity.eid, "description": entity.description, "records": entity.services}
        for entity in listed
    ]
    return reply(108, hr, {"entities": fields})


def list_services(context: CommandContext, arguments: Arguments) -> Reply:
    """List the services of an entity (``LSSERV EID [OFFSET [LIMIT]]``): its number, and optionally how many
    to leave out (0) and to list (100)."""
    if not arguments:
        return refusal(503, "Missing argument for code 122")
    numbers = []
    for place, argument in enumerate(arguments[:3]):
        number = integer(argument)
        if number is None or (number < 0 and place > 0):
            return refusal(103, f"Wrong argument(s): '{argument}'")
        numbers.append(number)
    eid, offset, limit = [*numbers, *(0, 0, 100)[len(numbers) :]]
    entity = entities.get(context.tables, eid)
    if entity is None:
        return nothing_found(f"No entity found with eid = {eid}")
    rows, fields = [], []
    for s in services.of_entity(context.tables, eid, offset=offset, limit=limit):
        host = _host(s.uri)
        rows.append((s.gid, layout.cut(s.description, 60), host, s.type, s.version))
        fields.append(
            {"gid": s.gid, "description": s.description, "host": host, "type": s.type, "version": s.version}
        )
    hr = layout.box("[122] No services found")
    if rows:
        caption = ("GID", "Description", "Host", "Type", "Version")
        hr = layout.table(f"[122] '{entity.description}'", caption, rows)
    return reply(122, hr, {"message": entity.description, "services": fields})


def query_services(context: CommandContext, arguments: Arguments) -> Reply:
    """Show services with all that is recorded of them (``QSERVICE``), those of patterns first. A service that
    several arguments name is shown for each."""
    selection = named(arguments)
    if selection.is_empty:
        return nothing_found()
    matches = [
        s for pattern in selection.patterns for s in services.like_description(context.tables, pattern)
    ]
    by_number = {s.gid: s for s in services.by_numbers(context.tables, selection.gids)}
    matches += [by_number[gid] for gid in selection.gids if gid in by_number]
    if not matches:
        return reply(116, layout.box("[116] No service found"), {"message": "0 Matching services found"})
    current = results.current(context.tables, {s.gid for s in matches})
    fields = [_service_fields(context, service, current.get(service.gid, [])) for service in matches]
    return reply(
        116,
        "".join(_service_table(service) for service in matches),
        {"message": f"{len(matches)} Matching services found", "services": fields},
    )


def query_tasks(context: CommandContext, arguments: Arguments) -> Reply:
    """Show the results of one service (``QTASK``), in the order of the tasks: that of the first number, or,
    where that has none, the first that is like the first pattern. Results of tasks that are no longer on the
    list are left out."""
    selection = named(arguments)
    matches = services.by_numbers(context.tables, selection.gids[:1])
    if not matches and selection.patterns:
        matches = services.like_description(context.tables, selection.patterns[0])
    if not matches:
        return nothing_found()
    service = matches[0]
    title = service.description or f"gid service {service.gid}"
    current = {
        result.task: result for result in results.current(context.tables, [service.gid]).get(service.gid, [])
    }
    rows, fields = [], []
    for task in task_list.last_read(context.settings).current:
        if (result := current.get(task.name)) is not None:
            time = context.local(result.at_us)
            rows.append((task.description, layout.coloured(result.status), result.info, time))
            fields.append(
                {"task": task.name, "exit_status": result.status, "exit_info": result.info, "ts": time}
            )
    hr = layout.box("[118] No tasks performed on this service")
    if rows:
        hr = layout.table(f"[118] {title}", ("Task", "Status", "Info", "Timestamp"), rows)
    message = f"Service {service.gid} ({service.description}, type {service.type})"
    return reply(118, hr, {"message": message, "tasks": fields})


def check(context: CommandContext, arguments: Arguments) -> Reply:
    """Start sequences (``CHECK``): one for all numbers of services, and one for each entity that is named by
    number or pattern and has services. What names nothing is passed over, unless all of it does."""
    selection = named(arguments)
    if selection.is_empty:
        return nothing_found()
    selected = [entity for eid in selection.eids if (entity := entities.get(context.tables, eid)) is not None]
    for pattern in selection.patterns:
        selected += entities.query(context.tables, pattern)
    numbered = services.by_numbers(context.tables, selection.gids)
    if not (selected or numbered):
        if selection.patterns and not (selection.gids or selection.eids):
            return nothing_found()
        return refusal(105, "Invalid keys in argument list")
    if numbered:
        requests.start(context.control, Selection(gids=tuple(s.gid for s in numbered)), _series(numbered))
    for entity in selected:
        if entity.services:
            requests.start(context.control, Selection(eid=entity.eid), entity.description)
    return box(102, "OK")


def query_sequences(context: CommandContext, arguments: Arguments) -> Reply:
    """Show the sequences that have not ended (``QUERY``): those with checks to begin, then those that wait
    for their last."""
    listed = requests.sequences(context.control)
    queued = [sequence for sequence in listed if not sequence.is_pending]
    pending = [sequence for sequence in listed if sequence.is_pending]
    rows = [
        (s.sequence_id, layout.cut(s.name, 80), s.running, s.completed, s.total, status)
        for status, sequences in (("queued", queued), ("pending", pending))
        for s in sequences
    ]
    running = sum(s.running for s in listed)
    caption = ("Seq ID", "Description", "Running Jobs", "Completed Jobs", "Total Jobs", "Status")
    footer = f"{running} running 0 idle threads"
    hr = layout.table("[106] Job Sequences Status", caption if rows else None, rows, footer)
    message = f"{len(queued)} queued job sequences ({running} jobs), {len(pending)} pending sequences"
    fields: dict[str, object] = {
        "status": "ok",
        "message": message,
        "threads": {"running": running, "idle": 0},
    }
    for name, sequences in (("pending", pending), ("queued", queued)):
        if sequences:
            fields[name] = [_sequence_fields(sequence) for sequence in sequences]
    return reply(106, hr, fields)


def list_jobs(context: CommandContext, arguments: Arguments) -> Reply:
    """Show the checks that run now (``JOBLIST``); checks of sequences with nothing left to begin come
    last."""
    pending = {sequence.job_id for sequence in requests.sequences(context.control) if sequence.is_pending}
    at_work = sorted(requests.running(context.control), key=lambda check: check.sequence in pending)
    if not at_work:
        return reply(114, layout.box("[114] No Jobs Running"), {"message": "No job running", "njobs": 0})
    of_number = {s.gid: s for s in services.by_numbers(context.tables, [check.gid for check in at_work])}
    now_us = context.control.clock()
    rows, fields = [], []
    for running in at_work:
        if (s := of_number.get(running.gid)) is not None:
            # In the old server's words: its task, unless it is about to stop or has not begun.
            state = "stop_signal_received" if running.is_stopping else running.task or "created"
            elapsed = layout.elapsed((now_us - running.since_us) / 1_000_000)
            rows.append((s.gid, layout.cut_at_work(s.description), s.type, s.version, state, elapsed))
            fields.append(
                {
                    "gid": s.gid,
                    "description": s.description,
                    "type": s.type,
                    "version": s.version,
                    "status": state,
                    "timestamp": running.since_us // 1_000_000,
                }
            )
    caption = ("GID", "Description", "URL Type", "Version", "Task", "Running")
    hr = layout.table(f"[114] {len(rows)} Job Executing", caption, rows)
    return reply(114, hr, {"message": f"{len(rows)} jobs running", "njobs": len(rows), "jobs": fields})


COMMANDS: Mapping[str, Callable[[CommandContext, Arguments], Reply]] = {
    "CHECK": check,
    "ENTITIES": list_entities,
    "JOBLIST": list_jobs,
    "LSSERV": list_services,
    "NOOP": noop,
    "QSERVICE": query_services,
    "QTASK": query_tasks,
    "QUERY": query_sequences,
    "REGTASKS": registered_tasks,
    "STOP": stop,
}
"""The commands that concern no connection; ``FORMAT``, ``WHOS`` and ``SHUTDWN`` are the server's."""


def _host(uri: str) -> str:
    """Return the host of a URI as it is written; an empty text where it has none."""
    try:
        place = urlsplit(uri if "://" in uri else f"http://{uri}").netloc.rpartition("@")[2]
        # As it is written: ``hostname`` would be in lower case.
        return place[1:].partition("]")[0] if place.startswith("[") else place.partition(":")[0]
    except ValueError:
        return ""


def _series(numbered: Sequence[Service]) -> str:
    """Return the name of a sequence that was started by numbers of services."""
    if len(numbered) == 1:
        return numbered[0].description or numbered[0].entity
    return f"Series of {len(numbered)} records"


def _service_table(service: Service) -> str:
    """Return the table of one service, whose rows are names and values."""
    rows = [
        ("gid", service.gid),
        ("uuid", service.uuid),
        ("Description", service.description),
        ("Entity", f"{service.entity} (eid={service.eid})"),
        ("URL", service.uri),
        ("Type", service.type),
        ("Version", service.version),
    ]
    title = f"[116] {service.description or f'gid service {service.gid}'}"
    return layout.table(title, None, [(name, layout.cut(str(value), 80)) for name, value in rows])


def _service_fields(
    context: CommandContext, service: Service, current: Sequence[CurrentStatus]
) -> Mapping[str, object]:
    return {
        "gid": service.gid,
        "description": service.description,
        "entity": f"{service.entity} (eid={service.eid})",
        "uri": service.uri,
        "uri_type": service.type,
        "version": service.version,
        "uuid": service.uuid,
        "tasks": [
            {
                "task": result.task,
                "timestamp": context.local(result.at_us),
                "status": result.status,
                "info": result.info,
                "uuid": result.uuid,
            }
            for result in current
        ],
    }


def _sequence_fields(sequence: SequenceStatus) -> Mapping[str, object]:
    return {
        "sequence": f"::ngis::Sequences::{sequence.sequence_id}",
        "description": sequence.name,
        "active_jobs": sequence.running,
        "completed_jobs": sequence.completed,
        "total_jobs_number": sequence.total,
    }
