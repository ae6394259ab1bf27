"""``report.html`` in a real browser: it opens offline, its numbers are those of study.json, and it can be used."""

import json
from itertools import pairwise
from urllib.parse import quote

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from fusionlab.report.page import page as page_of
from tests.browser.conftest import HOSTILE
from tests.browser.reading import boxes, details, every, line, load, one, rows_of, until
from tests.report.test_looks import contrast, luminance

pytestmark = pytest.mark.slow

SECTIONS = (
    "summary", "launches", "graph", "replay", "clusters", "refusals", "kernels", "memory", "changes", "equivalence",
    "roofline", "measured", "reproduce",
)  # fmt: skip


@pytest.fixture
def target(document):
    return document["targets"][0]


@pytest.fixture
def shown(chromium, tmp_path):
    """``shown(document)``: the report of another document, opened."""

    def show(document):
        (tmp_path / "report.html").write_text(page_of(document), "utf-8")
        chromium.get_log("browser")
        return load(chromium, tmp_path / "report.html")

    return show


def go(page, *parts):
    """To an address within the page."""
    page.execute_script("location.hash = arguments[0]", "/".join(quote(str(part), safe="/") for part in parts))


def box_of(page, box_id):
    return one(page, f'#graph .box[data-id="{box_id}"]')


def press(page, box_id):
    box = box_of(page, box_id).find_element(By.CSS_SELECTOR, "text.label")
    page.execute_script("arguments[0].scrollIntoView({block: 'center'})", box)
    ActionChains(page).move_to_element(box).click().perform()


def test_it_opens_without_errors_and_without_the_network(page):
    assert page.get_log("browser") == []
    sent = [json.loads(entry["message"])["message"] for entry in page.get_log("performance")]
    asked = [one["params"]["request"]["url"] for one in sent if one["method"] == "Network.requestWillBeSent"]
    assert [url for url in asked if not url.startswith("data:")] == [page.current_url]
    for section in SECTIONS:
        assert one(page, f"#{section} .body").text.strip(), section


def test_the_first_screen_has_the_verdict_and_one_picture(chromium, study_folder, target):
    """Everything else is folded until it is asked for."""
    page = load(chromium, study_folder / "report.html", unfolded=False)
    assert "Equivalence: equal" in one(page, "#summary .verdict").text
    for selector in ("#summary .verdict", "#summary .exact", "#summary .overview", "#summary .legend"):
        bottom = page.execute_script("return arguments[0].getBoundingClientRect().bottom", one(page, selector))
        assert 0 < bottom < 860, selector
    cells = every(page, "#summary .overview tbody td .num")
    stages = {group["stage"] for side in ("before", "after") for group in target[side]["by_stage_family"]}
    assert len(cells) == 6 * len(stages)
    for metric, column in (("dynamic_launches", 0), ("bytes", 1), ("model_us", 2)):
        for at, side in enumerate(("before", "after")):
            shown = sum(float(cell.get_attribute("data-value")) for cell in cells[2 * column + at :: 6])
            assert shown == pytest.approx(target[side]["totals"][metric])
    assert page.execute_script("return document.documentElement.scrollHeight") < 3 * 860
    assert not one(page, "#roofline .body").is_displayed()
    one(page, 'nav a[href="#roofline"]').click()
    assert one(page, "#roofline svg").is_displayed()
    page.execute_script("arguments[0].click()", one(page, "#launches summary"))
    until(page, lambda: one(page, "#launches table").is_displayed())


def test_a_fallback_is_told_first(shown, document, target):
    (event,) = target["events"]
    page = shown(
        {**document, "targets": [{**target, "events": [{**event, "fallback": "forward Laplacian (planted)"}]}]}
    )
    assert every(page, "#summary .verdict")[0].text == "Fallback: instead of a forward Laplacian (planted)"


def test_where_sparsity_is_lost_is_a_table(shown, document, target):
    (event,) = target["events"]
    lost = {
        "op": "reduce", "source": "net.py:7", "scope": "jit(f)", "does": "reduces electrons", "instead": "sum later",
        "directions_before": 3, "directions_after": 30, "share": 0.5, "flops": 2e9, "bytes": 4096, "model_us": 12.5,
    }  # fmt: skip
    sparsity = {"line": "lost at reduce (planted)", "lost": [lost]}
    page = shown({**document, "targets": [{**target, "events": [{**event, "sparsity": sparsity}]}]})
    assert one(page, "#summary .sparsity").text == "Sparsity: lost at reduce (planted)"
    text = one(page, "#summary .lost tbody tr").text
    assert all(part in text for part in ("net.py:7", "3 → 30", "50", "GFLOP", "KiB", "12.5", "sum later"))


def test_the_policy_forbids_what_the_page_does_not_need(page):
    refused = page.execute_async_script(
        "const done = arguments[0];"
        "addEventListener('securitypolicyviolation', (event) => done(event.effectiveDirective));"
        "fetch('https://example.invalid/').catch(() => {});"
    )
    assert refused == "connect-src"


def test_the_totals_are_those_of_the_document(page, target):
    fields = ("dynamic_launches", "static_launches", "dynamic_copies", "temp_bytes", "argument_bytes", "flops")
    rows = every(page, "#summary .totals tbody tr")
    for field, row in zip(fields, rows, strict=False):
        cells = row.find_elements(By.CSS_SELECTOR, ".num")
        expected = [target[side]["footprint"][field] for side in ("before", "after")]
        assert [float(cell.get_attribute("data-value")) for cell in cells[:2]] == expected
        assert [cell.tag_name for cell in cells[:2]] == (
            ["span"] * 2 if "memory" in row.text or "copies" in row.text else ["a"] * 2
        )
        if field.endswith(("launches", "copies")):
            assert [cell.text for cell in cells[:2]] == [f"{value:,}" for value in expected]
            assert cells[2].text == (f"{expected[1] / expected[0]:.3f}" if expected[0] else "–")


def test_the_head_tells_of_every_target(shown, document, target):
    both = [target, {**target, "name": "other", "after": None, "diffs": []}]
    page = shown({**document, "targets": both})
    before, after = (f"{target[side]['footprint']['dynamic_launches']:,}" for side in ("before", "after"))
    head = one(page, "#subtitle").text
    assert f"on a100: {before} kernel launches become {after}; other: {before}; no rewritten program" in head


def test_stages_and_families_are_those_of_the_document_and_link_to_their_launches(page, target):
    assert target["source"] == "a100.txtpb"  # no path
    for metric in ("dynamic_launches", "bytes", "model_us"):
        one(page, f'#launches select option[value="{metric}"]').click()
        for side, table in zip(("before", "after"), every(page, "#launches table.matrix"), strict=True):
            for group in target[side]["by_stage_family"]:
                path = f"#launches-of/a100/{side}/stage/{group['stage']}/family/{group['family']}"
                cell = table.find_element(By.CSS_SELECTOR, f'a[href="{path}"]')
                assert float(cell.get_attribute("data-value")) == pytest.approx(group[metric], rel=1e-12)
            whole = table.find_element(By.CSS_SELECTOR, "tfoot td:last-child .num")
            assert float(whole.get_attribute("data-value")) == pytest.approx(target[side]["totals"][metric], rel=1e-9)
    group = target["before"]["by_stage_family"][0]
    go(page, f"launches-of/a100/before/stage/{group['stage']}/family/{group['family']}")
    listed = details(page)
    for row in rows_of(target["before"]["launches"]):
        if (row["stage"], row["family"]) == (group["stage"], group["family"]):
            assert row["name"] in listed


def test_a_program_without_stages_is_shown_by_its_scopes(shown, document):
    text = (
        json.dumps(document)
        .replace('"field": "stage"', '"field": "place"')
        .replace('"view": "stage"', '"view": "scope"')
    )
    plain = json.loads(text)
    for side in ("before", "after"):
        view = plain["targets"][0][side]["by_view_family"]
        view["rows"] = [
            {**{k: v for k, v in row.items() if k != "stage"}, "place": row["stage"]} for row in view["rows"]
        ]
    page = shown(plain)
    assert page.get_log("browser") == []
    for table in ("#summary .overview", "#launches table.matrix"):
        assert one(page, f"{table} thead th").text == "scope"
        assert "by scope and family" in one(page, f"{table} caption").text
    place = plain["targets"][0]["before"]["by_view_family"]["rows"][0]["place"]
    assert every(page, f'#launches a[href*="/before/place/{place}"]')
    assert "features" not in one(page, "#launches").text  # no legend of stages
    assert "transform" in one(page, "#launches").get_attribute("textContent")  # a column of the folded table


def test_a_launch_leads_to_its_op_scope_and_source(page, document, target):
    launch = next(row for row in rows_of(target["before"]["launches"]) if row["ops"] and row["source"])
    go(page, "launch/a100/before", launch["name"])
    assert launch["source"] in details(page)
    assert f"StableHLO ops of the same name stack: {len(launch['ops'])}" in details(page)
    link = one(page, '#details a[href^="#op/original/"]')
    position = int(link.get_attribute("href").rpartition("/")[2])
    assert position in launch["ops"]
    name, text, scope, source = line(document, rows_of(document["programs"]["original"]["ops"])[position]["line"])
    link.click()
    until(page, lambda: details(page).removeprefix("×").strip().startswith(f"op {name}"))
    for part in (text, scope, "Launches of the same name stack on a100, before: "):
        assert part in details(page)
    one(page, f'#details a[href="#source/{quote(source)}"]').click()
    until(page, lambda: f"source {source}" in details(page))


def test_search_finds_an_op_and_shows_it_in_the_graph(page, document):
    ops = rows_of(document["programs"]["original"]["ops"])
    wanted = next(i for i, op in enumerate(ops) if "tanh" in line(document, op["line"])[1])
    name = line(document, ops[wanted]["line"])[0]
    one(page, "#search").send_keys(f"{name} tanh")
    until(page, lambda: every(page, f'#results a[href="#op/original/{wanted}"]'))
    one(page, f'#results a[href="#op/original/{wanted}"]').click()
    assert "tanh" in details(page)
    one(page, "#details button:not(.close)").click()
    assert f"op:{wanted}" in boxes(page)
    assert "marked" in box_of(page, f"op:{wanted}").get_attribute("class")


def test_groups_unfold_to_what_is_in_them(page, document):
    groups = document["programs"]["original"]["groups"]
    loop = next(i for i, group in enumerate(groups) if group["kind"] == "loop")
    assert f"{groups[loop]['trips']} trips" in box_of(page, f"group:{loop}").text
    press(page, f"group:{loop}")
    inside = {f"group:{i}" for i, group in enumerate(groups) if group["parent"] == loop}
    until(page, lambda: inside <= boxes(page))
    assert box_of(page, f"group:{loop}").get_attribute("aria-expanded") == "true"
    press(page, f"group:{loop}")
    until(page, lambda: not inside & boxes(page))


def test_identical_layers_are_one_box(page, document):
    groups = document["programs"]["original"]["groups"]
    repeat = next(i for i, group in enumerate(groups) if group["kind"] == "repeat" and group["identical"])
    go(page, "group/original", repeat)
    assert "3, identical" in details(page)
    one(page, "#details button:not(.close)").click()
    assert groups[repeat]["label"] in box_of(page, f"group:{repeat}").text


def test_the_graph_pans_and_zooms(page):
    canvas = one(page, "#graph svg > g")
    page.execute_script("arguments[0].scrollIntoView({block: 'center'})", one(page, "#graph svg"))
    first = canvas.get_attribute("transform")
    one(page, '#graph button[aria-label="zoom in"]').click()
    zoomed = canvas.get_attribute("transform")
    ActionChains(page).move_to_element_with_offset(one(page, "#graph svg"), 0, 200).click_and_hold().move_by_offset(
        40, 30
    ).release().perform()
    assert len({first, zoomed, canvas.get_attribute("transform")}) == 3


def test_the_graph_is_used_by_keyboard(page, document):
    groups = document["programs"]["original"]["groups"]
    first = next(i for i, group in enumerate(groups) if group["parent"] == 0)
    page.execute_script(f"document.querySelector('#graph .box[data-id=\"group:{first}\"]').focus()")
    before = boxes(page)
    page.switch_to.active_element.send_keys(Keys.ENTER)
    until(page, lambda: boxes(page) > before)
    assert page.switch_to.active_element.get_attribute("data-id") == f"group:{first}"
    page.switch_to.active_element.send_keys("i")
    assert groups[first]["label"] in details(page)
    page.switch_to.active_element.send_keys(Keys.ESCAPE)
    until(page, lambda: not one(page, "#details").is_displayed())


def test_before_and_after_stand_side_by_side(page):
    choice = every(page, "#graph .controls option")[-1]
    assert "side by side" in choice.text
    choice.click()
    until(page, lambda: len(every(page, "#graph .pane svg.graph")) == 2)


def test_what_changed_is_unfolded(page, document, target):
    diff = target["diffs"][-1]
    assert f"{diff['removed']:,} ops removed" in one(page, "#changes").text
    hunk = next(hunk for hunk in diff["hunks"] if hunk["removed"])
    page.execute_script("document.querySelectorAll('#changes details.hunk').forEach((one) => (one.open = true))")
    text = line(document, hunk["removed"][0])[1]
    until(page, lambda: text in one(page, "#changes .lines.removed").text)


def test_names_from_programs_are_text(page):
    assert page.execute_script("return document.images.length") == len(every(page, "#replay img"))
    one(page, "#search").send_keys("onerror=alert")
    until(page, lambda: HOSTILE in one(page, "#results").text)
    assert page.get_log("browser") == []


def test_everything_that_takes_the_focus_has_a_name_and_a_known_role(page):
    nameless = page.execute_script(
        """
        const named = (node) => node.ariaLabel || node.textContent.trim() || node.labels?.length || node.title
          || node.getAttribute("aria-labelledby");
        const taken = document.querySelectorAll("a, button, input, select, summary, [role=button], [tabindex='0']");
        const roles = ["button", "region", "group", "link"];
        const known = (node) => !node.hasAttribute("role") || roles.includes(node.getAttribute("role"));
        const table = (node) => node.caption && node.querySelector("th[scope=col]");
        return [
          ...[...taken].filter((node) => !named(node) || !known(node)),
          ...[...document.querySelectorAll("table")].filter((node) => !table(node)),
        ].map((node) => node.outerHTML.slice(0, 120));
        """
    )
    assert nameless == []
    levels = [int(node.tag_name[1]) for node in every(page, "h1, h2, h3, h4")]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_in_light_and_dark(page, scheme):
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    colours = page.execute_script(
        "const style = getComputedStyle(document.documentElement);"
        "return Object.fromEntries(['paper','ink','dim','link','soft','good','bad'].map((name) =>"
        " [name, style.getPropertyValue('--' + name).trim()]))"
    )
    assert (luminance(colours["paper"]) < 0.1) == (scheme == "dark")
    for name in ("ink", "dim", "link", "good", "bad"):
        for ground in ("paper", "soft"):
            assert contrast(colours[name], colours[ground]) >= 4.5, (name, ground)


def test_the_exact_verdict_is_told_beside_the_other(page, target):
    draws = target["equivalence"]["exact"]["draws"]
    for section in ("summary", "equivalence"):
        said = [line.text for line in every(page, f"#{section} p.exact")]
        assert said == [f"Exact: identical in {draws} draws over 2 primes of 2 walkers (chance of error below 1e-300)"]


def test_a_program_that_was_not_rewritten_and_has_no_spec(shown, document):
    """What the CPU and a check that failed leave out: refusals, ceilings, everything after."""
    poor = json.loads(json.dumps(document))
    (target,) = poor["targets"]
    target |= {"after": None, "diffs": [], "peaks": None, "rewritten": target["original"]}
    target["equivalence"] |= {"verdict": "not-checked", "outputs": [], "reason": "it took too long", "exact": None}
    target["before"] |= {"refusals": None}
    target["before"]["roofline"]["ceilings"] = None
    poor |= {"replays": {"loops": []}, "pictures": [], "programs": {"original": poor["programs"]["original"]}}
    page = shown(poor)
    assert page.get_log("browser") == []
    assert "it took too long" in one(page, "#equivalence").text
    assert "no record" in one(page, "#refusals").text
    assert [head.text for head in every(page, "#summary .totals thead th")] == ["", "original"]


@pytest.mark.parametrize("width", [1024, 420])
def test_it_fits_a_narrow_window(shown, document, target, width):
    """Also with a reason of XLA's that is one long word."""
    refusals = target["before"]["refusals"]
    causes = [{**refusals["causes"][0], "cause": 60 * "tiled->(d0)"}]
    longer = {**target, "before": {**target["before"], "refusals": {**refusals, "causes": causes}}}
    page = shown({**document, "targets": [longer]})
    page.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": width, "height": 700, "deviceScaleFactor": 1, "mobile": False}
    )
    try:
        assert page.execute_script("return document.documentElement.scrollWidth") <= width
    finally:
        page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.parametrize("address", ["op/%E0%A4%A", "op/nokey/0", "launch/a100/sideways/x", "op/original/99999"])
def test_an_address_of_nothing_shows_nothing(page, address):
    page.execute_script("location.hash = arguments[0]", address)  # some are no valid encoding
    until(page, lambda: page.execute_script("return location.hash.slice(1)") == address)
    page.execute_async_script("setTimeout(arguments[0], 50)")
    assert not one(page, "#details").is_displayed()
    assert page.get_log("browser") == []


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
    go(page, "group/original/1")
    details(page)
    page.back()
    until(page, lambda: not one(page, "#details").is_displayed())


def test_families_without_flops_are_named(page, target):
    points = target["before"]["roofline"]["families"]
    without = [point["name"] for point in points if point["name"] != "all" and not point["flops"]]
    caption = one(page, "#roofline figcaption").text
    assert all(name in caption for name in without)
    assert ("not drawn" in caption) == bool(without)


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


def test_kernels_are_in_the_order_of_their_distance_from_the_floor(page, target):
    for at, side in enumerate(("before", "after")):
        found = target[side]["kernels"]
        assert found["reason"] == ""
        verdict = every(page, "#kernels .kernels-verdict")[at].text
        assert (
            f"{found['half']} of {found['count']} launches hold half of the distance ({found['rows'][0]['name']}"
            in verdict
        )
        body = every(page, "#kernels .table")[at].find_elements(By.CSS_SELECTOR, "tbody tr")
        names = [one.find_element(By.CSS_SELECTOR, "th").text for one in body]
        assert names == [one["name"] for one in found["rows"]][: len(names)]
        assert len(names) == min(12, len(found["rows"]))
    page.execute_script("location.hash = arguments[0].getAttribute('href')", one(page, "#kernels tbody th a"))
    assert target["before"]["kernels"]["rows"][0]["name"] in one(page, "#details-title").text


def test_the_reason_for_no_kernels_is_all_that_is_said(shown, document, target):
    sides = {side: {**target[side], "kernels": {"reason": "A CPU has none."}} for side in ("before", "after")}
    page = shown({**document, "targets": [{**target, **sides}]})
    assert [one.text for one in every(page, "#kernels .reason")] == ["A CPU has none."] * 2
    assert every(page, "#kernels .table, #kernels .note") == []
    assert page.get_log("browser") == []


def test_memory_is_shown_by_buffer(page, target):
    for at, side in enumerate(("before", "after")):
        found = target[side]["buffers"]
        assert found["reason"] == ""
        assert every(page, "#memory .peak-verdict")[at].text == found["verdict"]
        plot = every(page, "#memory .lives")[at]
        drawn = plot.find_elements(By.CSS_SELECTOR, "rect.buffer")
        assert len(drawn) == len(found["drawn"]) > 0
        solid = plot.find_elements(By.CSS_SELECTOR, "rect.buffer.at-peak")
        assert len(solid) == sum(one["at_peak"] for one in found["drawn"]) > 0
        (peak,) = plot.find_elements(By.CSS_SELECTOR, "line.peak")
        middle = float(peak.get_attribute("x1"))
        for rect in solid:
            left, width = (float(rect.get_attribute(name)) for name in ("x", "width"))
            assert left <= middle <= left + width
        body = every(page, "#memory .table")[at]
        cells = body.find_elements(By.CSS_SELECTOR, "tbody .figure .num")
        sizes = [float(cell.get_attribute("data-value")) for cell in cells]
        assert sizes == [float(one["bytes"]) for one in found["peak"]["buffers"]][: len(sizes)]
        assert sizes == sorted(sizes, reverse=True)
    assert HOSTILE not in one(page, "#memory").get_attribute("innerHTML")
    page.execute_script("location.hash = arguments[0].getAttribute('href')", one(page, "#memory .lives a"))
    assert "launch" in details(page)
    title = one(page, "#details-title").text
    assert any(buffer["producer"] in title for buffer in target["before"]["buffers"]["drawn"])


def test_the_reason_for_no_memory_is_all_that_is_said(shown, document, target):
    reason = "replay: XLA wrote no buffer assignment; memory by buffer needs JAX 0.10 or later"
    sides = {side: {**target[side], "buffers": {"reason": reason}} for side in ("before", "after")}
    page = shown({**document, "targets": [{**target, **sides}]})
    assert [one.text for one in every(page, "#memory .reason")] == [reason, reason]
    assert every(page, "#memory .lives, #memory .table, #memory .note") == []
    assert page.get_log("browser") == []
