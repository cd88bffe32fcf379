"""What turnwatch knows about a turn. No I/O and no metrics library in here."""
