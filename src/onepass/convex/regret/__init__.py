"""Regret: the best fixed comparator in hindsight, and the bounds of the papers."""
