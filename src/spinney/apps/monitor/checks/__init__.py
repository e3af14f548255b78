"""The checks that come with Spinney, in Python. ``spinney monitor init`` writes a task for each; a task of your own may
use them, too::

    from spinney.apps.monitor.checks.http import DESCRIPTION, NAME, check

``uri`` the record and its URI · ``http`` status, redirects, certificate, response time · ``capabilities`` what an OGC
service says of itself · ``content`` one map or feature · ``gdal`` what
GDAL says of it · ``fetch`` how all of them fetch."""
