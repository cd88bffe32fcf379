"""Where a setting may stand, which place wins, and how a fault is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnwatch.errors import SettingsError
from turnwatch.settings import AgentOverride, Budgets, Detect, Retries, Settings, ToolOverride, Tools
from turnwatch.settings_file import environment_names, load_settings, settings_that_hold
from turnwatch.settings_reference import settings_reference

EVERY_SECTION = """\
budgets: {max_steps: 25, max_tool_calls: 12, max_seconds: 60, max_usd: 1.0}
tools:
  dedupe_window_s: 60
  cache_ttl_s: 30
  retries: {max_attempts: 2, retryable_status: [408, 429, 500, 502, 503, 504]}
  overrides: {get_job_status: {polling: true}, send_email: {side_effect: true}, read_file: {read_only: true}}
detect: {max_identical_calls: 2, iteration_threshold: 8, window_seconds: 300, volatile_keys: [timestamp, nonce]}
agents: {coder: {iteration_threshold: 60}}
on_loop: nudge
"""


@pytest.fixture
def write(tmp_path):
    def write_file(text):
        path = tmp_path / "turnwatch.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write_file


def faults_of(path=None, env=None):
    with pytest.raises(SettingsError) as caught:
        load_settings(env=env or {}, path=path)
    return str(caught.value).splitlines()


def test_every_section_loads(write):
    settings = load_settings(env={}, path=write(EVERY_SECTION))

    assert settings == Settings(
        budgets=Budgets(max_steps=25, max_tool_calls=12, max_seconds=60, max_usd=1.0),
        tools=Tools(
            dedupe_window_s=60,
            cache_ttl_s=30,
            retries=Retries(max_attempts=2, retryable_status=(408, 429, 500, 502, 503, 504)),
            overrides={
                "get_job_status": ToolOverride(polling=True),
                "send_email": ToolOverride(side_effect=True),
                "read_file": ToolOverride(read_only=True),
            },
        ),
        detect=Detect(
            max_identical_calls=2,
            iteration_threshold=8,
            window_seconds=300,
            volatile_keys=frozenset({"timestamp", "nonce"}),
        ),
        agents={"coder": AgentOverride(iteration_threshold=60)},
        on_loop="nudge",
    )


def test_nothing_set_is_the_defaults():
    assert load_settings(env={}) == Settings()
    assert load_settings(env={"PATH": "/bin", "TURNWATCH_HASH_KEY": ""}) == Settings()


def test_code_wins_over_environment_and_environment_over_file(write):
    path = write(
        "budgets: {max_steps: 1, max_tool_calls: 1, max_usd: 1}\nagents: {a: {iteration_threshold: 1}, b: {}}\n"
    )
    env = {
        "TURNWATCH_CONFIG": str(path),
        "TURNWATCH_BUDGETS__MAX_TOOL_CALLS": "2",
        "TURNWATCH_BUDGETS__MAX_USD": "2",
        "TURNWATCH_AGENTS__A__MAX_IDENTICAL_CALLS": "2",
    }
    code = Settings(budgets=Budgets(max_usd=3), agents={"c": AgentOverride(iteration_threshold=3)})

    settings = load_settings(code, env)

    assert settings.budgets == Budgets(max_steps=1, max_tool_calls=2, max_usd=3)
    assert settings.agents == {
        "a": AgentOverride(iteration_threshold=1, max_identical_calls=2),
        "b": AgentOverride(),
        "c": AgentOverride(iteration_threshold=3),
    }


def test_only_what_code_sets_itself_wins(write):
    path = write("on_loop: stop\ndetect: {iteration_threshold: 50}\nspans: false\n")

    settings = load_settings(Settings(detect=Detect(max_identical_calls=5), spans=True), {}, path)

    assert settings.on_loop == "stop"
    assert settings.detect == Detect(max_identical_calls=5, iteration_threshold=50)
    assert settings.spans is True


def test_code_can_take_a_limit_away(write):
    path = write("budgets: {max_usd: 1}")

    assert load_settings(Settings(budgets=Budgets(max_usd=None)), {}, path).budgets.max_usd is None


@pytest.mark.parametrize(
    ("text", "held", "named"),
    [
        ("on_loop: stop\nfail_close: true", Settings(on_loop="stop"), ["line 2: fail_close"]),
        ("budgets: {max_usd: 1, max_steps: no}", Settings(budgets=Budgets(max_usd=1)), ["line 1: budgets.max_steps"]),
        ("budgets: 5\non_loop: stop", Settings(on_loop="stop"), ["line 1: budgets"]),
        ("detect: {volatile_keys: [a, 5]}\nspans: false", Settings(spans=False), ["line 1: detect.volatile_keys[1]"]),
        ("on_loop: stop\non_loop: page", Settings(on_loop="stop"), ["line 2: on_loop stands here and on line 1"]),
        (
            "budgets: {max_usd: !!int five, max_steps: 5, max_stepz: 4}\nkill_dir: [!!int six]",
            Settings(budgets=Budgets(max_steps=5)),
            ["line 1: budgets.max_usd", "line 2: kill_dir", "line 1: budgets.max_stepz"],
        ),
        ("budgets: {max_usd: 1", Settings(), ["line 1: no valid YAML"]),
    ],
)  # fmt: skip
def test_what_is_right_holds_beside_what_is_wrong(text, held, named, write):
    settings, faults = settings_that_hold(env={}, path=write(text))

    assert settings == held
    assert len(faults) == len(named)
    assert all(place in fault for place, fault in zip(named, faults, strict=True))


def test_a_variable_that_is_wrong_leaves_the_file_its_say(write):
    env = {"TURNWATCH_BUDGETS": "{max_usd: 2, max_steps: many}", "TURNWATCH_ON_LOOP": "halt"}

    settings, faults = settings_that_hold(env=env, path=write("budgets: {max_usd: 1, max_steps: 7}\non_loop: stop"))

    assert settings == Settings(budgets=Budgets(max_usd=2, max_steps=7), on_loop="stop")
    assert [fault.split(":")[1].strip() for fault in faults] == ["TURNWATCH_BUDGETS", "TURNWATCH_ON_LOOP"]


@pytest.mark.parametrize(
    ("name", "value", "read"),
    [
        ("TURNWATCH_ON_LOOP", "stop", lambda s: s.on_loop == "stop"),
        ("TURNWATCH_HASH_KEY", "0123", lambda s: s.hash_key == "0123"),
        ("TURNWATCH_HASH_KEY", "{a: [", lambda s: s.hash_key == "{a: ["),
        ("TURNWATCH_PRICES_FILE", "/etc/prices.yaml", lambda s: s.prices_file == "/etc/prices.yaml"),
        ("TURNWATCH_SPANS", "false", lambda s: s.spans is False),
        ("TURNWATCH_SPANS", "0", lambda s: s.spans is False),
        ("TURNWATCH_FAIL_CLOSED", "1", lambda s: s.fail_closed is True),
        ("TURNWATCH_TOOLS__OVERRIDES__GET_JOB__POLLING", "1", lambda s: s.tools.overrides["get_job"].polling is True),
        ("TURNWATCH_BUDGETS__MAX_STEPS", "1", lambda s: s.budgets.max_steps == 1),
        ("TURNWATCH_DETECT__WINDOW_SECONDS", "2.5", lambda s: s.detect.window_seconds == 2.5),
        ("TURNWATCH_DETECT__VOLATILE_KEYS", "[a, b]", lambda s: s.detect.volatile_keys == {"a", "b"}),
        ("TURNWATCH_TOOLS__RETRIES__RETRYABLE_STATUS", "[500]", lambda s: s.tools.retries.retryable_status == (500,)),
        ("TURNWATCH_TOOLS__OVERRIDES__GET_JOB__POLLING", "true", lambda s: s.tools.overrides["get_job"].polling),
        ("TURNWATCH_TOOLS__OVERRIDES__getJob__POLLING", "true", lambda s: s.tools.overrides["getJob"].polling),
        ("TURNWATCH_AGENTS", "{A: {iteration_threshold: 60}}", lambda s: s.agents["A"].iteration_threshold == 60),
        ("TURNWATCH_BUDGETS__UNPRICED", "block", lambda s: s.budgets.unpriced == "block"),
        ("TURNWATCH_BUDGETS", "{max_usd: 1.5}", lambda s: s.budgets.max_usd == 1.5),
        ("TURNWATCH_BUDGETS__MAX_USD", "null", lambda s: s.budgets.max_usd is None),
    ],
)  # fmt: skip
def test_a_variable_sets_a_key(name, value, read):
    assert read(load_settings(env={name: value}))


def test_every_listed_variable_is_known():
    variables = {name.replace("<NAME>", "X"): "{[" for name in environment_names()}
    assert not [fault for fault in faults_of(env=variables) if "is not a setting" in fault]


def test_what_kubernetes_sets_beside_a_service_called_turnwatch_is_no_setting():
    env = {
        "TURNWATCH_SERVICE_HOST": "10.96.0.12",
        "TURNWATCH_SERVICE_PORT": "4318",
        "TURNWATCH_SERVICE_PORT_OTLP_HTTP": "4318",
        "TURNWATCH_PORT": "tcp://10.96.0.12:4318",
        "TURNWATCH_PORT_4318_TCP": "tcp://10.96.0.12:4318",
        "TURNWATCH_PORT_4318_TCP_PROTO": "tcp",
        "TURNWATCH_METRICS_SERVICE_HOST": "10.96.0.13",
    }
    assert load_settings(env=env) == Settings()
    assert len(faults_of(env={"TURNWATCH_PORT": "4318", "TURNWATCH_SERVICE__PORT": "4318"})) == 2


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("TURNWATCH_BUDGET__MAX_USD", "1", "did you mean TURNWATCH_BUDGETS__MAX_USD?"),
        ("TURNWATCH_HASHKEY", "1", "did you mean TURNWATCH_HASH_KEY?"),
        ("TURNWATCH_BUDGETS__MAX_USD__X", "1", "is not a setting"),
        ("TURNWATCH_QQQQ", "1", "is not a setting; names are TURNWATCH_<KEY> or TURNWATCH_<SECTION>__<KEY>"),
        ("TURNWATCH_BUDGETS__MAX_USD", "much", "budgets.max_usd: wants a number, not text"),
        ("TURNWATCH_BUDGETS__MAX_USD", "-1", "budgets.max_usd: wants a number greater than 0"),
        ("TURNWATCH_SPANS", "[", "the value is no valid YAML"),
        ("TURNWATCH_TOOLS", "5", "tools: wants a mapping, not a whole number"),
        ("TURNWATCH_BUDGETS", "{max_usdd: 1}", "budgets.max_usdd: unknown key"),
    ],
)
def test_a_fault_in_the_environment_names_the_variable(name, value, message):
    (fault,) = faults_of(env={name: value})

    assert fault.startswith(f"environment: {name}")
    assert message in fault


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("budgets:\n  max_stepz: 1\n", 2, "budgets.max_stepz: unknown key; allowed are max_seconds, max_steps"),
        ("budgets:\n  max_stepz: 1\n", 2, "did you mean max_steps?"),
        ("\nbudgetz: {}\n", 2, "budgetz: unknown key"),
        ("budgets:\n  max_steps: many\n", 2, "budgets.max_steps: wants a whole number, not text"),
        ("budgets:\n  max_steps: 2.5\n", 2, "budgets.max_steps: wants a whole number, not a number"),
        ("budgets:\n  max_steps: true\n", 2, "budgets.max_steps: wants a whole number, not true or false"),
        ("budgets:\n  max_steps: 0\n", 2, "budgets.max_steps: wants a whole number of at least 1"),
        ("budgets:\n  unpriced: 3\n", 2, "budgets.unpriced: wants one of allow, block"),
        ("budgets: 5\n", 1, "budgets: wants a mapping, not a whole number"),
        ("budgets: [1]\n", 1, "budgets: wants a mapping, not a list"),
        ("spans: 'yes'\n", 1, "spans: wants true or false, not text"),
        ("spans: 0\n", 1, "spans: wants true or false, not a whole number"),
        ("on_loop: explode\n", 1, "on_loop: wants one of stop, nudge, page, observe"),
        ("hash_key: 5\n", 1, "hash_key: wants text, not a whole number"),
        ("tools:\n  retries:\n    retryable_status:\n      - 500\n      - x\n", 5, "status[1]: wants a whole"),
        ("tools:\n  overrides:\n    a:\n      poling: true\n", 4, "tools.overrides.a.poling: unknown key"),
        ("tools:\n  overrides:\n    a: true\n", 3, "tools.overrides.a: wants a mapping"),
        ("agents:\n  coder:\n    budgets:\n      max_usd: x\n", 4, "agents.coder.budgets.max_usd: wants a number"),
        ("detect:\n  volatile_keys: timestamp\n", 2, "detect.volatile_keys: wants a list of texts, not text"),
        ("on_loop: stop\nspans: true\non_loop: page\n", 3, "on_loop stands here and on line 1"),
        ("budgets:\n\tmax_usd: 1\n", 2, "tabs cannot indent YAML"),
        ("budgets: {max_usd: 1\n", 2, "no valid YAML"),
        ("- budgets\n", 1, "the top level must be a mapping of keys, not a list"),
        ("just text\n", 1, "the top level must be a mapping of keys, not a single value"),
        ("? [a]\n: 1\n", 1, "a key must be text"),
        ("a: &a {b: *a}\n", 1, "too large, or nested too deep"),
        ("a: !!python/name:os.system\n", 1, "a: the value cannot be read"),
        ("alerts:\n  a: !!timestamp 2026-01-01\n", 2, "alerts.a: the value cannot be read"),
        ("alerts:\n  a: !!timestamp soon\n", 2, "alerts.a: the value cannot be read"),
        ("alerts:\n  a: !!binary aGk=\n", 2, "alerts.a: the value cannot be read"),
        ("alerts:\n  a: !!bool maybe\n", 2, "alerts.a: the value cannot be read"),
        ("a: b\n\0", 2, "a character that YAML does not allow"),
        ("a: 1\n---\nb: 1\n", 2, "no valid YAML"),
        ("a: " + "[" * 5000 + "\n", 1, "nested too deep"),
    ],
)  # fmt: skip
def test_a_fault_in_a_file_is_named_by_key_file_and_line(write, text, line, message):
    path = write(text)

    faults = faults_of(path)

    assert all(fault.startswith(f"{path}, line ") for fault in faults)
    assert any(fault.startswith(f"{path}, line {line}: ") and message in fault for fault in faults), faults


def test_all_faults_are_named_at_once(write):
    path = write("budgets: {max_usd: x}\non_loop: y\nother: 1\n")

    assert len(faults_of(path, {"TURNWATCH_SPANS": "5", "TURNWATCH_NOPE": "1"})) == 5


@pytest.mark.parametrize(
    ("section", "said", "message"),
    [
        (Settings, {"budget": Budgets()}, "Settings: budget: unknown key; allowed are agents, alerts, bounds"),
        (Settings, {"budget": Budgets()}, "; did you mean budgets?"),
        (Settings, {"budgets": {"max_usdd": 1}}, "Settings: budgets.max_usdd: unknown key; allowed are max_seconds"),
        (Settings, {"agents": {"a": {"budgets": {"max_usd": "x"}}}}, "a.budgets.max_usd: wants a number, not text"),
        (Settings, {"on_loop": "explode"}, "Settings: on_loop: wants one of stop, nudge, page, observe"),
        (Settings, {"budgets": Detect()}, "Settings: budgets: wants a mapping, not Detect"),
        (Budgets, {"max_usd": -1}, "Budgets: max_usd: wants a number greater than 0"),
        (Budgets, {"max_usd": float("inf")}, "Budgets: max_usd: wants a finite number"),
        (ToolOverride, {"poling": True}, "ToolOverride: poling: unknown key"),
    ],
)  # fmt: skip
def test_a_fault_in_code_names_the_key_and_what_is_allowed(section, said, message):
    with pytest.raises(SettingsError) as caught:
        section(**said)
    (fault,) = str(caught.value).splitlines()
    assert message in fault
    assert caught.value.__cause__ is None


def test_a_value_stays_out_of_the_message(write):
    with pytest.raises(SettingsError) as caught:
        Settings(hash_key=["secret"], budgets={"max_usd": "secret"})
    assert len(str(caught.value).splitlines()) == 2
    assert "secret" not in str(caught.value)
    assert "secret" not in str(faults_of(write("hash_key: [secret]\nbudgets: {max_usd: secret}\n")))


@pytest.mark.parametrize("text", ["", "\n", "# only a comment\n", "---\n", "null\n", "{}\n", "\ufeff"])
def test_an_empty_file_sets_nothing(write, text):
    assert load_settings(env={}, path=write(text)) == Settings()


def test_a_file_that_cannot_be_read_is_named(tmp_path, write):
    missing = tmp_path / "missing.yaml"

    assert faults_of(missing) == [f"{missing}: cannot be read: No such file or directory"]
    assert faults_of(tmp_path) == [f"{tmp_path}: cannot be read: Is a directory"]
    assert "not UTF-8" in faults_of(write(b"a: \xff\xfe\n"))[0]
    assert "cannot be read" in faults_of(env={"TURNWATCH_CONFIG": str(missing)})[0]


def test_names_that_yaml_reads_as_something_else_stay_names(write):
    settings = load_settings(env={}, path=write("tools: {overrides: {on: {polling: true}, 404: {polling: true}}}"))

    assert set(settings.tools.overrides) == {"on", "404"}


def test_anchors_and_merge_keys_work(write):
    text = "agents:\n  a: &a {iteration_threshold: 5, max_identical_calls: 3}\n  b: {<<: *a, max_identical_calls: 4}\n"

    settings = load_settings(env={}, path=write(text))

    assert settings.agents["b"] == AgentOverride(iteration_threshold=5, max_identical_calls=4)


def test_json_is_a_configuration_too(write):
    assert load_settings(env={}, path=write('{"on_loop": "page", "alerts": {"a": 1}}')).alerts == {"a": 1}


@given(st.text())
def test_no_text_makes_a_file_raise_anything_else(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_text(text, encoding="utf-8", errors="replace")

    try:
        load_settings(env={}, path=path)
    except SettingsError as error:
        fault = str(error)
    else:
        fault = str(path)
    assert fault.startswith(str(path))


def test_the_reference_names_every_variable():
    page = (Path(__file__).parents[1] / "docs" / "settings.md").read_text(encoding="utf-8")

    assert page == settings_reference(), "run make generate and commit what changes"
    assert [name for name in environment_names() if f"`{name}`" not in page] == []


@pytest.mark.parametrize("number", [".inf", ".nan"])
def test_a_limit_is_a_finite_number(write, number):
    (fault,) = faults_of(write(f"on_loop: stop\nbudgets: {{max_usd: {number}}}\n"))
    assert "line 2: budgets.max_usd: wants a finite number" in fault


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"on_loop": "stop"}, ["on_loop"]),
        ({"budgets": {"max_steps": 25}, "on_loop": "nudge"}, ["on_loop", "budgets"]),
        ({"conversation_budgets": {"max_usd": 5.0}}, ["conversation_budgets"]),
        ({"agents": {"support": {"budgets": {"max_usd": 1.0}}, "other": {}}}, ["agents.support.budgets"]),
        ({"on_loop": "observe"}, []),
    ],
)
def test_what_only_a_guard_heeds_is_known(given, named):
    assert Settings(**given).only_for_guards() == named
