"""Rows: examples, features, names and labels in every form users have, converted to what the native loops read."""
