"""Models of how the data came about: mixtures and naive Bayes."""
