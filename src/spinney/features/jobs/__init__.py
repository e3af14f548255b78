"""Single jobs: the lists that find them, the page of each, its relatives, and the verbs on it.

``commands``       the verbs on one job
``actions_cli``    the verbs of the command line, for one job or for many
``cli``            the commands ``list``, ``show`` and ``tree``
``sql``            sorted lists, and the names that filters propose
``relatives_sql``  subjobs and needs of a job, counted by type and state
``list_page``      the list of jobs, and the search
``verbs_page``     verbs on the jobs that were chosen from the list
``columns``        the columns of the list and its order
``job_page``       one job: state, reason, stages, output, files
``job_history``    what operators did to a job and to those below it
``tree_page``      a job among those above and below it, and those that it needs

The queries for jobs (``ListJobs``, ``ShowJob``, …) are in ``spinney.commands.job_queries``, because other
features use them, too. A verb on one job is carried out by the same code as one on many
(``spinney.features.bulk``), as a run over one job that raises the refusal.

A page reads a job once and shows all its parts as of about that moment; picture, failure and output are of
the same attempt (``spinney.web.pages.stages.current``). Lists are sorted by id, newest first; any other order
is computed among a bounded number of the newest matches, and the page says when there are more. Before a verb
on many jobs is carried out, the page says how many match; where more match by the time it is confirmed, it
asks again.

Specified by ``tests/cli/test_jobs.py`` (the commands), ``tests/cli/test_bulk.py`` (the verbs),
``tests/server/api/test_jobs.py`` (queries over the API), ``tests/server/api/test_verbs.py`` (verbs over the
API), ``tests/server/pages/test_lists.py`` (lists), ``tests/server/pages/test_tree.py`` (relatives),
``tests/server/pages/test_same_attempt.py`` (the page of a job after a retry), ``tests/browser/test_lists.py``
(lists in a browser) and ``tests/browser/test_tree.py`` (trees in a browser).
"""
