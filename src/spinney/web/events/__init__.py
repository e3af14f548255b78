"""What has changed, told as it happens, to any number of watchers.

Somebody watches **topics**: ``overview``, ``queues``, ``job:17``, ``tree:17``, ``jobs:state=failed``, … A topic
has a state (what one sees of it with certain rights), and an event is a new state, whole. So whoever missed
some has missed nothing that still holds: a stream goes on behind its last event with the states that have
changed since, and between two looks only the last state is told. Every single change of a job is in its
history, and told by webhooks.

The feed looks at each topic once for all who watch it with the same rights, however many they are, and only
when something was committed; what takes long to look at is looked at less often, so that watchers take next to
nothing from nodes. Nothing is written for it: it is a reader like others.

``topics`` what there is, and how its state is read · ``feed`` the looking · ``streaming`` one watcher's stream
· ``history`` rates and depths of the last minutes, for charts · ``routes`` the addresses.
"""
