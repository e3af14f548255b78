"""Commands: what people ask of a store, each as a value.

``command``         ``Command``, the base class, and what performs commands
``control``         ``Control``: the operations of one caller on one store
``fields``          types of fields that commands share, with their words for the documentation
``job_filter``      which jobs: the filter of lists, counts and verbs
``job_queries``     what people ask about jobs, and many features with them
``job_details``     jobs as answers show them, with the verbs that are allowed
``csv_lines``       any list of answers as CSV
``status_numbers``  states in the numbers of two older systems

A command is a class with its docstring, its fields with their constraints, the role that it takes, and its handler.
From this one definition come the route of the API with its part of the OpenAPI document
(``spinney.web.api.command_routes``), the call of the client (``Client.do``), and both command lines, on a store and
through a server (``spinney.terminal.connection.open_commands``). So the docstring and the descriptions of fields are
public texts, written for users of the API. A feature's commands stand in its module ``commands``; docs/design.md has an
example.

``perform`` checks the role, then ``run`` does the rest: it checks limits, and calls the store. A command is checked
when it is made, so that a wrong value is refused before anything is sent. What has to follow a change but not to delay
its answer is ``then``: a server does it behind the answer, and a caller with the store after the command.

Specified by ``tests/commands/test_command.py`` (values, routes and calls from one definition),
``tests/commands/test_control.py`` (``Control`` on a real store), ``tests/commands/test_csv_lines.py`` (CSV),
``tests/commands/test_status_numbers.py`` (numbers), ``tests/service/test_rights.py`` (who may use which) and
``tests/client/test_verbs.py`` (routes and calls agree).
"""

from spinney.commands.command import (
    Command,
    CompletePerformer,
    LocalPerformer,
    Performs,
    Returns,
    Route,
    each,
)

__all__ = ["Command", "CompletePerformer", "LocalPerformer", "Performs", "Returns", "Route", "each"]
"""``Performs``: what performs commands, on a store or through a server."""
