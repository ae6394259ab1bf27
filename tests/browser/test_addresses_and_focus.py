"""``report.html`` in a real browser: where addresses, Back and the keyboard lead, and what labels say."""

import pytest
from selenium.webdriver.common.keys import Keys

from tests.browser.reading import details, every, one, rows_of, until


@pytest.mark.parametrize("address", ["op/%E0%A4%A", "op/nokey/0", "launch/a100/sideways/x", "op/original/99999"])
def test_an_address_of_nothing_shows_nothing(page, address):
    page.execute_script("location.hash = arguments[0]", address)
    until(page, lambda: page.execute_script("return location.hash.slice(1)") == address)
    page.execute_async_script("setTimeout(arguments[0], 50)")
    assert not one(page, "#details").is_displayed()
    assert page.get_log("browser") == []


def test_labels_say_that_names_join_ops_and_launches(page, document):
    launch = next(row for row in rows_of(document["targets"][0]["before"]["launches"]) if row["ops"])
    page.execute_script("location.hash = '#launch/a100/before/' + encodeURIComponent(arguments[0])", launch["name"])
    assert f"StableHLO ops of the same name stack: {len(launch['ops'])}" in details(page)
    one(page, '#details a[href^="#op/original/"]').click()
    until(page, lambda: "Launches of the same name stack on a100, before: " in details(page))


def test_sorting_keeps_the_focus_and_closing_gives_it_back(page):
    page.execute_script("arguments[0].focus()", every(page, "#roofline thead button")[1])
    label = page.switch_to.active_element.text
    page.switch_to.active_element.send_keys(Keys.ENTER)
    assert page.switch_to.active_element.text.startswith(label)
    opener = one(page, "#launches a.num")
    page.execute_script("arguments[0].focus()", opener)
    opener.send_keys(Keys.ENTER)
    details(page)
    page.execute_script("arguments[0].remove()", opener)
    page.switch_to.active_element.send_keys(Keys.ESCAPE)
    assert page.switch_to.active_element.get_attribute("id") == "search"


def test_back_to_the_plain_page_closes_the_details(page):
    page.execute_script("location.hash = '#group/original/1'")
    details(page)
    page.back()
    until(page, lambda: not one(page, "#details").is_displayed())


def test_families_without_flops_are_named(page, document):
    points = document["targets"][0]["before"]["roofline"]["families"]
    without = [point["name"] for point in points if point["name"] != "all" and not point["flops"]]
    caption = one(page, "#roofline figcaption").text
    assert all(name in caption for name in without)
    assert ("not drawn" in caption) == bool(without)


def test_the_document_holds_no_path_of_the_target(document):
    (target,) = document["targets"]
    assert target["source"].endswith(".txtpb")
    assert "/" not in target["source"]


def test_arrows_walk_through_what_was_found(page):
    box = one(page, "#search")
    box.send_keys("tanh")
    until(page, lambda: every(page, "#results a"))
    links = every(page, "#results a")
    assert len(links) > 2

    def press(key):
        page.switch_to.active_element.send_keys(key)
        return page.switch_to.active_element

    assert [press(Keys.ARROW_DOWN), press(Keys.ARROW_DOWN), press(Keys.ARROW_UP)] == [links[0], links[1], links[0]]
    assert [press(Keys.END), press(Keys.ARROW_DOWN), press(Keys.HOME)] == [links[-1], links[-1], links[0]]
    assert press(Keys.ARROW_UP) == box
    press(Keys.ARROW_DOWN)
    assert press(Keys.ESCAPE) == box
    assert not one(page, "#results").is_displayed()
    box.send_keys(" ", Keys.BACKSPACE)
    until(page, lambda: one(page, "#results").is_displayed())
    wanted = every(page, "#results a")[0].get_attribute("href")
    press(Keys.ENTER)
    details(page)
    assert page.current_url == wanted
    assert page.switch_to.active_element.get_attribute("id") == "details-title"


def test_only_up_leads_out_of_a_group(page):
    page.execute_script("document.querySelector('#graph .box[data-id=\"group:0\"]').focus()")

    def press(key):
        page.switch_to.active_element.send_keys(key)
        return page.switch_to.active_element.get_attribute("data-id")

    sideways = [Keys.ARROW_RIGHT] * 4 + [Keys.ARROW_DOWN] * 2 + [Keys.ARROW_LEFT] * 4
    walked = [press(key) for key in [Keys.ARROW_DOWN, *sideways]]
    assert len(set(walked)) > 2
    assert "group:0" not in walked
    assert "group:0" in [press(Keys.ARROW_UP) for _ in range(12)]
