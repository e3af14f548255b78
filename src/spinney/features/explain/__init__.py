"""Why a job does not run: the one reason that holds it, found by the rules that the claim goes by."""
