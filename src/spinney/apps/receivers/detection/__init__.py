"""Pulses become detections here: four pulses with the gaps of a tag are a burst, bursts at its interval are a run.

``source_files``  the names of raw files
``contents``      what they contain, packed or not
``pulses``        their lines, read in pieces of bounded size
``tags``          the table of tags
``jumps``         times that are wrong, and clocks that are set
``bursts``        four pulses of one tag
``runs``          bursts at a tag's interval

A reader hands each piece of a file to a ``BurstFinder``, its bursts to a ``RunFinder``, and stores the hits that come
out. At the end of a session's last file the ``state`` of both finders is stored beside the hits, as JSON, and given to
new finders when a further file comes.

All steps decide by what has come so far, and keep what they cannot decide yet until the next pulse, so that the result
is the same however the files are cut into pieces. Nothing here reads a database or knows of jobs; times are seconds
since 1970 UTC, as receivers write them.

Specified by ``tests/apps/receivers/test_detection.py``."""
