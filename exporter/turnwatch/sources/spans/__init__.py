"""Spans of other people's instrumentations, in every dialect, read as turns."""
