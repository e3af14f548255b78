"""Changes in a store, sent as they happen to any number of watchers.

``topics``     what can be watched, and how the state of each topic is read
``feed``       the loop that reads watched topics
``streaming``  one watcher's stream of server-sent events
``history``    rates and depths of the last minutes, for charts
``routes``     the addresses of streams

Somebody watches **topics**: ``overview``, ``queues``, ``job:17``, ``tree:17``, ``jobs:state=failed``, … A topic has a
state (what one sees of it with certain rights), and an event is a new state, whole. So whoever missed some has missed
nothing that still holds: a stream goes on behind its last event with the states that have changed since, and between
two looks only the last state is sent. Every single change of a job is in its history, and webhooks report it.

The feed looks at each topic once for all watchers who see the same: all who have no limits, else each user with the
rights of the moment. It looks only when something was committed (and now and then in any case); what takes long to look
at is looked at less often, so that watchers take next to nothing from nodes. Nothing is written for it: it is a reader
like others. It runs in the event loop of the server, and its queries in the threads of the store pool; when the server
ends, all streams end, and clients come back to this server or another.

Specified by ``tests/server/events/test_feed.py`` (what watchers get), ``tests/server/events/test_routes.py``
(streams and their ends), ``tests/server/test_long_requests.py`` (rights that change),
``tests/client/test_streaming.py`` (the format) and ``tests/browser/test_live_pages.py`` (pages that follow).
"""
