"""The commands of the command interface."""

import logging
import os
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spinney import settings_files
from spinney.bridges.disbatch.database import check, connect
from spinney.bridges.disbatch.interface.settings import InterfaceSettings, Oids
from spinney.bridges.disbatch.settings import FILE
from spinney.errors import UsageError
from spinney.safe_http import is_loopback

if TYPE_CHECKING:
    from uvicorn import Server

    from spinney.bridges.disbatch.interface.service import Service

app = typer.Typer(no_args_is_help=True, help="Serve the command interface of Disbatch.")
PORT = 8080
MongoOption = Annotated[
    str, typer.Option("--mongo", help="The server: mongodb://HOST:PORT.", envvar="DISBATCH_MONGO")
]
DatabaseOption = Annotated[
    str, typer.Option("--database", help="The database's name.", envvar="DISBATCH_DATABASE")
]


@app.command()
def serve(
    *,
    mongo: MongoOption,
    database: DatabaseOption,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 for a free one.")] = PORT,
    users: Annotated[
        Path | None, typer.Option("--users", help="Users who may sign in: a file of 'disbatch password'.")
    ] = None,
    token: Annotated[
        Path | None, typer.Option("--token-file", help="The file with the token of programs.")
    ] = None,
    plugin: Annotated[
        list[str] | None, typer.Option("--plugin", help="A plugin that queues may use; any number of times.")
    ] = None,
    settings_file: Annotated[
        Path,
        typer.Option("--settings", metavar="FILE", help="The node's settings; its plugins may be used, too."),
    ] = Path(FILE),
    oids: Annotated[
        Oids, typer.Option("--oids", help="How replies spell ids: plain (4.4), or extended (4.0 to 4.2).")
    ] = "plain",
    balance: Annotated[
        bool, typer.Option("--balance", help="Balance the limits of queues by time of day.")
    ] = False,
    pretend: Annotated[bool, typer.Option("--pretend", help="Only log what balancing would set.")] = False,
    monitoring: Annotated[bool, typer.Option(help="Whether /monitoring looks at nodes.")] = True,
) -> None:
    """Serve the REST API and the page of the command interface, until SIGTERM."""
    try:
        import uvicorn

        from spinney.bridges.disbatch.interface import access
        from spinney.bridges.disbatch.interface.application import make_interface
    except ImportError as error:  # pragma: no cover - the tests have them
        raise UsageError(
            f"the command interface needs {error.name}: pip install 'spinney[server]'"
        ) from error

    written = settings_files.document(settings_file, optional=settings_file == Path(FILE))
    settings = InterfaceSettings(
        plugins=tuple({*(plugin or ()), *written.get("plugins", {})}),
        oids=oids,
        monitoring=monitoring,
        balance=balance,
        pretend=pretend,
        users={} if users is None else access.read_users(users),
        token=None if token is None else access.read_token(token),
    )
    if not settings.protected and not is_loopback(host):
        raise UsageError(
            f"anybody who reaches {host} could create and cancel tasks; name --users or --token-file, or listen on "
            "127.0.0.1"
        )
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    db = connect(mongo, database)
    check(db)
    interface = make_interface(db, settings)
    config = uvicorn.Config(
        interface, host=host, port=port, log_config=None, access_log=False, server_header=False
    )
    with closing(db.client), _balancing(interface.state.service) if balance else nullcontext():
        _run_until_sigterm(uvicorn.Server(config))


@contextmanager
def _balancing(service: "Service") -> Iterator[None]:
    """Balance the limits of queues in a thread of its own while the block runs."""
    from spinney.bridges.disbatch.interface import balancer

    stop = threading.Event()
    loop = threading.Thread(target=balancer.run, args=(service, stop), name="balance")
    loop.start()
    try:
        yield
    finally:
        stop.set()
        loop.join()


def _run_until_sigterm(server: "Server") -> None:
    """Run the server until SIGTERM, as Uvicorn would do, and leave the signal as it was: the command's own
    clean-up follows."""
    before = signal.signal(signal.SIGTERM, lambda *_: setattr(server, "should_exit", True))
    try:
        server.run()
    finally:
        signal.signal(signal.SIGTERM, before)


@app.command()
def password(
    file: Annotated[Path, typer.Argument(help="The file of users.")],
    name: Annotated[str, typer.Argument(help="The user.")],
    secret: Annotated[
        str, typer.Option("--password", prompt=True, hide_input=True, confirmation_prompt=True, hidden=True)
    ] = "",
) -> None:
    """Set the password of a user of the command interface, who is added to the file."""
    from spinney.bridges.disbatch.interface.access import hashed, read_users

    if not name or ":" in name or not name.isprintable():
        raise UsageError("a user's name must be printable and without a colon")
    if not secret:
        raise UsageError("the password is empty; choose one")
    users = {**(read_users(file) if file.exists() else {}), name: hashed(secret)}
    # mkstemp makes a file that only its owner may read.
    handle, temporary = tempfile.mkstemp(dir=file.resolve().parent)
    with os.fdopen(handle, "w", encoding="utf-8") as out:
        out.writelines(f"{user}:{password_hash}\n" for user, password_hash in users.items())
    Path(temporary).replace(file)
    typer.echo(f"{name} may sign in once the server has started again")
