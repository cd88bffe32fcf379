"""How good is the detection? Measured on recorded trajectories, against labels, beside the published rules."""
