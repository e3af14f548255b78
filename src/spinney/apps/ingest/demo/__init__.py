"""``make demo``: deposits real files over HTTP with a node of its own, and shows what came of it.

A server on 127.0.0.1 offers ``SOURCE`` (the running interpreter's standard library unless given): every top-
level package or module is an object, with a manifest of its own and a digest a file. One byte of one file is
changed as it is served, so that its object fails at ``downloading`` and the report says so. Then the byte is
right, the object is requeued, and the update report comes. Afterwards history, inventory and archive are looked
through (``promise_checks``).

``OUT`` names where everything goes (``demo-out``). With ``CRASH=1`` the node, with all its processes, is killed
with SIGKILL in the middle and another is started. ``SMTP=HOST:PORT`` names a mail server that gets both
reports. Exit code 0 only when all is well.

``plan`` what is asked for · ``sample_deposit`` the source as objects and manifests · ``file_server`` the HTTP server ·
``node`` a node, its death, its display · ``service`` the settings, and a batch handed in · ``__main__`` the
play.
"""
