"""What operators order and read.

``bulk_orders``  verbs on many jobs at once, and the states of jobs that they take
``bulk_runs``    what such a verb would do, and has done
``audits``       the hash chain of the audit
``stats``        throughput, times and numbers of jobs
``queues``       queues with their settings, and changes of these
``locks``        locks with their owners, and capacities
"""
