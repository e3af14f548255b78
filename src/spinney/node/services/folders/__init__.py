"""What a node does for the folders of jobs, in the background: it watches their root, keeps the views, removes those of
deleted jobs, and serves files to other hosts."""
