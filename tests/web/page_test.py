#!/usr/bin/env python3
"""The farm's page in headless Chromium over known, hostile data (page_fixture): nothing from outside
becomes markup, nothing scrolls sideways at 360 pixels, Tab reaches every control, charts show the
numbers they are given. Without Chromium every case is skipped, and says so.

    page_test.py --fixture PROGRAM [--results FILE.xml] [--screenshots FOLDER]
"""
import argparse
import base64
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from xml.sax.saxutils import quoteattr

KNOWN = "00000000000011110000000000002222"
LIMIT_S = 20


class Skipped(Exception):
    """The reason why a case cannot run here."""


class Browser:
    """Chromium, spoken to over its debugging pipe: a JSON object, then a zero byte."""

    def __init__(self, program, folder):
        to_browser, self.to_browser = os.pipe()
        self.from_browser, from_browser = os.pipe()

        def place():  # Chromium reads descriptor 3 and writes 4.
            os.dup2(to_browser, 13)
            os.dup2(from_browser, 14)
            os.dup2(13, 3)
            os.dup2(14, 4)

        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
             "--disable-dev-shm-usage", "--disable-background-networking", "--hide-scrollbars",
             f"--user-data-dir={folder}", "--remote-debugging-pipe", "about:blank"],
            preexec_fn=place, close_fds=False, start_new_session=True, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.number, self.rest, self.session, self.events = 0, b"", None, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(domain + ".enable")

    def message(self):
        deadline = time.monotonic() + LIMIT_S
        os.set_blocking(self.from_browser, False)
        while b"\0" not in self.rest:
            if time.monotonic() > deadline:
                raise AssertionError("Chromium does not answer")
            try:
                read = os.read(self.from_browser, 1 << 20)
            except BlockingIOError:
                time.sleep(0.005)
                continue
            if not read:
                raise AssertionError("Chromium has ended")
            self.rest += read
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to_browser, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def run(self, script):
        """The value of a JavaScript expression; promises are waited for."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in answer:
            raise AssertionError(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def until(self, script, what):
        deadline = time.monotonic() + LIMIT_S
        while not self.run(script):
            if time.monotonic() > deadline:
                raise AssertionError(f"waited in vain for {what}")
            time.sleep(0.05)

    def size(self, width, height, dark=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def key(self, key, code, shift=False):
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key,
                      windowsVirtualKeyCode=code, modifiers=8 if shift else 0)

    def press_enter(self):
        self.call("Input.dispatchKeyEvent", type="keyDown", key="Enter", code="Enter", text="\r",
                  windowsVirtualKeyCode=13)
        self.call("Input.dispatchKeyEvent", type="keyUp", key="Enter", code="Enter",
                  windowsVirtualKeyCode=13)

    def close(self):
        os.killpg(self.process.pid, signal.SIGKILL)  # its helpers write into the folder too
        self.process.wait()
        os.close(self.to_browser)
        os.close(self.from_browser)


class PageTest:
    def __init__(self, browser, port, screenshots):
        self.browser, self.screenshots = browser, screenshots
        self.base = f"http://127.0.0.1:{port}/"

    def open(self, view="", width=1240, height=900, dark=False):
        self.browser.size(width, height, dark)
        self.browser.events.clear()
        self.browser.call("Page.navigate", url="about:blank")
        self.browser.call("Page.navigate", url=self.base + ("#/session/" + view if view else ""))
        self.browser.until(f"document.documentElement?.dataset.drawn === '{view or 'farm'}'",
                           "the page")

    def shoot(self, name):
        if not self.screenshots:
            return
        height = self.browser.run("document.documentElement.scrollHeight")
        width = self.browser.run("innerWidth")
        self.browser.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                          deviceScaleFactor=1, mobile=False)
        image = self.browser.call("Page.captureScreenshot", format="png")["data"]
        pathlib.Path(self.screenshots, name + ".png").write_bytes(base64.b64decode(image))

    def views(self):
        hostile = self.browser.run(
            "fetch('/api/v1/farm').then(r => r.json())"
            ".then(f => f.sessions.find(s => s.model.includes('<')).id)")
        return {"farm": "", "session": KNOWN, "hostile": hostile}

    def case_hostile_names_stay_text(self):
        self.open()
        for name, view in self.views().items():
            self.open(view)
            self.browser.run("[...document.querySelectorAll('[data-attempt]')].slice(0, 1)"
                             ".map(b => b.click())")
            if name != "farm":
                self.browser.until("document.getElementById('candidate').open", "the candidate")
            time.sleep(0.2)
            strangers = self.browser.run(
                "document.querySelectorAll('img, body script, iframe, main a[href^=\"javascript\"],"
                " [onerror], [onclick], [style]').length")
            assert strangers == 0, f"{name}: {strangers} elements from outside"
            title = self.browser.run("document.title")
            assert not title.startswith("owned"), title
            if name != "session":
                text = self.browser.run("document.body.textContent")
                for where in ("worker", "model") if name == "farm" else ("message", "trace", "task"):
                    assert f"</a>{where}" in text, f"{name}: the {where}'s name is not shown whole"
            faults = [e for e in self.browser.events
                      if e.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded")]
            assert not faults, f"{name}: {json.dumps(faults[:2])}"

    def case_nothing_scrolls_sideways_at_360_pixels(self):
        self.open()
        for name, view in self.views().items():
            for width in (360, 768, 1240):
                self.open(view, width=width)
                wide = self.browser.run(
                    "[...document.querySelectorAll('body *')].filter(e => !e.closest('.skip') &&"
                    " e.getBoundingClientRect().right > innerWidth + 0.5)"
                    ".map(e => e.nodeName + '.' + e.getAttribute('class')).slice(0, 5)")
                scroll = self.browser.run("document.documentElement.scrollWidth")
                assert scroll <= width and not wide, f"{name} at {width}: {scroll} wide, {wide}"
                if view:
                    self.check_dialogs(f"{name} at {width}")

    def check_dialogs(self, where):
        """A candidate's and a best trace's dialog: whole, and its bar's words in one piece."""
        for control in ("[data-attempt]", "[data-best]"):
            self.browser.run(f"document.querySelector('{control}').click()")
            self.browser.until("document.getElementById('candidate').open", "the dialog")
            broken = self.browser.run(
                "[...document.querySelectorAll('dialog .bar b, dialog .bar button')].filter(e => {"
                " const r = document.createRange(); r.selectNodeContents(e);"
                " return r.getClientRects().length !== 1; }).map(e => e.textContent)")
            wide = self.browser.run(
                "[...document.querySelectorAll('dialog, dialog *')].filter(e =>"
                " e.getBoundingClientRect().right > innerWidth + 0.5).length")
            assert not broken and wide == 0, f"{where}, {control}: {broken} broken, {wide} too wide"
            self.browser.key("Escape", 27)
            self.browser.until("!document.getElementById('candidate').open", "its end")

    def case_counts_list_nothing_that_never_happened(self):
        self.open()
        counts = self.browser.run("[...document.querySelectorAll('.counts dd')].map(e => e.textContent)")
        assert counts and "0" not in counts, counts
        outcomes = self.browser.run("document.querySelectorAll('.counts')[0].innerText")
        assert "ok" in outcomes, outcomes

    def case_a_task_is_whole_at_every_width(self):
        for width in (360, 768, 1240):
            self.open(KNOWN, width=width)
            rows = self.browser.run(
                "[...document.querySelectorAll('li.task')].map(e => [...e.children].map(c =>"
                " c.getBoundingClientRect().height > 0 && c.innerText).join(' | '))")
            assert len(rows) == 8 and all("× 1" in row for row in rows), f"{width}: {rows}"
            assert sum("failed" in row for row in rows) == 8, f"{width}: {rows}"
            assert "false" not in " ".join(rows), f"{width}: {rows}"

    def case_tab_reaches_every_control(self):
        for view, dialog in (("", ""), (KNOWN, ""), (KNOWN, "[data-attempt]"), (KNOWN, "[data-best]")):
            self.open(view)
            if dialog:
                self.browser.run(f"document.querySelector('{dialog}').click()")
                self.browser.until("document.getElementById('candidate').open", "the dialog")
            self.browser.run("window.reached = new Set(); document.addEventListener('focusin',"
                             " e => reached.add(e.target)); void 0")
            # What is behind a dialog is out of reach as long as it is open.
            root = "document.getElementById('candidate')" if dialog else "document"
            controls = (f"[...{root}.querySelectorAll('a[href], button, input, select, summary,"
                        " [tabindex=\"0\"]')].filter(e => e.offsetParent !== null ||"
                        " e.className === 'skip')")
            count = self.browser.run(controls + ".length")
            assert count > (1 if dialog else 5), count
            for _ in range(count + 3):
                self.browser.key("Tab", 9)
                outline = self.browser.run(
                    "document.activeElement === document.body ||"
                    " getComputedStyle(document.activeElement).outlineStyle !== 'none'")
                assert outline, "a focused control does not show it"
            missed = self.browser.run(controls + ".filter(e => !reached.has(e)).map(e => e.outerHTML)")
            assert not missed, f"not reached: {missed}"

    def case_a_candidate_is_one_key_away_and_focus_comes_back(self):
        self.open(KNOWN)
        self.browser.run("document.querySelector('[data-attempt]').focus()")
        attempt = self.browser.run("document.activeElement.dataset.attempt")
        time.sleep(2.5)  # Over a poll.
        kept = self.browser.run("document.activeElement.dataset.attempt")
        assert kept == attempt, "a poll took the focus away"
        self.browser.press_enter()
        self.browser.until("document.getElementById('candidate').open", "the candidate")
        text = self.browser.run("document.getElementById('candidate').textContent")
        assert "split(s2.i1, [7, 4, 10])" in text and "guard page" in text, text
        self.shoot("candidate")
        self.browser.key("Escape", 27)
        self.browser.until("!document.getElementById('candidate').open", "its end")
        assert self.browser.run("document.activeElement.dataset.attempt") == attempt

    def case_the_best_trace_of_a_task_is_one_key_away(self):
        self.open(KNOWN)
        buttons = self.browser.run("document.querySelectorAll('.task [data-best]').length")
        assert buttons == 8, buttons
        self.browser.run("document.querySelector('[data-best]').focus()")
        self.browser.press_enter()
        self.browser.until("document.getElementById('candidate').open", "the best trace")
        text = self.browser.run("document.getElementById('candidate').textContent")
        assert "split(s2.i1, [3, 16, 6])" in text and "1.50 ms" in text and "</a>best" in text, text
        assert self.browser.run("document.querySelectorAll('dialog img, dialog script').length") == 0
        self.shoot("best")
        self.browser.key("Escape", 27)
        self.browser.until("!document.getElementById('candidate').open", "its end")
        assert self.browser.run("'best' in document.activeElement.dataset")

    def case_sessions_and_devices_say_what_they_lack(self):
        self.open()
        rows = self.browser.run("[...document.querySelectorAll('li.device')].map(e => e.textContent)")
        waits = self.browser.run("[...document.querySelectorAll('li.session')].map(e => e.textContent)"
                                 ".filter(t => t.includes('waiting for a device that can run it')).length")
        assert waits == 2, "of one that waits, and one that runs"
        running = self.browser.run("document.querySelector('.figures dd').firstChild.data")
        assert running == "2", running
        out = [row for row in rows if "quarantined" in row]
        assert len(out) == 1 and "failed on two candidates that are good elsewhere" in out[0], rows
        bare = [row for row in rows if "without sandbox" in row]
        assert len(bare) == 1 and "worker" in bare[0], rows
        probed = [row for row in rows if "131 GFLOP/s a core · 21.4 GB/s" in row]
        assert len(probed) == 4, rows

    def case_charts_are_drawn_from_the_data(self):
        self.open(KNOWN)
        label = self.browser.run("document.querySelector('svg.big').getAttribute('aria-label')")
        assert label == "Best so far: 40.0 ms by default, 20.0 ms after 60 s", label
        path = self.browser.run("document.querySelector('svg.big .line').getAttribute('d')")
        scale = self.browser.run(
            "fetch('/api/v1/session?id=" + KNOWN + "').then(r => r.json()).then(s => ({curve:"
            " s.curve, left: s.left_s, elapsed: s.elapsed_s, "
            " width: document.querySelector('svg.big').viewBox.baseVal.width}))")
        # M x,y then H x V y for every later point, then H to now: steps as many as points.
        assert path.count("V") == len(scale["curve"]) - 1, path
        end = float(path.rsplit("H", 1)[1])
        wanted = 58 + (scale["width"] - 14 - 58) * scale["elapsed"] / (scale["elapsed"] + scale["left"])
        assert abs(end - wanted) < 1, f"the line ends at {end}, 60 of 240 s are at {wanted}"
        heights = [float(path.split(",")[1].split("H")[0])]
        heights += [float(part.split("H")[0]) for part in path.split("V")[1:]]
        points = [ms for _, ms in scale["curve"]]
        for (y1, p1), (y2, p2) in zip(zip(heights, points), list(zip(heights, points))[1:]):
            assert (y2 > y1) == (p2 < p1), "lower latency is lower in the chart"
        slope = (heights[-1] - heights[0]) / (points[0] - points[-1])
        for y, p in zip(heights, points):
            assert abs(heights[0] + slope * (points[0] - p) - y) < 0.2, "the axis is linear"
        bars = self.browser.run("[...document.querySelectorAll('.task .meter rect')]"
                                ".map(r => Number(r.getAttribute('width')))")
        # Products of 1000 x (500 + i) x 500 in 2.5 ms, on 16 cores of 131.2 GFLOP/s.
        shares = [2 * 1000 * (500 + i) * 500 / (16 * 131.2e9) / 2.5e-3 for i in range(8)]
        assert sorted(bars) == [round(100 * share, 1) for share in shares], bars

    def case_the_verdict_of_the_model_leads(self):
        self.open(KNOWN)
        said = self.browser.run("document.querySelector('.verdict').textContent")
        assert said == "model: 40.0 ms → 20.0 ms, 2.00 × faster [1.95, 2.05]", said
        first = self.browser.run(
            "document.querySelector('.verdict').compareDocumentPosition("
            "document.querySelector('.figures')) & Node.DOCUMENT_POSITION_FOLLOWING")
        assert first, "figures stand before it"
        end = self.browser.run("document.querySelector('.command code').textContent")
        assert end == f"hone session cancel {KNOWN[:12]} --server …", end

    def case_tasks_are_sorted_by_their_heads(self):
        for width in (360, 1240):
            self.open(KNOWN, width=width)
            names = "[...document.querySelectorAll('li.task .name b')].map(e => e.textContent)"
            up = sorted(self.browser.run(names))
            for wanted, arrow in ((up, "↑"), (up[::-1], "↓")):
                self.browser.run("document.querySelector('[data-sort=task]').click()")
                assert self.browser.run(names) == wanted, self.browser.run(names)
                head = self.browser.run("document.querySelector('[aria-pressed=true]').textContent")
                assert head == "Task " + arrow, head
            self.browser.run("document.querySelector('[data-sort=tried]').click()")
            tried = [int(n) for n in self.browser.run(
                "[...document.querySelectorAll('li.task .trials')].map(e => e.firstChild.data)")]
            assert tried == sorted(tried, reverse=True) and len(tried) == 8, tried

    def case_candidates_are_sorted_by_their_heads(self):
        for width in (360, 1240):
            self.open(KNOWN, width=width)
            cells = "[...document.querySelectorAll('li.trial .{}')].map(e => e.textContent)"
            numbers = [int(n[1:]) for n in self.browser.run(cells.format("number"))]
            assert len(numbers) >= 60 and numbers == sorted(numbers, reverse=True), numbers
            head = "document.querySelector('[data-table=trials][data-sort={}]').click()"
            self.browser.run(head.format("time"))
            times = self.browser.run(cells.format("time"))
            # Each of the eight tasks ended at 2.5 ms; the seventeen that failed have no time and
            # stand last.
            timed = [float(t.removesuffix(" ms")) for t in times[:-17]]
            assert timed[:8] == [2.5] * 8 and timed[-1] > 2.5 and timed == sorted(timed), times
            assert times[-17:] == ["–"] * 17, times
            self.browser.run(head.format("outcome"))
            failed = self.browser.run(cells.format("outcome"))
            assert failed == sorted(failed) and "run crashed" in failed, failed
            # The other table keeps its order.
            pressed = self.browser.run("[...document.querySelectorAll('[aria-pressed=true]')]"
                                       ".map(e => e.textContent)")
            assert pressed == ["Share ↓", "Outcome ↑"], pressed

    def case_links_and_back_change_the_view(self):
        self.open()
        self.browser.run(f"document.querySelector('a[href=\"#/session/{KNOWN}\"]').click()")
        self.browser.until(f"document.documentElement?.dataset.drawn === '{KNOWN}'", "the session")
        assert self.browser.run("document.title") == "resnet18 · Hone farm"
        self.browser.run("history.back()")
        self.browser.until("document.documentElement.dataset.drawn === 'farm'", "the farm")

    def case_screenshots(self):
        """Both views, light and dark, wide and narrow: to be looked at."""
        if not self.screenshots:
            raise Skipped("no --screenshots FOLDER was given")
        for name, view in {"farm": "", "session": KNOWN}.items():
            for width in (360, 800, 1440):
                for dark in (False, True):
                    self.open(view, width=width, dark=dark)
                    self.shoot(f"{name}_{width}{'_dark' if dark else ''}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fixture", required=True)
    parser.add_argument("--results", type=pathlib.Path)
    parser.add_argument("--screenshots")
    args = parser.parse_args()
    cases = [name for name in dir(PageTest) if name.startswith("case_")]
    program = shutil.which("chromium")
    results = []
    fixture = subprocess.Popen([args.fixture], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    port = int(fixture.stdout.readline())
    # A helper of the browser may die a moment after it.
    with tempfile.TemporaryDirectory(prefix="hone-page-", ignore_cleanup_errors=True) as folder:
        browser = None
        try:
            for name in cases:
                started = time.monotonic()
                verdict, why = "passed", ""
                try:
                    if not program:
                        raise Skipped("there is no chromium; apt-get install chromium has it")
                    if browser is None:
                        browser = Browser(program, folder)
                    getattr(PageTest(browser, port, args.screenshots), name)()
                except Skipped as reason:
                    verdict, why = "skipped", str(reason)
                except Exception:  # pylint: disable=broad-except
                    verdict, why = "failed", traceback.format_exc()
                results.append((name.removeprefix("case_"), verdict, why))
                print(f"{verdict:8} {name.removeprefix('case_')} ({time.monotonic() - started:.1f} s) {why}")
        finally:
            if browser:
                browser.close()
            fixture.stdin.close()
            fixture.wait()
    write_results(args.results, results)
    return 1 if any(verdict == "failed" for _, verdict, _ in results) else 0


def write_results(path, results):
    if not path:
        return
    failures = sum(verdict == "failed" for _, verdict, _ in results)
    with open(path, "w", encoding="utf-8") as out:
        out.write(f'<testsuites tests="{len(results)}" failures="{failures}">\n'
                  f'<testsuite name="page" tests="{len(results)}" failures="{failures}">\n')
        for name, verdict, why in results:
            inside = {"passed": "", "failed": f"<failure message={quoteattr(why)}/>",
                      "skipped": f"<skipped message={quoteattr(why)}/>"}[verdict]
            out.write(f'<testcase name="{name}" status="run">{inside}</testcase>\n')
        out.write("</testsuite></testsuites>\n")


if __name__ == "__main__":
    sys.exit(main())
