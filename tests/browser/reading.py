"""Headless Chromium, as Debian packages it, and how the tests read and wait for what the report shows."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait


def opened(profile: Path) -> webdriver.Chrome | None:
    """A browser that keeps its logs, with a new ``profile``; None where there is none."""
    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if browser is None or driver is None:
        return None
    options = Options()
    options.binary_location = browser
    for switch in ("--headless=new", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={profile}"):
        options.add_argument(switch)
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options=options, service=Service(driver))


SECTIONS = "main > section > details"


def load(browser, path, *, unfolded=True):
    """Open a report and wait until it is there, and with ``unfolded`` all of its sections."""
    browser.get(path.resolve().as_uri())
    until(browser, lambda: browser.execute_script("return document.documentElement.dataset.ready") == "yes")
    if unfolded:
        browser.execute_script(f"document.querySelectorAll('{SECTIONS}').forEach((part) => (part.open = true))")
        until(browser, lambda: all(body.text for body in every(browser, f"{SECTIONS} > .body")))
    return browser


def until(page, condition):
    return WebDriverWait(page, 20).until(lambda _: condition())


def one(page, selector):
    return page.find_element(By.CSS_SELECTOR, selector)


def every(page, selector):
    return page.find_elements(By.CSS_SELECTOR, selector)


def boxes(page):
    return {box.get_attribute("data-id") for box in every(page, "#graph .box")}


def details(page):
    until(page, lambda: one(page, "#details").is_displayed())
    return one(page, "#details").text


def rows_of(table):
    names = table["columns"]
    return [dict(zip(names, row, strict=True)) for row in table["rows"]]


def line(document, position):
    name, text, scope, source = document["lines"]["rows"][position]
    return name, text, document["lines"]["scopes"][scope], document["lines"]["sources"][source]
