"""An instrumentation that nobody declared is read by the convention it follows."""

import pytest
from tests.sources.spans.corpus import RIGHT_UNDECLARED
from tests.sources.spans.undeclared import no_declarations, right

from turnwatch.sources.spans.dialect import dialect_of_scope

pytestmark = pytest.mark.heavy


def test_conventions_alone_get_these_cases_right():
    assert right() == RIGHT_UNDECLARED


def test_declarations_are_back_afterwards():
    with no_declarations():
        assert dialect_of_scope("pydantic-ai") is None
    assert dialect_of_scope("pydantic-ai") is not None
