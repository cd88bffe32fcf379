"""Guards for agent frameworks: each turns a framework's events into turnwatch's, and a stop into the framework's."""
