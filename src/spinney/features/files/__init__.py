"""Files and outputs of jobs: listing, reading, following, uploading."""
