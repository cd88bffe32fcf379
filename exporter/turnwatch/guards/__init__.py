"""Guards: what stops an agent, and nothing else."""
