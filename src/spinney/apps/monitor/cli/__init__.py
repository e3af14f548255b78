"""Check network services around the clock, and know who is responsible for them.

``setup``   ``init``, ``import``, ``harvest``
``run``     the node that does the checks, and the line protocol
``views``   ``services``, ``entities``, ``tasks``, ``status``, ``history``, ``report``
``orders``  ``check`` and ``stop``

Unless the settings name other tables, they are beside the store. So a command that takes ``--store`` makes it the store
of the whole process (``use_store``) before the settings are loaded.
Each command is a function of its name; the first line of this docstring is the help of ``spinney monitor``.
Commands read the tables directly, and start and stop checks through the store (``spinney.apps.monitor.requests``).

Specified by ``tests/apps/monitor/test_guide.py``, ``tests/apps/monitor/test_inventory.py`` and
``tests/apps/monitor/test_checks.py``.
"""

import typer

from spinney.apps.monitor.cli import orders, run, setup, views

app = typer.Typer(no_args_is_help=True, help=__doc__.splitlines()[0])
for command in (
    *(setup.init, setup.import_, setup.harvest, run.run),
    *(views.services, views.entities, views.tasks, views.status, views.history, views.report),
    *(orders.check, orders.stop),
):
    app.command(command.__name__.rstrip("_"))(command)
