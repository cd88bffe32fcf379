"""One catalogue of metrics and two views on it."""
