"""Everything that people have beside submitting and running jobs: one package for each feature.

``jobs``           single jobs: lists, the page of a job, the verbs on it
``submission``     new jobs and batches, and waiting for them
``schedules``      jobs that are submitted at set times
``inboxes``        folders in which a file that is dropped becomes a job
``files``          the folder of a job: files, output, uploads
``bulk``           one verb for many jobs, in steps
``holds``          orders that nothing new may start
``failures``       failed jobs grouped by cause
``explain``        why a job is not running
``postmortem``     the frames of a failure, looked at afterwards
``debug``          a failed stage once more under a debugger
``stacks``         where a running attempt stands
``queues``         limits, order, pins and sharing of queues
``locks``          who has which lock, and how much there is of it
``nodes``          drain, resume and slots of nodes
``external``       workers of other programs, over the API
``homes``          jobs whose folder is on one host
``stats``          figures, charts, ``top``, Prometheus
``audit``          who did what
``accounts``       users, tokens, sign-in
``webhooks``       services that are told when jobs settle
``bridges``        bridges to the databases of other systems
``types``          the job types that nodes have registered
``collections``    settled trees under another label
``retention``      how long settled jobs are kept
``saved_filters``  filters of the list of jobs under a name
``copies``         a whole store in another database
``doctor``         what must not be in a store, and its repair

The modules of a feature have the same names in all of them, so that a newcomer knows where to look:

* ``sql``: its part of the store: statements and transactions
* ``commands``: what people ask of it, each as a value: routes, client and both command lines come from it
* ``service``: its operations in the name of a caller, where they are not commands yet
* ``api``: its routes that cannot be made from commands, such as those with files
* ``page``: its pages
* ``cli``: its part of the command line

A call runs downward: as a rule ``page`` and ``cli`` make a command; the command checks the caller's rights and calls
``service`` or the store; ``sql`` knows nothing of rights but the limits that it is given, and writes the name of the
``Actor`` into the audit. A feature's ``sql`` is an attribute of the store (``store.holds``, see
``spinney.store.parts``), imported when it is first used.

What the engine itself decides by (holds, schedules, webhooks, …) has its values in ``spinney.model``, and what its
transactions need in ``spinney.store``. A feature imports other features only downward in the order that
``pyproject.toml`` gives, which import-linter checks; no module of ``spinney.web`` or ``spinney.terminal`` imports a
feature. A new feature is entered in that order, and in ``spinney.store.parts``, ``spinney.server.api``,
``spinney.server.pages`` and ``spinney.terminal.command_index``, as far as it has such a part.

Specified by ``tests/contract`` (the parts of the store), ``tests/service/test_rights.py`` (commands, as each role, on
what the caller may see and what not), ``tests/server/api/test_access.py`` (every route, for every kind of caller),
``tests/cli/remote`` (commands on a store and through a server) and ``tests/client/test_verbs.py`` (a call for each
operation of the API).
"""
