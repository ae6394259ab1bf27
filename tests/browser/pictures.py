"""The three pictures of the report in docs/report.md: ``python -m tests.browser.pictures DIR/report.html docs/images``.

``DIR`` is that of ``fusionlab study --model paulinet -o DIR``.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from selenium import webdriver

from tests.browser.reading import details, load, one, opened

WIDTH, HEIGHT = 1280, 860
AT_THE_TOP = "document.getElementById(arguments[0]).scrollIntoView()"


def main(report: Path, folder: Path) -> None:
    """Write ``report-summary.png`` (the first screen), ``report-graph.png`` (light, the loop unfolded) and
    ``report-launches.png`` (dark, behind one number)."""
    with tempfile.TemporaryDirectory() as profile:
        browser = opened(Path(profile))
        if browser is None:
            sys.exit("no Chromium here: on Debian, apt-get install chromium chromium-driver")
        with browser:
            _look(browser, report, "light")
            browser.execute_script("scrollTo(0, 0)")
            _take(browser, folder / "report-summary.png")
            browser.execute_script(
                "[...document.querySelectorAll('#replay button')]"
                ".find((button) => button.textContent === 'open the loop in the graph').click()"
            )
            one(browser, '#graph button[aria-label="fit to the window"]').click()
            browser.execute_script("document.activeElement.blur()")
            browser.execute_script(AT_THE_TOP, "graph")
            browser.execute_script(
                "scrollBy(0, document.querySelector('#graph .pane').getBoundingClientRect().top - 105)"
            )
            _take(browser, folder / "report-graph.png")
            _look(browser, report, "dark")
            browser.execute_script("location.hash = '#launches-of/a100/before/stage/B/family/gemm'")
            details(browser)
            browser.execute_script(AT_THE_TOP, "launches")
            _take(browser, folder / "report-launches.png")


def _look(browser: webdriver.Chrome, report: Path, scheme: str) -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    metrics = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": True}  # no scroll bars
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.get("about:blank")
    load(browser, report)


def _take(browser: webdriver.Chrome, path: Path) -> None:
    time.sleep(0.5)  # the last frame is drawn
    browser.save_screenshot(str(path))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
