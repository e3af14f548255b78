"""The background services of a node, each a loop of its own: carrying out operators' orders, sweeping holds, serving
files of its folders, retention, waking other nodes."""
