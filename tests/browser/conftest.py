"""Pages in a real browser.

``site``: a store with a node at work and a server before it, one for all of these tests in a process
(``browser.site``): each leaves behind what others do not trip over. ``page``: a page of a browser that is nobody's yet;
what it says on its console, and what its security policy refuses, fails the test. ``new_page(...)`` makes more: small,
dark, without scripts, under another name. ``violations(page)``: what axe finds; ``sound(paths)``: that it finds
nothing, and that phones have room.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from axe_core_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Browser, BrowserContext, Page, expect

from browser import chromium
from browser.site import Site
from browser.site import site as served
from long_tests import LONG

PATIENCE_MS = 60_000
"""How long a page may take on a machine that is busy with other things; nobody waits so long where all is well."""
WIDE, TABLET, NARROW = (
    {"width": 1280, "height": 900},
    {"width": 1024, "height": 768},
    {"width": 390, "height": 844},
)
_CUT_TABLES = """[...document.querySelectorAll(".scroll")].filter((table) => table.scrollWidth > table.clientWidth + 1)
.map((table) => table.ariaLabel ?? table.getAttribute("aria-labelledby"))"""
"""The names of the tables that are wider than their frame."""
_CUT_CELLS = """[...document.querySelectorAll("td")]
.filter((cell) => cell.clientWidth && cell.scrollWidth > cell.clientWidth + 1)
.map((cell) => cell.dataset.label ?? cell.textContent.trim())"""
"""The cells whose content reaches into the next one."""
_RULES = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    "resultTypes": ["violations"],
}
AXE_MOST = 100 if LONG else 2
"""Of the pages of one test. Axe takes a second for each, and they are made of the same pieces."""

expect.set_options(timeout=PATIENCE_MS)
NewPage = Callable[..., Page]
Violations = Callable[[Page], list[str]]
Sound = Callable[..., None]


@pytest.hookimpl(tryfirst=True)  # as in tests/conftest.py, and before it
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "browser" not in item.path.parts:
            continue
        item.add_marker(pytest.mark.xdist_group("browser"))  # they share one browser
        if chromium.program() is None:
            item.add_marker(pytest.mark.skip(reason=chromium.MISSING))


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """One for these tests: while playwright lives, its event loop runs in this thread, and no other test could run
    one."""
    with chromium.launched() as launched:
        yield launched


@pytest.fixture(scope="package")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with served(tmp_path_factory.mktemp("site")) as served_site:
        yield served_site


@pytest.fixture
def new_page(browser: Browser, site: Site) -> Iterator[NewPage]:
    """``new_page(dark=True, small=True, scripts=False, asker="viewer", loud=True)``; ``loud``: it may complain."""
    contexts: list[BrowserContext] = []
    complaints: list[str] = []

    def make(
        *,
        dark: bool = False,
        small: bool = False,
        scripts: bool = True,
        principal: str | None = None,
        loud: bool = False,
    ) -> Page:
        context = browser.new_context(
            base_url=site.url,
            viewport=NARROW if small else WIDE,
            java_script_enabled=scripts,
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce",
        )
        contexts.append(context)
        if principal is not None:
            context.add_cookies([{"name": "principal", "value": principal, "url": site.url}])
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        if not loud:
            page.on("pageerror", lambda error: complaints.append(str(error)))
            page.on(
                "console",
                lambda message: complaints.append(message.text) if message.type == "error" else None,
            )
        return page

    yield make
    for context in contexts:
        context.close()
    assert not complaints, complaints


@pytest.fixture
def page(new_page: NewPage) -> Page:
    return new_page()


@pytest.fixture(scope="session")
def axe() -> Axe:
    return Axe()


@pytest.fixture
def violations(axe: Axe) -> Violations:
    """What axe finds on a page: to be nothing."""

    def look(page: Page) -> list[str]:
        report: dict[str, Any] = axe.run(page, options=_RULES)
        return [
            f"{page.url}: {rule['id']} ({rule['impact']}): {node['target']} {node['failureSummary']}"
            for rule in report["violations"]
            for node in rule["nodes"][:3]
        ]

    return look


@pytest.fixture
def sound(new_page: NewPage, violations: Violations) -> Sound:
    """``sound(paths, settle=…, loud=True)``: axe finds nothing on the first two, nothing reaches out of a phone's or a
    tablet's screen to the right or out of its cell, and no table scrolls sideways; at length axe looks at all, also in
    the dark and on the phone. ``settle(page)`` waits until a page is whole."""

    def check(
        paths: Sequence[str], *, settle: Callable[[Page], None] = lambda page: None, loud: bool = False
    ) -> None:
        problems: list[str] = []
        for dark in (False, True) if LONG else (False,):
            page = new_page(dark=dark, loud=loud)
            for number, path in enumerate(paths):
                page.set_viewport_size(WIDE)  # type: ignore[arg-type]
                page.goto(path)
                settle(page)
                problems += violations(page) if number < AXE_MOST else []
                for size in (TABLET, NARROW):
                    page.set_viewport_size(size)  # type: ignore[arg-type]
                    wide = page.evaluate(
                        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
                    )
                    if wide > 0:
                        problems.append(f"{page.url} is {wide} px too wide at {size['width']} px")
                    problems += [
                        f"{page.url}: the table {name!r} scrolls sideways at {size['width']} px"
                        for name in page.evaluate(_CUT_TABLES)
                    ]
                    problems += [
                        f"{page.url}: the cell {name!r} runs into the next at {size['width']} px"
                        for name in page.evaluate(_CUT_CELLS)
                    ]
                problems += violations(page) if LONG else []
        assert not problems, "\n".join(problems)

    return check
