"""Creation of jobs: in one transaction, in steps for long submissions (``staging``), and by a running stage
(``spawns``)."""
