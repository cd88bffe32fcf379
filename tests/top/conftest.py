"""Servers that top looks at."""

import pytest
from tests.top.servers import Agents, Pages


@pytest.fixture
def agents():
    exporter = Agents()
    yield exporter
    exporter.close()


@pytest.fixture
def pages():
    server = Pages()
    yield server
    server.close()
