"""Libraries that write spans for as long as a test runs."""

from contextlib import contextmanager


@contextmanager
def instrumenting(provider, *instrumentors):
    """Have these instrumentors write spans to a provider, until the end of the context."""
    for instrumentor in instrumentors:
        instrumentor.instrument(tracer_provider=provider)
    try:
        yield
    finally:
        for instrumentor in instrumentors:
            instrumentor.uninstrument()
