"""`check_learner` and `check_rule`: does a learner, or a rule, keep the promises of onepass?"""
