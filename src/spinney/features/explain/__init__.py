"""Why a job does not run: the one reason that holds it, found by the rules that the claim goes by.

``sql``              how the store finds the cause, within one snapshot
``cause_words``      the sentence for each cause, and the command that would change it
``node_words``       the same for causes that lie with nodes and external workers
``explanation``      what the store answers (a cause and facts), and what the caller gets (sentence, command, start)
``service``          from cause to explanation, for one caller
``commands``         the explanation of one job, and the obstacles of a page of a list
``obstacle_messages``  the column of lists that names such obstacles
``cli``              the command ``explain``

The store answers with facts and not with words, because a caller with limits must not learn of jobs that are not
visible: ``service`` removes those facts and the secrets of the job first, and ``cause_words`` makes a sentence of what
is left.

An explanation of one job is exact and costs several queries. A list shows for its pending jobs only that no node could
run them at all, and for its running ones that their node gives no sign of life (``ListObstacles``), which takes one
query for a page of any length.

Specified by ``tests/contract/test_explainer.py`` (a sentence for every cause, in agreement with what a claim does),
``tests/service/test_queries.py`` (nothing of jobs that are not visible), ``tests/cli/test_explain.py`` (the command)
and ``tests/server/api/test_jobs.py`` (obstacles in lists).
"""
