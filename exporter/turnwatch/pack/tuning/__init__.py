"""Thresholds from one's own runs: what each would have fired on, and which to choose."""
