"""The pages of the book in a browser, from their files: run by `make check`.

Skipped where there is no browser, no Selenium, or no book in ``_build``.
"""

import base64
import io
import re
import shutil
import time
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

import nbformat
import numpy as np
import pytest

from press import Repository, read_chapter

ROOT = Path(__file__).parents[2]
HTML = ROOT / "_build" / "html"
PAGES = [f"book/{page}" for page in Repository.here().pages()] + ["search", "genindex"]
MEASURES = Path(__file__).with_name("pages.js").read_text(encoding="utf-8")
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--host-resolver-rules=MAP * ~NOTFOUND",  # no network
)
READY = """
const done = arguments[0];
const images = [...document.images].map((img) => img.decode().catch(() => {}));
Promise.all([window.MathJax?.startup?.promise, ...images]).then(() => done());
"""
RAW = {
    "raw TeX": r"\\[a-zA-Z]+\b|\\[()\[\]]|\$\$|\$[^$\n]{1,60}\$",
    "a role that is none": r"\{[a-z][\w:-]*\}`|:[a-z]+:`|\{[a-z][\w-]*\} *\n",
    "a failure": r"Traceback|<function|<class '",
}
pytestmark = pytest.mark.browser


@pytest.fixture(scope="session")
def driver():
    """A browser without a network."""
    if not (HTML / "index.html").exists():
        pytest.skip("there is no book: make quick")
    webdriver = pytest.importorskip("selenium.webdriver", reason="no Selenium")
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    service = shutil.which("chromedriver")
    if program is None or service is None:
        pytest.skip("no Chromium with its chromedriver on PATH")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for option in OPTIONS:
        options.add_argument(option)
    logs = {"browser": "ALL", "performance": "ALL"}
    options.set_capability("goog:loggingPrefs", logs)
    browser = webdriver.Chrome(options, webdriver.ChromeService(service))
    browser.set_script_timeout(60)
    yield browser
    browser.quit()


class Visit:
    """What was measured on a page."""

    def __init__(self, driver, page):
        window(driver, 1300)
        driver.get((HTML / f"{page}.html").as_uri())
        driver.execute_async_script(READY)
        self.driver, self.name = driver, page
        self.screens = self.ask("screens")
        self.clipped = self.ask("clipped")
        self.prose = self.ask("prose")
        self.failed = self.ask("failed")
        self.pictures = self.ask("pictures")
        self.links = self.ask("links")
        self.faint, self.plates = {}, {}
        window(driver, 1300, 2400)  # no figure is behind the bar at the top
        for scheme in ("light", "dark"):
            self.ask("scheme", scheme)
            self.faint[scheme] = self.ask("faint")
            self.plates[scheme] = [*self.unfit_figures()]
        self.ask("scheme", "light")
        self.sideways = {}
        for width in (700, 420):
            window(driver, width)
            self.sideways[width] = self.ask("sideways")
        log = driver.get_log("browser")
        self.errors = [told["message"] for told in log if told["level"] == "SEVERE"]
        sent = "".join(entry["message"] for entry in driver.get_log("performance"))
        self.asked = re.findall(r'"url":"(https?://[^"]+)"', sent)

    def ask(self, function, *arguments):
        call = f"\nreturn {function}(...arguments);"
        return self.driver.execute_script(MEASURES + call, *arguments)

    def unfit_figures(self):
        """Yield figures on a ground that is not the page's, or that are hard to see."""
        figures, page = self.ask("figures")
        for number, figure in enumerate(figures, 1):
            self.ask("bring", figure)
            pixels = image(figure.screenshot_as_base64)
            corners = pixels[[1, 1, -2, -2], [1, -2, 1, -2]]
            if abs(corners - np.array(page)).max() > 8:
                yield f"figure {number} is on {corners.tolist()}, the page on {page}"
            low, high = np.percentile(luminance(pixels), [0.1, 99.9]) + 0.05
            if high < 4.5 * low:
                yield f"figure {number} has a contrast of {high / low:.1f}"


def window(driver, width, height=820):
    metrics = {"width": width, "height": height, "mobile": False}
    metrics["deviceScaleFactor"] = 1
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def image(data):
    from matplotlib.image import imread

    pixels = imread(io.BytesIO(base64.b64decode(data)))[..., :3]  # from 0 to 1
    return (255 * pixels).round().astype(int)


def luminance(pixels):
    parts = pixels / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


@pytest.fixture(scope="session")
def visits(driver, request):
    """Pages by name, each visited once; in the end, how long they are."""
    found = {}

    def visit(page):
        if page not in found:
            found[page] = Visit(driver, page)
        return found[page]

    yield visit
    lines = ["\n\nScreens of 1300 x 820, folds closed: all of the page, visible code"]
    for page, seen in found.items():
        lines.append(f"{seen.screens[0]:6.1f} {seen.screens[1]:5.1f}  {page}")
    plugins = request.config.pluginmanager
    with plugins.get_plugin("capturemanager").global_and_fixture_disabled():
        plugins.get_plugin("terminalreporter").write("\n".join(lines))


@pytest.fixture(params=PAGES)
def page(request, visits):
    return visits(request.param)


def test_it_asks_no_network_and_complains_of_nothing(page):
    assert page.asked == []
    assert page.errors == []


def test_its_text_holds_nothing_raw(page):
    found = {
        what: re.findall(f".{{0,30}}(?:{pattern}).{{0,30}}", page.prose)
        for what, pattern in RAW.items()
    }
    if page.name != "book/api":
        missing = re.findall(r".{0,30}\b(?:nan|None)\b", page.prose)
        found["a value that is missing"] = missing
    assert {what: places for what, places in found.items() if places} == {}
    assert page.failed == []


def test_its_links_lead_somewhere(page):
    assert [link for link in page.links if not leads_somewhere(link)] == []


def test_its_pictures_are_described_and_nothing_is_clipped(page):
    assert page.pictures == []
    assert page.clipped == []


def test_it_does_not_move_sideways(page):
    assert page.sideways == {700: [], 420: []}


def test_it_can_be_read(page):
    assert page.faint == page.plates == {"light": [], "dark": []}


def leads_somewhere(link):
    address = urlsplit(link)
    if address.scheme != "file":
        return address.scheme in ("https", "http", "mailto")
    path = Path(url2pathname(address.path))
    return path.is_file() and (
        not address.fragment or unquote(address.fragment) in identities(path)
    )


@cache
def identities(path):
    """The places of a page to which links may lead."""
    return {"", *re.findall(r'\bid="([^"]+)"', path.read_text(encoding="utf-8"))}


@pytest.mark.parametrize("query", ["Nyström", "similarity"])
def test_the_search_finds_pages_before_names(driver, query):
    driver.get(f"{(HTML / 'search.html').as_uri()}?q={query}")
    links = "[...document.querySelectorAll('#search-results li a')]"
    found = until(lambda: driver.execute_script(f"return {links}.map(a => a.href)"))
    assert "/book/" in found[0]
    assert "/api.html#" not in found[0]


@pytest.mark.parametrize("page", PAGES)
def test_the_button_offers_the_notebook_and_the_text(driver, page):
    text = (HTML / f"{page}.html").read_text(encoding="utf-8")
    offered = re.findall(r'href="([^"]*_sources/[^"]*)"', text)
    for address in offered:
        assert ((HTML / f"{page}.html").parent / address).is_file()
    kinds = {Path(address).suffix for address in offered}
    if "run-it" in text:
        assert kinds == {".ipynb", ".md"}


@pytest.mark.parametrize("page", PAGES)
def test_the_notebook_has_its_numbers_and_figures_without_the_press(page):
    path = HTML / f"_sources/{page}.ipynb"
    if not path.exists():
        return
    cells = nbformat.read(path, as_version=4).cells
    prose = [cell for cell in cells if cell.cell_type == "markdown"]
    text = "\n".join(cell.source for cell in prose)
    shown = [name for cell in prose for name in cell.get("attachments", {})]
    raw = r"\{[\w:]+\}`.*|^:{3}.*|^`{3,}\{(?:glue|math|prf).*"
    assert re.findall(raw, text, re.MULTILINE) == []
    assert sorted(re.findall(r"attachment:([^)]+)", text)) == sorted(shown)
    source = read_chapter(Repository.here().source(Path(page).name)).cells
    written = [cell.source for cell in source if cell.cell_type == "markdown"]
    for before, after in zip(written, prose, strict=True):
        for found in (r"^##* .*", r"^\*\*[^*{]*\*\*"):  # headings and bold beginnings
            told = re.findall(found, before, re.MULTILINE)
            assert [words for words in told if words not in after.source] == []
        formulas = 2 * before.count("```{math}") + before.count("$$")
        assert after.source.count("$$") == formulas


def until(ask, seconds=20):
    end = time.monotonic() + seconds
    while not (answer := ask()):
        assert time.monotonic() < end
        time.sleep(0.05)
    return answer


def test_claims_are_found_by_words_and_by_verdict(driver):
    from selenium.webdriver.support.ui import Select

    driver.get((HTML / "book/song2024.html").as_uri())
    find = driver.find_element
    words, told = (
        find("css selector", f".verdicts-filter {n}") for n in ("input", "output")
    )
    shown, every = map(int, told.text.split(" of "))
    assert shown == every > 50
    words.send_keys("theorem h.6")
    some = int(told.text.split(" of ")[0])
    assert 0 < some < 5
    rows = driver.find_elements("css selector", "table.verdicts tbody tr")
    left = [row.text for row in rows if row.is_displayed()]
    assert len(left) == some
    assert all("Theorem H.6" in text for text in left)
    driver.get((HTML / "book/turek2022.html").as_uri())
    choice = Select(find("css selector", ".verdicts-filter select"))
    choice.select_by_visible_text("remark")
    cells = "table.verdicts tbody tr:not([hidden]) td:nth-child(4)"
    left = driver.find_elements("css selector", cells)
    assert {cell.text for cell in left} == {"remark"}
    for verdict, in_part in (("holds", False), ("holds in part", True)):
        choice.select_by_visible_text(verdict)
        left = driver.find_elements("css selector", cells)
        assert left
        assert {cell.text.startswith("holds in ") for cell in left} == {in_part}


def test_what_a_budget_buys(driver):
    driver.get((HTML / "index.html").as_uri())
    if "book/index" not in driver.current_url:
        driver.get((HTML / "book/index.html").as_uri())
    items, seconds, hours = driver.find_elements("css selector", ".calculator input")
    told = driver.find_element("css selector", ".calculator output")
    for field, value in ((items, "1000"), (seconds, "1"), (hours, "13.875")):
        field.clear()
        field.send_keys(value)
    assert told.text.startswith("All 500,000 pairs take 140 hours.")  # 499 500 s
    assert "50,000, 10 % of them: 49 landmarks, 100 pairs of each item." in told.text
    table = driver.find_element("css selector", ".cell_output table").text
    row = next(line for line in table.splitlines() if line.startswith("10 %"))
    for value in row.split()[2:]:
        assert f" {value}" in told.text
    assert "NaN" not in told.text
    hours.clear()
    hours.send_keys("4.1625")  # three per cent, for which no error is recorded
    assert "nearest found 0." in told.text
    assert "NaN" not in told.text
    assert "error" not in told.text
    hours.clear()
    hours.send_keys("1000")
    assert "no approximation is needed" in told.text
    items.clear()
    assert told.text.startswith("Give two items or more")


def test_the_slider_moves_by_arrow_keys(driver, tmp_path):
    from matplotlib.figure import Figure
    from selenium.webdriver.common.keys import Keys

    from press import frames

    drawn = {name: Figure((1, 1), facecolor=name) for name in ("red", "blue")}
    box = frames(drawn, name="colour", alt='A "plain" square')
    path = tmp_path / "page.html"
    path.write_text(f"<!doctype html><meta charset=utf-8>{box.data}", encoding="utf-8")
    driver.get(path.as_uri())
    find = driver.find_element
    picture, slider, told = (find("tag name", n) for n in ("img", "input", "output"))
    assert picture.get_attribute("alt") == 'A "plain" square'
    assert slider.accessible_name.startswith("colour")

    def colour():
        return image(picture.screenshot_as_base64)[10, 10]

    assert (told.text, colour().argmax()) == ("blue", 2)
    slider.send_keys(Keys.ARROW_LEFT)
    assert (told.text, colour().argmax()) == ("red", 0)
    assert slider.get_attribute("aria-valuetext") == "red"
    slider.send_keys(Keys.ARROW_RIGHT)
    assert (told.text, colour().argmax()) == ("blue", 2)
