"""The HTTP server of a store: a documented API and live pages, over TCP and a Unix socket.

``application``       puts the web application together: layers, routes and background tasks
``http_server``       listens on TCP and the Unix socket, and runs until a signal stops it
``connections``       one connection: its peer, and limits on a slow or large head
``connection_table``  which connection is closed when there is no room
``request_guard``     checks before every route: host, address, body; and headers that protect pages
``head_requests``     HEAD for every address
``api``               all routes below ``/api/v1``
``openapi``           the document of the API
``api_page``          that document as a page
``pages``             all pages
``extensions``        routes and pages that installed packages bring
``health``            whether the server lives and can answer
``maintenance``       work that the leading node does, where no node leads

A server has no state of its own: whatever it shows is read from the store, and every request goes through
``spinney.commands.control`` in the name and with the rights of its caller. So several may serve one store, one may be
killed at any instruction, and none needs the application's code: parameters are checked against the types that nodes
registered.

The layers that a request passes, outermost first: ``http_server`` and ``connections`` accept it ·
``spinney.web.telemetry.instrumentation`` measures it, whatever becomes of it · ``request_guard`` refuses a foreign Host
and bounds the body and its time · ``head_requests`` · ``spinney.web.identity`` authenticates the caller · a route of a
feature calls ``control`` · ``spinney.web.request_context`` runs that call in a thread that has a store of its own
(``store_pool``) · ``spinney.web.problems`` turns a refusal into an answer, and ``refusal_log`` records it.

Beside requests run ``spinney.web.events`` (reads each watched topic once for all its watchers), the sender of
``spinney.features.webhooks``, the runs of verbs that pages have started (``spinney.features.bulk.page``), and
``maintenance``: it takes back the jobs of external workers that have disappeared, finishes uploads, and, where no node
leads, creates the jobs of schedules, promotes what is due and sweeps holds. All of that lives in one process with one
event loop; whatever blocks (the store, files, requests of webhooks) runs in threads.

Specified by ``tests/server`` (requests over ASGI and on real sockets), ``tests/browser`` (pages in a browser),
``tests/chaos/test_faults_of_the_server.py`` (servers that are killed) and ``tests/node/test_monitoring_files.py``
(names of metrics).
"""
