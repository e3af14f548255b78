"""How pulses become detections: four pulses with the gaps of a tag are a burst, bursts at its interval are a run.

``source_files`` the names of raw files · ``pulses`` their lines · ``tags`` the table of tags · ``bursts`` and ``runs``
the two steps. Both steps decide by what has come so far, never by what follows, so that the result is the same however
the files are cut into pieces."""
