"""Statistics for people and monitors: the commands ``stats`` and ``top``, the overview page, Prometheus metrics."""
