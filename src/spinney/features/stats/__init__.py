"""Statistics for people and monitors: the commands ``stats`` and ``top``, overview, charts, Prometheus.

``sql``            depths, rates, times and slots of one snapshot
``history_sql``    figures over time, rolled up each minute
``commands``       the query for statistics
``cli``            the command ``stats``
``tables``         figures as tables of text
``top``            the command ``top``: one thread that reads, draws and waits for keys
``top_board``      the state of ``top``, without terminal and store
``top_view``       that state as lines that fill a terminal
``page``           the overview: what needs attention first
``action_needed``  what needs attention, and what would help
``activity_page``  charts of an hour, a day or a week
``metrics``        the route ``/metrics`` of a server

Counts are exact: they come from the narrow tables of open jobs, never from all jobs. Rates come from ``throughput``, in
which the transactions that record attempts count; times come from a sample of recent jobs. The leading node rolls
``throughput`` up at every full minute, with a store of its own in a thread
(``spinney.node.services.throughput_history``); each roll-up replaces what was there, so it may be repeated.

``throughput`` knows lanes but not collections. For a caller whose limits name collections rates and times are therefore
None, and never figures of others. One look at the statistics serves all callers with the same limits
(``spinney.web.stats_cache``).

Specified by ``tests/contract/test_statistics.py`` (figures of a snapshot),
``tests/contract/test_throughput_history.py`` (figures over time), ``tests/node/test_throughput_history.py`` (who rolls
up), ``tests/cli/test_stats.py`` (the command), ``tests/cli/test_top.py`` (``top`` at a terminal),
``tests/cli/test_top_board.py`` (its keys), ``tests/server/pages/test_overview.py`` (the overview),
``tests/server/pages/test_activity.py`` (charts) and ``tests/node/test_monitoring_files.py`` (the names of metrics).
"""
