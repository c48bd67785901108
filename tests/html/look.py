# SPDX-License-Identifier: Apache-2.0
"""A page as one who looks at it has it: figures to point at, tips, tables, keys."""
import base64
import json
import os

GUTTER, MARGIN = 84, 12  # of every figure: src/html/assets/view.js
TOPS = {"timeline": 22, "map": 8, "range": 8}
BOTTOMS = {"timeline": 24, "map": 24, "range": 8}


def expect(truth, what):
    if not truth:
        raise AssertionError(what)


def unpack(text):
    numbers, value, shift = [], 0, 0
    for byte in base64.b64decode(text):
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            numbers.append(value)
            value = shift = 0
    return numbers


class Page:
    def __init__(self, browser, path):
        self.browser, self.path = browser, path
        browser.size(1280, 1500)
        browser.open(path)

    def ask(self, script):
        return self.browser.evaluate(script)

    def figure(self, kind, scroll=True):
        """Where the drawing of a figure is, in the window."""
        if scroll:
            self.ask(f"document.querySelector('[data-kind={kind}]').scrollIntoView()")
        self.browser.settle()
        left, top, width, height = self.ask(
            f"(() => {{ const r = document.querySelector('[data-kind={kind}] canvas').getBoundingClientRect(); return [r.left, r.top, r.width, r.height]; }})()")
        return left + GUTTER, top + TOPS[kind], width - GUTTER - MARGIN, height - TOPS[kind] - BOTTOMS[kind]

    def data(self, kind):
        return json.loads(self.ask(f"document.querySelector('[data-kind={kind}] script').textContent"))

    def tip(self, kind):
        return self.ask(f"(() => {{ const t = document.querySelector('[data-kind={kind}] .tip'); return t.hidden ? '' : [...t.children].map((c) => c.textContent).join('\\n'); }})()")

    def hover(self, kind, across, up):
        left, top, width, height = self.figure(kind)
        self.browser.point(left + across * width, top + (1 - up) * height)
        return self.tip(kind)

    def picture(self, kind):
        self.browser.settle()
        return self.ask(f"document.querySelector('[data-kind={kind}] canvas').toDataURL()")

    def rows(self, heading, column=0):
        """The cells of a table that are shown."""
        return self.ask(f"[...[...document.querySelectorAll('section.table')].find((s) => s.querySelector('h2').textContent.startsWith({json.dumps(heading)}))"
                        f".querySelectorAll('tbody tr')].filter((r) => !r.hidden).map((r) => r.cells[{column}].textContent)")

    def focus(self, selector):
        """Reaches it as one without a pointer does."""
        self.ask("document.activeElement.blur(); document.scrollingElement.scrollTop = 0")
        for _ in range(60):
            self.browser.press("Tab")
            if self.ask(f"document.activeElement.matches({json.dumps(selector)})"):
                return
        raise AssertionError("Tab does not reach " + selector)

    def expect_quiet(self):
        """Nothing was asked of a network, and nothing went wrong."""
        own = "file://" + os.path.abspath(self.path)
        for method, said in self.browser.events:
            if method == "Network.requestWillBeSent":
                url = said["request"]["url"]
                expect(url == own or url.startswith("data:"), "the page asked for " + url)
            expect(method != "Runtime.exceptionThrown", f"the script failed: {said}")
            expect(method != "Runtime.consoleAPICalled", f"the console says: {said}")
            expect(method != "Log.entryAdded", f"the browser says: {said}")
        expect(any(method == "Network.requestWillBeSent" for method, _ in self.browser.events), "the browser told of no request at all")
