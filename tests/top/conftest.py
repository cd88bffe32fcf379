"""Servers that top looks at."""

import pytest
from tests.ports import kept_port
from tests.top.servers import Agents, Pages


@pytest.fixture
def agents():
    with kept_port() as port:
        exporter = Agents(port)
        yield exporter
        exporter.close()


@pytest.fixture
def pages():
    server = Pages()
    yield server
    server.close()
