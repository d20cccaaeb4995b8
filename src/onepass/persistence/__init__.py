"""Files: the container of a learner's state, safe writing of files, and the registry of all kinds of learners."""
