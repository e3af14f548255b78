"""``make demo-monitor`` checks 200 services of a real MapServer twice, and mails the owners what changed.

MapServer and GDAL come from Debian's packages. Most services are good; the others have each a fault of its own, from a
wrong version to a server that is not there. Between the checks one mapfile is broken and another is repaired. The demo
compares every state with the expected one: its exit code is 0 only when all agree.

``OUT`` names the folder for all files (``demo-monitor-out``).

``__main__``    the services, and the steps of the demo
``map_server``  MapServer and its data

Specified by ``tests/apps/monitor/test_demo.py``.
"""
