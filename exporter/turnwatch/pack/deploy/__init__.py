"""Puts the pack on servers: what would change, changing it, making sure, and taking it back."""
