"""The line that has a Prometheus read a file, said by servers that tell more or less of themselves."""

from pathlib import Path

import orjson
import pytest

from turnwatch.pack.deploy.http import ServerAnswer
from turnwatch.pack.deploy.rule_files import line_to_add

FILE = Path("/etc/rules/turnwatch.rules.yaml")
FLAGS = {"data": {"config.file": "/etc/prometheus/prometheus.yml"}}


class Saying:
    """A server that answers these paths, and others with 404 and a page."""

    def __init__(self, answers):
        self._answers = {path: orjson.dumps(answer).decode() for path, answer in answers.items()}

    def ask(self, _method, path):
        found = self._answers.get(path.removeprefix("/api/v1/status/"))
        return ServerAnswer(200, found) if found is not None else ServerAnswer(404, "<html>no such page</html>")


def loaded(text):
    return {"data": {"yaml": text}}


@pytest.mark.parametrize(
    ("answers", "where"),
    [
        (
            {"flags": FLAGS, "config": loaded("rule_files: [a.yml, b/*.yml]\n")},
            "(now: a.yml, b/*.yml) in /etc/prometheus/",
        ),
        ({"flags": FLAGS, "config": loaded("global: {}\n")}, "rule_files in /etc/prometheus/prometheus.yml"),
        ({"flags": FLAGS, "config": loaded("")}, "rule_files in /etc/prometheus/prometheus.yml"),
        ({"flags": FLAGS, "config": loaded("rule_files: [\n")}, "rule_files in /etc/prometheus/prometheus.yml"),
        ({"flags": FLAGS}, "rule_files in /etc/prometheus/prometheus.yml"),
        ({"flags": {"data": None}}, "rule_files in prometheus.yml"),
        ({}, "rule_files in prometheus.yml"),
    ],
    ids=["all", "no rule_files", "empty", "broken", "no configuration", "no flags", "nothing"],
)
def test_what_a_server_says_of_itself_is_named_and_the_rest_left_out(answers, where):
    said = line_to_add(Saying(answers), FILE)
    assert said.startswith(f"Add the line `- {FILE}`")
    assert where in said


def test_names_from_a_server_write_no_lines_of_their_own():
    said = line_to_add(Saying({"flags": {"data": {"config.file": "a\nError: all is well"}}}), FILE)
    assert "\n" not in said
