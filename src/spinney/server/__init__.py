"""The HTTP server of a store: a documented API and live pages, over TCP and a Unix socket.

A server has no state of its own: whatever it shows is read from the store, and every request goes through
``spinney.control`` in the name and with the rights of its caller. So several may serve one store, one may be killed at
any instruction, and none needs the application's code: parameters are checked against the types that nodes registered.

The layers that a request passes, outermost first:

``http_server`` accepts connections (and knows the peer of a Unix socket; ``connection_table`` chooses which connections
are closed when there is no room) · ``request_guard`` refuses a foreign Host, bounds bodies and their time, and adds the
headers that protect pages · ``tracing`` and ``metrics`` measure · ``identity`` authenticates the caller, by token,
session, peer or proxy · ``api`` and ``pages`` have the routes, which call ``control`` · ``request_context`` runs
that call in a thread that has a store of its own (``store_pool``) · ``problems`` turns a refusal into an answer, and
``refusal_log`` records it. Long requests (``long_responses``, ``events``, a body that comes slowly) check their
caller's rights again and again (``principal_refresh``), and count against limits (``quotas``).

Beside requests: ``events`` polls the store once for each topic, for all its watchers · ``sender`` of the feature
``webhooks`` calls webhooks · ``maintenance`` takes back the jobs of external workers that have disappeared.
"""
