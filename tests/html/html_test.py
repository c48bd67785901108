#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The pages of `berth replay --html`, `berth snapshot html` and `berth plan --html` in a real browser.

html_test.py BERTH HELPER FOLDER [CHECKS] writes what it makes, with screenshots, into FOLDER. HELPER is tests/html/helper.cc, CHECKS a pattern for
the names of those to run. Exits 77 where there is no chromium."""
import os
import re
import shutil
import subprocess
import sys
import traceback

from browser import Browser
from look import Page, expect, unpack
from planted import HOSTILE, MIB, PLANTED, bytes_text, large_trace, live_bytes, planted_trace


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


# ---- The checks. The name of each states what must hold.

class Checks:
    def __init__(self, berth, helper, folder, browser):
        self.berth, self.helper, self.folder, self.browser = berth, helper, folder, browser
        self.trace = planted_trace()
        self.trace.write(self.at("planted.csv"))
        run(berth, "replay", self.at("planted.csv"), "--once", "--html", self.at("planted.html"))
        run(helper, self.at("snapshot.json"), HOSTILE)
        run(berth, "snapshot", "html", self.at("snapshot.json"))
        self.peak_bytes, self.peak_event, self.at_peak = self.trace.peak

    def at(self, name):
        return os.path.join(self.folder, name)

    def fresh(self):
        self.page = Page(self.browser, self.at("planted.html"))
        return self.page

    def check_a_hostile_tag_is_text(self):
        self.fresh()
        expect(self.page.ask("document.title") == "planted.csv", "the title was changed")
        expect(self.page.ask("document.images.length") == 0, "a tag became an image")
        expect(HOSTILE in self.page.rows("By tag"), "the tag is not in the table as it is")

    def check_the_peak_names_the_planted_block(self):
        tip = self.fresh().hover("timeline", (self.peak_event + 0.5) / self.trace.event, 0.5)
        for words in (f"event {self.peak_event:,}", f"block {PLANTED}, 192 MiB", "planted"):
            expect(words in tip, f"{words!r} is not in {tip!r}")

    def check_the_map_names_the_planted_block(self):
        data = self.fresh().data("map")
        ids, offset = 0, 0
        for at, step in enumerate(unpack(data["ids"])):
            ids += (step >> 1) ^ -(step & 1)
            if ids == PLANTED:
                break
        place = unpack(data["places"])[at]
        offset = sum(unpack(data["place_offsets"])[:place + 1])
        begin = sum(unpack(data["begin"])[:at + 1]) + unpack(data["lives"])[at] / 2
        tip = self.page.hover("map", begin / self.trace.event, (offset + 96 * MIB) / data["bytes"])
        for words in (f"block {PLANTED}", "192 MiB (201,326,592 bytes)", "planted", f"events {self.at_peak[PLANTED][2]:,} to "):
            expect(words in tip, f"{words!r} is not in {tip!r}")

    def check_finding_goes_to_the_planted_block(self):
        page = self.fresh()
        page.ask("document.querySelector('[data-kind=map] input').focus()")
        self.browser.type("planted")
        self.browser.press("Enter")
        expect(f"block {PLANTED}" in page.tip("map"), f"found {page.tip('map')!r}")

    def check_holders_are_sorted_as_planted(self):
        page = self.fresh()
        largest = sorted(self.at_peak, key=lambda block: (-self.at_peak[block][0], self.at_peak[block][2]))
        expect(page.rows("Largest holders") == [str(block) for block in largest], "the largest do not come first")
        press = "[...document.querySelectorAll('section.table th button')].find((b) => b.textContent === '%s').click()"
        page.ask(press % "bytes")
        expect(page.rows("Largest holders")[0] == str(PLANTED), "the first click does not sort the largest first")
        page.ask(press % "bytes")
        expect(page.rows("Largest holders")[-1] == str(PLANTED), "the second click does not sort the smallest first")
        sizes = [self.at_peak[int(block)][0] for block in page.rows("Largest holders")]
        expect(sizes == sorted(sizes), "sizes do not ascend")
        page.ask(press % "since event")
        since = [self.at_peak[int(block)][2] for block in page.rows("Largest holders")]
        expect(since == sorted(since, reverse=True), "events do not descend")

    def check_searching_leaves_what_was_planted(self):
        page = self.fresh()
        self.browser.press("/")
        expect(page.ask("document.activeElement.type") == "search", "/ does not begin a search")
        self.browser.type("PLANT")
        expect(page.rows("Largest holders") == [str(PLANTED)], f"a search leaves {page.rows('Largest holders')[:5]}")
        expect(page.ask("document.activeElement.closest('.tools').querySelector('output').textContent") == f"1 of {len(self.at_peak)}", "it does not say how many")
        self.browser.type(" no such word")
        expect(page.rows("Largest holders") == [], "all words must be in a row")
        page.ask("document.activeElement.value = ''; document.activeElement.dispatchEvent(new Event('input'))")
        expect(len(page.rows("Largest holders")) == len(self.at_peak), "an empty search does not show all")

    def check_keys_do_what_a_pointer_does(self):
        page = self.fresh()
        page.focus("[data-kind=timeline] canvas")
        all_of_it, map_of_it = page.picture("timeline"), page.picture("map")
        self.browser.press("m")
        expect(f"block {PLANTED}" in page.tip("timeline"), f"M tells {page.tip('timeline')!r}")
        self.browser.press("Escape")
        expect(page.tip("timeline") == "", "Escape does not hide the tip")
        self.browser.press("+")
        closer = page.picture("timeline")
        expect(closer != all_of_it, "+ does not zoom")
        expect(page.picture("map") != map_of_it, "the map does not follow the timeline")
        self.browser.press("ArrowRight")
        expect(page.picture("timeline") != closer, "the arrow does not move")
        self.browser.press("n")
        expect(page.tip("timeline").startswith("event "), "N does not go to a hill")
        self.browser.press("Escape")
        self.browser.press("0")
        expect(page.picture("timeline") == all_of_it, "0 does not show all")
        page.focus("[data-kind=map] canvas")
        self.browser.press("n")
        expect("block 100" in page.tip("map"), f"N tells {page.tip('map')!r}")
        page.focus("section.table th button")
        self.browser.press("Enter")
        expect(page.ask("document.querySelector('th[aria-sort]') !== null"), "Enter does not sort")

    def check_a_close_look_is_exact(self):
        """Also where the whole story is told in fewer moments than it has."""
        trace = large_trace(250_000)  # of sixteen moments three are kept
        trace.write(self.at("long.csv"))
        run(self.berth, "replay", self.at("long.csv"), "--once", "--html", self.at("long.html"))
        page, after = Page(self.browser, self.at("long.html")), live_bytes(trace.lines)
        expect(page.data("timeline")["coarse"], "the story is too short for this check")
        page.focus("[data-kind=timeline] canvas")
        for _ in range(25):
            self.browser.press("+")
        length = len(after) / 1.25 ** 25
        for across in (0.1, 0.33, 0.5, 0.71, 0.9):
            wanted = (len(after) - length) / 2 + across * length
            tip = page.hover("timeline", across, 0.5).splitlines()[0]
            event = int(re.match(r"event ([\d,]+): ", tip).group(1).replace(",", ""))
            expect(abs(event - wanted) <= 1.5, f"the pointer is at event {wanted:.1f}, and the tip says {tip!r}")
            expect(tip.endswith(": " + bytes_text(after[event])), f"{tip!r}, where {bytes_text(after[event])} live")

    def check_it_is_light_and_dark(self):
        page = self.fresh()
        ground = "getComputedStyle(document.body).backgroundColor"
        light, drawn = page.ask(ground), page.picture("timeline")
        self.browser.lights("dark")
        dark = page.ask(ground)
        expect(light == "rgb(255, 255, 255)" and dark == "rgb(20, 23, 28)", f"grounds are {light} and {dark}")
        expect(page.picture("timeline") != drawn, "the drawing stays light")
        self.browser.screenshot(self.at("trace_dark.png"))
        page.ask("document.getElementById('theme').click()")
        expect(page.ask(ground) == light, "the button does not change it")
        expect(page.picture("timeline") == drawn, "the drawing stays dark")
        self.browser.lights("light")

    def check_fragmentation_is_told(self):
        rows = self.fresh().rows("Fragmentation")
        expect([row.split(",")[0] for row in rows] == ["at the peak of live bytes", "at the peak of committed bytes", "at the end"], f"rows are {rows}")
        live = self.page.rows("Fragmentation", 1)[0]
        expect(re.fullmatch(r"[\d.]+ (MiB|GiB)", live), f"live is {live}")

    def planted_piece(self, page):
        """Where in its rows the middle of the planted block is drawn, and what page to look at."""
        data = page.data("range")
        tags, kinds = unpack(data["tag"]), unpack(data["kinds"])
        at = next(i for i, tag in enumerate(tags) if data["tags"][tag] == "planted" and kinds[i] == 0)
        middle = sum(unpack(data["offsets"])[:at + 1]) + unpack(data["bytes_of"])[at] / 2
        _, _, _, height = page.figure("range")
        rows = int(height // 20)
        along = middle / data["bytes"] * rows
        return along % 1, 1 - (int(along) * 20 + 6) / height

    def check_a_snapshot_names_the_planted_block(self):
        page = Page(self.browser, self.at("snapshot.html"))
        tip = page.hover("range", *self.planted_piece(page))
        for words in ("48 MiB (50,331,648 bytes)", "planted", "helper.cc:", "(plant)", "age", "0x"):
            expect(words in tip, f"{words!r} is not in {tip!r}")
        address = re.search("0x[0-9a-f]+", tip).group()
        expect(page.rows("Largest blocks")[0] == "48 MiB" and page.rows("Largest blocks", 6)[0] == address, "the largest block is not the planted one")
        expect(re.fullmatch(r"[\d.]+ (ns|µs|ms|s|min)", page.rows("Largest blocks", 3)[0]), "it has no age")
        page.expect_quiet()

    def check_a_snapshot_is_sorted_and_searched(self):
        page = Page(self.browser, self.at("snapshot.html"))
        expect(HOSTILE in page.rows("By tag and site", 3), "the hostile tag is not in the table as it is")
        expect(page.ask("document.images.length") == 0, "a tag became an image")
        page.ask("[...document.querySelectorAll('section.table th button')].find((b) => b.textContent === 'tag').click()")
        tags = page.rows("Largest blocks", 1)
        expect(tags == sorted(tags) and "kv" in tags, "tags do not ascend")
        self.browser.press("/")
        self.browser.type("plant helper.cc")
        expect(page.rows("Largest blocks", 1) == ["planted"], "the search does not leave the planted block")

    def check_a_snapshot_tells_of_fragmentation_and_time(self):
        page = Page(self.browser, self.at("snapshot.html"))
        expect(page.rows("Fragmentation of each pool")[0] == "cpu:0 pool", "the pool is not told of")
        expect(re.fullmatch(r"[\d.]+ %", page.rows("Fragmentation of each pool", 5)[0]), "its fragmentation is not told")
        page.focus("[data-kind=timeline] canvas")
        self.browser.press("m")
        for words in (" before: ", "planted", "weights"):
            expect(words in page.tip("timeline"), f"{words!r} is not in {page.tip('timeline')!r}")

    def check_keys_go_through_a_snapshot(self):
        page = Page(self.browser, self.at("snapshot.html"))
        page.focus("[data-kind=range] canvas")
        drawn = page.picture("range")
        self.browser.press("n")
        expect(page.tip("range").startswith("block\nsize\n"), f"N tells {page.tip('range')!r}")
        self.browser.press("Escape")
        self.browser.press("+")
        expect(page.picture("range") != drawn, "+ does not zoom")
        closer = page.picture("range")
        self.browser.press("ArrowDown")
        expect(page.picture("range") != closer, "the arrow does not move")
        self.browser.press("0")
        expect(page.picture("range") == drawn, "0 does not show all")
        page.ask("document.querySelector('[data-kind=range] input').focus()")
        self.browser.type("planted")
        self.browser.press("Enter")
        expect("48 MiB" in page.tip("range"), f"found {page.tip('range')!r}")

    def check_a_plan_is_told_with_the_same_figures(self):
        with open(self.at("lives.csv"), "w") as file:
            file.write("id,lower,upper,size\n0,0,3,1000\nplanted,2,5,5000\n2,4,9,2000\n")
        run(self.berth, "plan", self.at("lives.csv"), "--html", self.at("plan.html"))
        page = Page(self.browser, self.at("plan.html"))
        tip = page.hover("timeline", 2.5 / 9, 0.5)
        expect("planted" in tip, f"the timeline of a plan tells {tip!r}")
        page.expect_quiet()

    def check_it_asked_nothing_of_a_network(self):
        self.check_the_peak_names_the_planted_block()
        self.page.expect_quiet()

    def take_pictures(self):
        """What documents show: the same story, without the tag that is only there to do harm."""
        planted_trace("staging").write(self.at("train.csv"))
        run(self.berth, "replay", self.at("train.csv"), "--once", "--html", self.at("train.html"))
        page = Page(self.browser, self.at("train.html"))
        self.browser.size(1280, 1000)
        left, top, width, height = page.figure("timeline", scroll=False)
        self.browser.point(left + (self.peak_event + 0.5) / self.trace.event * width, top + height * 0.3)
        self.browser.screenshot(self.at("trace.png"))
        run(self.helper, self.at("serve.json"), "staging")
        run(self.berth, "snapshot", "html", self.at("serve.json"))
        page = Page(self.browser, self.at("serve.html"))
        self.browser.size(1280, 640)
        page.hover("range", *self.planted_piece(page))
        self.browser.screenshot(self.at("snapshot.png"))

    def measure(self, events):
        """Frames while zooming in and out again, by the wheel. Only said: machines differ."""
        large_trace(events).write(self.at("large.csv"))
        run(self.berth, "replay", self.at("large.csv"), "--once", "--html", self.at("large.html"))
        page = Page(self.browser, self.at("large.html"))
        left, top, width, height = page.figure("timeline")
        self.browser.click(left + width / 3, top + height / 2)
        frames = page.ask("""new Promise((done) => {
          const canvas = document.querySelector('[data-kind=timeline] canvas'), took = [];
          let step = 0, before;
          const frame = (now) => {
            if (before !== undefined) took.push(now - before);
            before = now;
            if (step === 80) return done(took);
            canvas.dispatchEvent(new WheelEvent('wheel', {deltaY: step++ < 40 ? -1 : 1, clientX: 400, clientY: 300, bubbles: true, cancelable: true}));
            requestAnimationFrame(frame);
          };
          requestAnimationFrame(frame);
        })""")
        frames.sort()
        size = os.path.getsize(self.at("large.html")) / MIB
        print(f"html_test: {events:,} events, {size:.1f} MiB: a frame while zooming takes {frames[len(frames) // 2]:.1f} ms (median), "
              f"{frames[len(frames) * 95 // 100]:.1f} ms (95 %), {frames[-1]:.1f} ms (most)")
        page.expect_quiet()
        os.remove(self.at("large.csv"))


def main():
    berth, helper, folder = sys.argv[1:4]
    if shutil.which("chromium") is None:
        print("html_test: skipped, there is no chromium here: scripts/set-up browser installs it")
        return 77
    os.makedirs(folder, exist_ok=True)
    browser = Browser()
    failed = 0
    try:
        checks = Checks(berth, helper, folder, browser)
        wanted = [name for name in dir(checks) if name.startswith("check_") and (len(sys.argv) < 5 or re.search(sys.argv[4], name))]
        for name in wanted:
            try:
                getattr(checks, name)()
                print("html_test: ok     " + name[6:].replace("_", " "))
            except (AssertionError, RuntimeError) as error:
                failed += 1
                print("html_test: FAILED " + name[6:].replace("_", " ") + f"\n    {error}")
                if not isinstance(error, AssertionError):
                    traceback.print_exc(file=sys.stdout)
        checks.take_pictures()
        checks.measure(max(20_000, int(500_000 * float(os.environ.get("BERTH_TEST_SCALE", "1")))))
    finally:
        browser.close()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
