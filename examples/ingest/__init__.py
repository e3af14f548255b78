"""``make demo`` deposits real files over HTTP with a node of its own, and shows the results.

A server on 127.0.0.1 serves ``SOURCE`` (by default the running interpreter's standard library): every top-level
package or module is an object, with a manifest of its own and a digest for each file. One byte of one file is
changed as it is served, so that its object fails at ``downloading``, as the report shows. Then the byte is
corrected, the object is requeued, and the update report follows. Afterwards history, inventory and archive are
checked (``promise_checks``).

``OUT`` names the folder for all files (``demo-out``). With ``CRASH=1`` the node, with all its processes, is killed
with SIGKILL in the middle and another is started. ``SMTP=HOST:PORT`` names a mail server that gets both
reports. The exit code is 0 only when all is well.

``__main__``        the steps of the demo, and the crash of its node
``plan``            the options, the output folder, and the settings
``sample_deposit``  the source as objects and manifests
``file_server``     the HTTP server, with one wrong byte
``promise_checks``  whether a finished batch keeps the promises of the service; for tests, too

Specified by ``tests/apps/ingest/test_demo.py``.
"""
