"""Learners over other learners: drift wrappers and continual learning."""
