"""Transcripts that agents, clients and tracing products keep anyway: one reader a format."""
