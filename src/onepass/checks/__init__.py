"""`check_learner` and `check_rule`: tests whether a learner, or a rule, keeps the promises of onepass."""
