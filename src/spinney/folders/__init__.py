"""The folders of jobs: where they are, how they are read from another host, how they are removed."""
