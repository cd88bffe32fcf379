"""Draw every dashboard with Grafana's own panel components, from what a real Prometheus answers.

Usage: python dashboards/preview/draw.py PACKAGES PICTURES [WIDTH [DASHBOARD...]]

PACKAGES is the folder whose ``node_modules`` holds what package.json asks for; the PNGs are written to PICTURES.
Variables and exemplars, which a Grafana server adds, are not drawn.
WIDTH is in pixels, 1600 by default. All dashboards are drawn unless some are named by uid.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "pack"))

from hour_of_data import HOUR, NEEDS_DAYS, write_blocks  # noqa: E402 - it stands with the tests that use it too
from story import Incident  # noqa: E402 - it imports the above

from turnwatch.demo.loopback import get_json  # noqa: E402 - as above
from turnwatch.demo.servers import running_prometheus  # noqa: E402 - as above
from turnwatch.pack.check_dashboards import filled_in  # noqa: E402 - as above

Json = dict[str, Any]

STEP = 15
CHROMIUM = [
    "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
    "--allow-file-access-from-files", "--virtual-time-budget=10000",
]  # fmt: skip
PAGE = """<!doctype html><meta charset="utf-8"><link rel="stylesheet" href="page.css">
<style>@font-face {{ font-family: Inter; src: local("Inter"), local("Liberation Sans"), local("DejaVu Sans") }}
body {{ margin: 0 }} .empty {{ display: grid; place-items: center; height: 100% }}</style>
<div id="page"></div><script>window.PREVIEW = {data}</script><script src="page.js"></script>
"""


def main(packages: Path, pictures: Path, width: int, wanted: list[str]) -> None:
    """Draw the dashboards.

    Raises:
        SystemExit: A page failed, or a panel shows nothing. The message says which.
    """
    pictures.mkdir(parents=True, exist_ok=True)
    wrong = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bundle(packages, folder)
        for dashboard, data in answered(folder, wanted):
            picture = pictures / f"{dashboard['uid']}.png"
            wrong += [f"{picture.name}: {what}" for what in shoot(folder, dashboard, data, picture, width)]
            print(picture)
    if wrong:
        raise SystemExit("\n".join(wrong))


def bundle(packages: Path, folder: Path) -> None:
    """Make page.js and page.css of the sources beside this file."""
    modules = packages.resolve() / "node_modules"
    subprocess.run(
        [
            modules / ".bin" / "esbuild", HERE / "page.jsx", "--bundle", "--jsx=automatic", "--log-level=error",
            "--loader:.ttf=dataurl", "--loader:.svg=dataurl", f"--outfile={folder / 'page.js'}",
            '--define:process.env.NODE_ENV="production"',
        ],
        env={**os.environ, "NODE_PATH": str(modules)},
        check=True,
        timeout=300,
    )  # fmt: skip


def answered(folder: Path, wanted: list[str]) -> Iterator[tuple[Json, Json]]:
    """Yield each dashboard with the answers to its queries, over an hour."""
    # Two minutes past a multiple of five: a time at the very end of an axis would be cut.
    end = int(time.time()) // 300 * 300 - 180
    write_blocks(folder, end - HOUR, Incident())
    (folder / "prometheus.yml").write_text("{}", encoding="utf-8")
    with running_prometheus(folder, data=".") as url:
        for path in sorted((ROOT / "dashboards").glob("*.json")):
            if wanted and path.stem not in wanted:
                continue
            dashboard = json.loads(path.read_text("utf-8"))
            answers = {
                panel["id"]: [ask(url, target, end, panel["maxDataPoints"]) for target in panel["targets"]]
                for panel in dashboard["panels"]
                if panel["type"] != "row"
            }
            marks = [
                {"color": layer["iconColor"], "fired": ask(url, {**layer, "range": True}, end)}
                for layer in dashboard["annotations"]["list"]
                if layer["enable"]
            ]
            span = {"from": (end - HOUR) * 1000, "to": end * 1000}
            yield dashboard, {"dashboard": dashboard, "answers": answers, "marks": marks, **span}


def ask(url: str, target: Json, end: int, points: int = HOUR // STEP) -> list[Json]:
    """Return what Prometheus answers to a panel's query with every variable at All."""
    step = max(STEP, HOUR // points)
    values = {"__rate_interval": "2m", "__interval": f"{STEP}s", "__range": "1h"}
    expr = quote(filled_in(target["expr"], values))
    if target["range"]:
        path = f"query_range?query={expr}&start={end - HOUR}&end={end}&step={step}"
    else:
        path = f"query?query={expr}&time={end}"
    return get_json(f"{url}/api/v1/{path}")["data"]["result"]


def shoot(folder: Path, dashboard: Json, data: Json, picture: Path, width: int) -> Iterator[str]:
    """Take the picture and yield what is wrong with it."""
    page = folder / "page.html"
    text = json.dumps(data).replace("</", "<\\/")
    page.write_text(PAGE.format(data=text), encoding="utf-8")
    rows = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in dashboard["panels"])
    window = f"--window-size={width},{56 + rows * 38}"
    chromium = [*CHROMIUM, window, f"--user-data-dir={folder / 'browser'}"]
    subprocess.run(
        [*chromium, f"--screenshot={picture.resolve()}", page.as_uri()], check=True, capture_output=True, timeout=180
    )
    seen = subprocess.run(
        [*chromium, "--dump-dom", page.as_uri()], check=True, capture_output=True, text=True, timeout=180
    ).stdout
    failure = re.search(r"<title>(failed: [^<]*)", seen)
    if failure:
        yield failure[1]
    # Before the script: that carries the dashboard's own texts too, and only what is drawn counts.
    drawn = seen.split("<script>", 1)[0]
    empty = set(re.findall(r'data-panel="([^"]*)"[^>]*>(?:(?!data-panel).)*?class="empty"', drawn, re.DOTALL))
    for title in sorted(empty - NEEDS_DAYS):
        yield f"{title} shows nothing"
    if "No data" in drawn:
        yield "a panel shows No data"


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int((sys.argv[3:4] or ["1600"])[0]), sys.argv[4:])
