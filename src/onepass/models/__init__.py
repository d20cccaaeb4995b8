"""Learners without scikit-learn: a rule with its weights, names, labels and state."""
