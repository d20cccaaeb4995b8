"""Rows: what users hold as examples, features, names and labels, as the native loops read it."""
