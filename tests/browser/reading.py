"""How the tests read and wait for what the report shows."""

from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait


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
