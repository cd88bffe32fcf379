"""What is wrong with a record that is not as its format says, in words and without its content."""

from __future__ import annotations


def what_is_wrong(error: Exception) -> str:
    """The error of the code that read it, as something that a person can look for in the record."""
    if isinstance(error, LookupError):
        return "a field that its format needs is missing"
    if isinstance(error, TypeError | AttributeError):
        return "a field is of another kind than in its format"
    return "a field has a value that it cannot have in its format"
