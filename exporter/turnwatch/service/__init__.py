"""The OTLP receiver, what it passes on, and its lifecycle."""
