"""The ``turnwatch`` command finds its commands and imports only the one asked for."""

import importlib.metadata
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from turnwatch.cli import COMMANDS, app_for, main
from turnwatch.errors import SettingsError

runner = CliRunner()


def test_help_lists_every_command():
    listed = runner.invoke(app_for(["--help"]), ["--help"])
    assert listed.exit_code == 0
    for name in COMMANDS:
        assert name in listed.output


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_module_and_explains_itself(name):
    explained = runner.invoke(app_for([name, "--help"]), [name, "--help"])
    assert explained.exit_code == 0, explained.output
    assert f"turnwatch {name}" in explained.output.replace("root", "turnwatch")


def test_a_command_does_not_import_the_others():
    script = (
        "import sys; from turnwatch.cli import app_for; app_for(['demo']);"
        "print(*(name.removeprefix('turnwatch.cli.') for name in sys.modules if name.startswith('turnwatch.cli.')))"
    )
    seen = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert set(seen.split()) & set(COMMANDS) == {"demo"}


def test_version_is_the_distributions():
    shown = runner.invoke(app_for(["--version"]), ["--version"])
    assert shown.output.strip() == importlib.metadata.version("turnwatch")


def test_an_unknown_command_is_a_usage_error():
    assert runner.invoke(app_for(["nonsense"]), ["nonsense"]).exit_code == 2


def test_what_turnwatch_raises_on_purpose_is_one_line_and_exit_code_2(monkeypatch, capsys):
    def unusable(arguments):
        def run(**_):
            raise SettingsError("turnwatch.yaml, line 3: unknown key 'detekt'")

        return run

    monkeypatch.setattr("turnwatch.cli.app_for", unusable)
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    assert capsys.readouterr().err == "turnwatch: turnwatch.yaml, line 3: unknown key 'detekt'\n"
