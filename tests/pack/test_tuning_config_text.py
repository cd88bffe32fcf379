"""Suggestions as a settings file."""

from hypothesis import given
from hypothesis import strategies as st

from turnwatch.pack.tuning.config_text import config_text, with_suggestions
from turnwatch.pack.tuning.suggestions import Suggestion
from turnwatch.settings_file import load_settings
from turnwatch.yaml_file import read_yaml_file

NAMES = st.text(min_size=1, max_size=120)


@given(name=NAMES, why=st.text(max_size=300))
def test_whatever_a_name_or_a_reason_is_the_file_says_the_value(tmp_path_factory, name, why):
    suggestion = Suggestion(("agents", name, "iteration_threshold"), 60, 8, why)
    path = tmp_path_factory.mktemp("config") / "turnwatch.yaml"
    path.write_text(config_text(with_suggestions({}, [suggestion]), [suggestion], [why]), encoding="utf-8")
    assert read_yaml_file(path).data == {"agents": {name: {"iteration_threshold": 60}}}
    assert load_settings(env={}, path=path).agents[name].iteration_threshold == 60


def test_what_is_set_stays_and_what_is_suggested_is_laid_over_it():
    present = {
        "on_loop": "page",
        "alerts": {"tools": {"sql": {"toolErrorShare": 0.2}}, "agents": {"a": {"turnTokens": 1}}},
    }
    path = ("alerts", "tools", "sql", "toolErrorShare", "critical")
    suggested = with_suggestions(present, [Suggestion(path, 0.9, 0.6, "")])
    assert suggested == {
        "on_loop": "page",
        "alerts": {
            "tools": {"sql": {"toolErrorShare": {"warning": 0.2, "critical": 0.9}}},
            "agents": {"a": {"turnTokens": 1}},
        },
    }
    assert present["alerts"]["tools"] == {"sql": {"toolErrorShare": 0.2}}


PLAIN = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=30)
)
VALUES = st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3))


@given(st.dictionaries(NAMES, VALUES, max_size=4))
def test_what_a_settings_file_says_is_written_as_it_is(tmp_path_factory, config):
    path = tmp_path_factory.mktemp("config") / "turnwatch.yaml"
    path.write_text(config_text(config, []), encoding="utf-8")
    assert read_yaml_file(path).data == config
