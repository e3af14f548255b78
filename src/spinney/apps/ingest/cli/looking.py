"""``status``, ``batches``, ``objects``, ``object``, ``find``, ``profiles``: what people look at."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Annotated, Any, TypeVar

import typer

from spinney.apps.ingest.cli import words
from spinney.apps.ingest.cli.session import meant, refusing, serving
from spinney.apps.ingest.cli.words import BatchArgument, ProfileOption, StageOption
from spinney.apps.ingest.elements import Elements, elements, mode, passed
from spinney.apps.ingest.identifiers import arks
from spinney.apps.ingest.inventory import Found, open_inventory
from spinney.apps.ingest.orders import ObjectOrder
from spinney.apps.ingest.profiles import Profile
from spinney.apps.ingest.settings import load
from spinney.apps.ingest.staff import Batch, Listed, Service, batch, batches, object_, objects, readable
from spinney.apps.ingest.states import BatchState
from spinney.cli import completing, showing
from spinney.cli.arguments import JsonOption, StoreOption
from spinney.cli.exits import Exit
from spinney.model.jobs import JOB_ID_MAX, Filter, Job
from spinney.model.states import State

T = TypeVar("T")
LimitOption = Annotated[int, typer.Option("--limit", min=1, max=10_000, help="How many.")]
AfterOption = Annotated[
    int, typer.Option("--after", metavar="JOB", min=0, max=JOB_ID_MAX, help="From behind this job on.")
]


def add_to(app: typer.Typer) -> None:
    app.command()(status)
    app.command("batches")(list_batches)
    app.command("objects")(list_objects)
    app.command("object")(show_object)
    app.command()(find)
    app.command("profiles")(list_profiles)


def status(which: BatchArgument, json: JsonOption = False, store: StoreOption = None) -> None:
    """Show where a batch stands, and how many of its objects stand where."""
    with serving(store) as service:
        found = batch(service, which)
        counts = service.store.counts(Filter(parent_id=found.job.id))
        holds = service.store.holds.covering(found.job.id) if found.job.settled_us is None else []
    told = _told(found) | {"objects": {str(state): n for state, n in counts.items() if n}}
    if json:
        showing.as_json(told | {"holds": holds})
        return
    told["objects"] = ", ".join(f"{n:,} {state}" for state, n in told["objects"].items())
    _print_facts(told | {name: showing.moment(told[name]) for name in ("accepted_us", "settled_us")})
    for hold in holds:
        showing.console().print(f"{'under':<12} {showing.safe(str(hold))}")


def list_batches(
    profile: ProfileOption = None,
    state: Annotated[
        BatchState | None,
        typer.Option(help="Only of this state.", show_default=False, autocompletion=words.batch_states),
    ] = None,
    submitter: Annotated[
        str | None,
        typer.Option(help="Only of this submitter.", show_default=False, autocompletion=completing.submitters),
    ] = None,
    collection: Annotated[
        str | None,
        typer.Option(help="Only of this collection.", show_default=False, autocompletion=completing.collections),
    ] = None,
    after: AfterOption = 0,
    limit: LimitOption = 50,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """List batches, the newest first."""
    which = Listed(profile=profile, state=state, submitter=submitter, collection=collection)
    with serving(store) as service:
        found = list(islice(batches(service, which, after=after), limit))
    if json:
        showing.lines(map(_told, found))
        return
    showing.table(
        ("JOB", "BATCH", "STATE", "PROFILE", "SUBMITTER", "PAYLOAD", "ACCEPTED", "MESSAGE"),
        (
            (b.job.id, b.bid, b.state, b.order.profile, b.order.submitter, b.order.name,
             showing.moment(b.job.created_us), showing.saying(b.job))
            for b in found
        ),
    )  # fmt: skip


def list_objects(
    which: BatchArgument,
    state: Annotated[
        list[State] | None,
        typer.Option(help="Only of this state; may be repeated.", show_default=False,
                     autocompletion=completing.states),
    ] = None,
    stage: StageOption = None,
    message: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Only those whose message holds this.", show_default=False)
    ] = None,
    after: AfterOption = 0,
    limit: LimitOption = 50,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """List the objects of a batch, in their order; with --json all that is kept of each."""
    with serving(store) as service:
        found = objects(
            service, batch(service, which), states=state or (), stage=stage, message=message, after=after
        )
        page = list(islice(found, limit))
        if json:
            showing.lines(_elements(service, page))
            return
    showing.table(("JOB", "OBJECT", "STATE", "STAGE", "PASSED", "NAME", "MESSAGE"), map(_row, page))


def show_object(
    which: Annotated[str, typer.Argument(metavar="OBJECT", help="The number of its job, or jid-… .")],
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Show all that is kept of an object."""
    with serving(store) as service:
        (found,) = _elements(service, [object_(service, which)])
    told = {name: getattr(found, name) for name in Elements.__dataclass_fields__}
    if json:
        showing.as_json(told)
    else:
        _print_facts(told)


def find(
    ark: Annotated[str | None, typer.Option(help="This object.", show_default=False)] = None,
    local_id: Annotated[str | None, typer.Option(help="Objects of this local id.", show_default=False)] = None,
    file_name: Annotated[
        str | None, typer.Option(help="Files of this name, or with this end of their path.", show_default=False)
    ] = None,
    digest: Annotated[
        str | None, typer.Option(metavar="[ALGORITHM:]VALUE", help="Files of this digest.", show_default=False)
    ] = None,
    collection: Annotated[str | None, typer.Option(help="Only of this collection.", show_default=False)] = None,
    after: Annotated[
        str | None, typer.Option(metavar="PLACE", help="From behind what has this 'place'.", show_default=False)
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="How many.")] = 50,
    json: JsonOption = False,
) -> None:
    """Find stored objects, or files of theirs, in the inventory."""
    with meant(), open_inventory(load().inventory) as inventory:
        found = inventory.find(
            ark=None if ark is None else arks.canonical(ark), local_id=local_id, file_name=file_name, digest=digest,
            collection=collection, limit=limit, after=after,
        )  # fmt: skip
    if json:
        showing.lines(found)
    elif file_name is None and digest is None:
        showing.table(
            ("ARK", "COLLECTION", "VERSION", "FILES", "BYTES", "LOCAL IDS", "TITLE"), map(_object_row, found)
        )
    else:
        showing.table(("ARK", "COLLECTION", "VERSIONS", "BYTES", "FILE"), map(_file_row, found))


def list_profiles(json: JsonOption = False) -> None:
    """List the profiles; exit code 1 when one of them cannot be read."""
    with refusing():
        found = list(readable(load()))
    if json:
        showing.lines(_profile(each.profile) if each.profile else {"name": each.name, "problem": each.problem}
                      for each in found)  # fmt: skip
    else:
        showing.table(
            ("PROFILE", "COLLECTION", "STORAGE", "MINTER", "PRIORITY", "TOLD", "HOLD"),
            (_profile_row(each.profile) for each in found if each.profile is not None),
        )
        for each in found:
            if each.problem is not None:
                typer.echo(f"spinney: {showing.safe(each.problem)}", err=True)
    if any(each.problem for each in found):
        raise typer.Exit(Exit.REFUSED)


# --- how it is told ---------------------------------------------------------------------------


def _told(found: Batch) -> dict[str, Any]:
    job, order = found.job, found.order
    return {
        "batch": found.bid, "job": job.id, "state": found.state, "stage": job.stage, "message": showing.saying(job),
        "profile": order.profile, "collection": job.collection, "submitter": order.submitter, "payload": order.name,
        "kind": order.kind, "mode": mode(update=order.update), "reports": found.told, "failed_objects": found.failed,
        "accepted_us": job.created_us, "settled_us": job.settled_us,
    }  # fmt: skip


def _elements(service: Service, jobs: Iterable[Job]) -> Iterator[Elements]:
    return (elements(service.store, service.settings, service.folders, job) for job in jobs)


def _row(job: Job) -> tuple[Any, ...]:
    order = ObjectOrder.model_validate(job.params["order"])
    name = next(iter(order.about.local_ids), None) or order.about.title or order.payload.name
    return (job.id, order.jid, showing.standing(job), job.stage, passed(job), name, showing.saying(job))


def _object_row(found: Found) -> tuple[Any, ...]:
    head = found.head
    sizes = (head.version, f"{head.files:,}", f"{head.size_bytes:,}")
    return (found.ark, found.collection, *sizes, ", ".join(found.local_ids), head.what)


def _file_row(found: Found) -> tuple[Any, ...]:
    assert found.file is not None, "a file was looked for"
    at = found.file
    versions = str(at.first_version) if at.first_version == at.last_version else f"{at.first_version}-{at.last_version}"
    return (found.ark, found.collection, versions, f"{at.file.size_bytes:,}", at.file.path)


def _profile(profile: Profile) -> dict[str, Any]:
    return profile.model_dump(mode="json")


def _profile_row(profile: Profile) -> tuple[Any, ...]:
    told = ", ".join(profile.report.batch)
    priority = "by size" if profile.priority is None else profile.priority
    return (
        profile.name, ", ".join(profile.collections), profile.storage, profile.minter, priority,
        f"{profile.report.kind}: {told}" if told else profile.report.kind, profile.hold,
    )  # fmt: skip


def _print_facts(told: Mapping[str, Any]) -> None:
    out = showing.console()
    for name, value in told.items():
        if value not in (None, "", (), []):
            text = ", ".join(value) if isinstance(value, tuple) else str(value)
            out.print(f"{name.removesuffix('_us').replace('_', ' '):<14} {showing.safe(text)}", soft_wrap=True)
