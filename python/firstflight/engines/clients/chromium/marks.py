"""When a page had come how far, by the browser's own clocks."""

from typing import Any

from playwright.sync_api import CDPSession, Page

from firstflight.engines.clients.chromium.job import Drive

_MARKS = """() => new Promise(resolve => {
    const [navigation] = performance.getEntriesByType("navigation");
    const paint = name => performance.getEntriesByName(name, "paint")[0]?.startTime;
    const answer = lcp => resolve({
        load: navigation.loadEventStart,
        first_byte: navigation.responseStart,
        dom_content_loaded: navigation.domContentLoadedEventStart,
        first_paint: paint("first-paint"),
        first_contentful_paint: paint("first-contentful-paint"),
        lcp,
    });
    new PerformanceObserver(list => answer(list.getEntries().at(-1).startTime))
        .observe({type: "largest-contentful-paint", buffered: true});
    setTimeout(answer, 200);
})"""


class Marks:
    """Reads the marks of whatever `page` has loaded.

    Args:
        page: The page.
        session: A DevTools session of it.
    """

    def __init__(self, page: Page, session: CDPSession) -> None:
        self._page = page
        self._session = session
        session.send("Performance.enable")

    def read(self, outcome: Drive) -> None:
        """Puts the marks into `outcome`; those that were never reached stay `None`."""
        found: dict[str, Any] = self._page.evaluate(_MARKS)
        outcome.started_ns = self._started_ns()
        outcome.plt_ms = found.pop("load") or None
        outcome.first_byte_ms = found.pop("first_byte") or None
        outcome.marks = {f"{name}_ms": found[name] for name in sorted(found)}

    def _started_ns(self) -> int:
        metrics = self._session.send("Performance.getMetrics")["metrics"]
        by_name = {str(metric["name"]): float(metric["value"]) for metric in metrics}
        return round(by_name["NavigationStart"] * 1e9)
