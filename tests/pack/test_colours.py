"""Colours that mean something stay apart for colour-blind eyes.

Simulated with the matrices of Machado, Oliveira and Fernandes (2009) for the complete lack of one kind of cone, and
compared by distance in CIELAB, where 2.3 is the least that anybody notices.
"""

import json
from itertools import combinations

import numpy as np
import pytest

from turnwatch.pack.render import pack_files

EYES = {
    "all cones": np.eye(3),
    "no red cones": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "no green cones": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "no blue cones": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
XYZ_OF_RGB = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
WHITE = XYZ_OF_RGB.sum(axis=1)
APART = 15
DANGER = {"#E69F00", "#D55E00"}
BACKGROUNDS = ("#181b1f", "#ffffff")
"""Of Grafana's panels, dark and light."""


def light(colour):
    stored = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(stored <= 0.04045, stored / 12.92, ((stored + 0.055) / 1.055) ** 2.4)


def contrast(one, other):
    """As WCAG 2 has it."""
    darker, brighter = sorted(XYZ_OF_RGB[1] @ light(colour) for colour in (one, other))
    return (brighter + 0.05) / (darker + 0.05)


def cielab(colour, eyes):
    share = XYZ_OF_RGB @ np.clip(EYES[eyes] @ light(colour), 0, 1) / WHITE
    x, y, z = np.where(share > 216 / 24389, np.cbrt(share), (24389 / 27 * share + 16) / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def fixed_colours(panel):
    named = {
        override["matcher"]["options"]: found["value"]["fixedColor"]
        for override in panel["fieldConfig"]["overrides"]
        for found in override["properties"]
        if found["id"] == "color"
    }
    steps = {
        f"past {step['value']}": step["color"]
        for step in panel["fieldConfig"]["defaults"].get("thresholds", {}).get("steps", [])
        if step["color"].startswith("#")
    }
    return named or steps


@pytest.mark.parametrize("eyes", EYES)
def test_colours_of_one_panel_stay_apart(home, eyes):
    seen = 0
    for path in sorted((home / "dashboards").glob("*.json")):
        for panel in json.loads(path.read_text("utf-8"))["panels"]:
            if panel["type"] == "row":
                continue
            for (one, first), (other, second) in combinations(fixed_colours(panel).items(), 2):
                distance = np.linalg.norm(cielab(first, eyes) - cielab(second, eyes))
                assert distance >= APART, f"{path.stem}, {panel['title']}: {one} and {other} are {distance:.0f} apart"
                seen += 1
    assert seen


def test_a_line_past_its_limit_has_the_colour_of_the_limit(home):
    seen = 0
    for path in sorted((home / "dashboards").glob("*.json")):
        for panel in json.loads(path.read_text("utf-8"))["panels"]:
            thresholds = panel.get("fieldConfig", {}).get("defaults", {}).get("thresholds", {})
            if panel["type"] == "timeseries" and thresholds["mode"] == "absolute":
                assert panel["fieldConfig"]["defaults"]["color"] == {"mode": "thresholds", "seriesBy": "max"}
                seen += 1
    assert seen


def test_lines_without_a_limit_are_coloured_by_size_and_told_apart_by_all_eyes(home):
    seen = 0
    for path in sorted((home / "dashboards").glob("*.json")):
        for panel in json.loads(path.read_text("utf-8"))["panels"]:
            thresholds = panel.get("fieldConfig", {}).get("defaults", {}).get("thresholds", {})
            if panel["type"] != "timeseries" or thresholds["mode"] != "percentage":
                continue
            assert panel["fieldConfig"]["defaults"]["color"] == {"mode": "thresholds", "seriesBy": "max"}
            assert [step["value"] for step in thresholds["steps"]] == [None, 12, 33, 66]
            assert not {step["color"] for step in thresholds["steps"]} & DANGER
            legend = panel["options"]["legend"]
            assert (legend["displayMode"], legend["sortBy"], legend["sortDesc"]) == ("table", "Max", True)
            seen += 1
    assert seen


def test_lines_are_seen_on_both_of_grafanas_backgrounds(home):
    for path in sorted((home / "dashboards").glob("*.json")):
        for panel in json.loads(path.read_text("utf-8"))["panels"]:
            for step in panel.get("fieldConfig", {}).get("defaults", {}).get("thresholds", {}).get("steps", []):
                if step["color"].startswith("#"):
                    assert min(contrast(step["color"], background) for background in BACKGROUNDS) > 2


def test_medians_are_dashed_so_that_colour_is_not_all_that_tells_them(home):
    seen = 0
    for path in sorted((home / "dashboards").glob("*.json")):
        for panel in json.loads(path.read_text("utf-8"))["panels"]:
            if any(target["legendFormat"].endswith("p50") for target in panel.get("targets", [])):
                dashed = {"id": "custom.lineStyle", "value": {"fill": "dash", "dash": [6, 6]}}
                assert any(dashed in override["properties"] for override in panel["fieldConfig"]["overrides"])
                seen += 1
    assert seen


def test_another_palette_falls_back_to_size_where_a_grafana_does_not_know_it():
    dashboard = json.loads(pack_files({"seriesPalette": "palette-colorblind"})["dashboards/turnwatch-spend.json"])
    (panel,) = (panel for panel in dashboard["panels"] if panel["title"] == "Spend per hour by agent")
    defaults = panel["fieldConfig"]["defaults"]
    assert defaults["color"] == {"mode": "palette-colorblind", "seriesBy": "max"}
    assert defaults["thresholds"]["mode"] == "percentage"
