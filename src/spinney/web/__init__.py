"""What every route and page needs, whichever feature it belongs to.

``request_context``    the caller of a request, and calls of ``control`` in the name of the caller
``principal_refresh``  the caller of a long request, authenticated again while it lasts
``store_pool``         threads that each have a store of their own
``problems``           refusals as ``application/problem+json``
``settings``           the table ``[server]`` of ``spinney.toml``
``media_types``        what a request's body is, and which form of an answer its client prefers
``refusal_log``        refusals in the audit log, counted when there are many
``stats_cache``        statistics that take long, shared by callers who may see the same
``timed_cache``        results that may be some seconds old
``background``         tasks that live as long as the server
``long_requests``      bodies that come slowly and answers that last: limits, and rights checked again
``telemetry``          a log line, metrics and a span for each request
``identity``           who sends a request: token, session, peer or proxy
``api``                what routes of the REST API share
``pages``              what pages share: frame, forms, filters, charts
``files``              files as responses, and uploads
``events``             event streams of what has changed

The routes and pages themselves are in the features, which import this package and not the other way round;
``spinney.server`` puts them together.

A route declares a parameter ``context: Authenticated`` and reaches the store only by ``await context.run(call)``. The
call runs in a thread of the store pool, with a ``Control`` that has the caller's name and rights, because a store
belongs to one thread and blocks it while the event loop must go on. Calls that may take more than some 100 ms say
``long=True`` and have threads of their own. Errors of the model are raised through the route; ``problems`` gives each
its status, and on pages ``error_pages`` its text.

Rights may change while a request lasts. Whatever lasts longer than a moment (a stream, a followed output, a download, a
slow body, a verb in steps) therefore checks the caller again and again, about once a second, and ends when the right to
it is gone.

Specified by ``tests/server/test_room.py`` (quotas and connections), ``tests/server/test_long_requests.py`` (rights that
change meanwhile), ``tests/server/test_principal_refresh.py`` (how often callers are checked),
``tests/server/test_request_guard.py`` (bodies and quotas), ``tests/server/test_instrumentation.py`` (logs, metrics and
spans), ``tests/server/test_stats_cache.py``, ``tests/server/test_timed_cache.py``,
``tests/service/test_refusal_log.py`` (refusals) and ``tests/server/api`` (problems and their statuses).
"""
