"""These checks come with Spinney, in Python; ``spinney monitor init`` writes a task for each.

A task of your own may use them, too::

    from spinney.apps.monitor.checks.http import DESCRIPTION, NAME, check

``uri``           the record and its URI
``http``          status, redirects, certificate, response time
``capabilities``  what an OGC service says of itself
``content``       one map or feature, really fetched
``gdal``          what GDAL says of the service
``fetch``         how all of them fetch: bounded, and into no private network that the settings do not name

A check returns a ``Finding`` (``spinney.apps.monitor.tasks.findings``) whatever is wrong with the service. An exception
is the check's own fault, and is kept as an error of that service alone (``tasks.modules``).

Specified by ``tests/apps/monitor/test_own_checks.py``; ``tests/apps/monitor/test_demo.py`` runs them against a real
MapServer.
"""
