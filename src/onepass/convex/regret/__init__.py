"""Regret: the best fixed comparator in hindsight, and what the papers promise."""
