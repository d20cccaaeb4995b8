"""Generative models: mixtures and naive Bayes."""
