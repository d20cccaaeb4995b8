"""Files: the container of a learner's state, how files are written, and the registry of all kinds of learners."""
