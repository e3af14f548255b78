"""A store on an SQL database; today SQLite, in one file.

**What is where.** A job's row in ``jobs`` is written when it is submitted, when it leaves the
straight way (fails, waits, defers, goes to another stage) and when it settles; never at a claim.
What can be claimed stands in ``ready``, a narrow table whose key is the order of work (lane,
priority, share, position). What is leased stands in ``leases``; the states claimed and running are
read from there. What stands aside (scheduled, held, waiting, failed, cancelled, orphaned, deleted)
has a row in ``parked`` with the reason. A completed job has none of the three. So finished work
never slows a claim, and nothing is counted beside the rows themselves.

**Who writes in which order.** Every write is one transaction begun with the right to write
(``turnstile``): first facts (attempts, the job's row), then consequences (children, needs, locks,
the serial line), last the claim. A crash leaves either all of it or nothing. The one exception is
a long submission or spawn: its job rows are written in steps under a row in ``staging``, which hides
them; one small transaction publishes them, and their ``ready`` rows follow in steps. Whoever finds
a ``staging`` row without its writer drops or finishes it (``sweeping``). What a running attempt bears stands
there, too, until the transaction that records its stage as passed.

**Modules.** ``schema`` the tables · ``database`` connections and transactions · ``turnstile`` order
among writers · ``registry`` types, queues, lanes as the current transaction sees them · ``placing``
puts a job where it belongs now · ``submitting`` new jobs · ``claiming`` leases · ``recording`` what
became of attempts · ``settling`` the consequences for others · ``operating`` verbs of people ·
``failing`` failures by cause · ``breaking`` the circuit breaker · ``locks`` who may have one, ``lock_line`` who waits,
``capacities`` how much there is, ``unlocking`` all that seen from outside, ``deadlocks`` rings of jobs that wait ·
``auditing`` who did what · ``recurring`` schedules · ``watching`` what webhooks are told,
``webhooks`` what came of it · ``attempts`` what a running attempt may ask, ``bearing`` the jobs that it makes ·
``flat`` new jobs by one statement ·
``migrating`` schemas, ``standing`` which code may work with one, ``altering`` tables beside nodes that work ·
``copying`` a whole store · ``retaining`` how long settled jobs are kept, ``removing`` those whose time is over ·
``doctoring`` what must hold, and its repair · ``nodes`` · ``sweeping`` · ``reading`` (``leading`` and ``filtering``
which jobs, ``tallying`` how many) · ``counting`` figures (``pacing`` rates, ``sampling`` times) · ``store`` binds
them to the contract.
"""

from spinney.stores.sql.store import SqlStore, open_store

__all__ = ["SqlStore", "open_store"]
