"""Drive the page of a training in Chromium, from its first event to after its end.

Usage: page.py CODEA1 TABLE [SCREENSHOTS]

It trains the run "ci" in the current directory with the program CODEA1, writes the
table of the training to TABLE, and fails where the page fails its user. With
SCREENSHOTS, it saves pictures of the views there.
"""

import pathlib
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect, sync_playwright

PATIENCE = 120  # seconds, for a slow machine; no step needs them
STEPS = 12  # enough for the training to go on while a server beside it is stopped and started again
VIEWS = ["training", "pipeline", "book", "group", "group/s000001-q0000", "run"]
# What a browser says about a server that is stopped on purpose.
STOPPED = ("ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_CONNECTION_RESET", "ERR_EMPTY_RESPONSE")


class Program:
    """A codea1 process, and the address of its page."""

    def __init__(self, codea1, *args, stdout=None):
        self.stderr = tempfile.NamedTemporaryFile(suffix=".log")
        self.process = subprocess.Popen([codea1, *args], stdout=stdout, stderr=self.stderr)

    def log(self):
        return pathlib.Path(self.stderr.name).read_text(errors="replace")

    def url(self):
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            found = re.search(r"^page +(http://\S+)$", self.log(), re.MULTILINE)
            if found:
                return found[1]
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        raise SystemExit("no page:\n" + self.log())

    def kill(self):
        self.process.kill()
        self.process.wait()


def watch(page, problems):
    """Collect what a page must never do."""
    page.on("pageerror", lambda error: problems.append(f"exception: {error}"))

    def console(message):
        if message.type in ("error", "warning") and not any(text in message.text for text in STOPPED):
            problems.append(f"console: {message.text}")

    def request(r):
        if not r.url.startswith(("http://127.0.0.1:", "blob:", "file:")):
            problems.append(f"request: {r.url}")

    page.on("console", console)
    page.on("request", request)


def free_address():
    """An address below the ports that connections get, one of which could take it."""
    while True:
        address = ("127.0.0.1", random.randrange(20000, 32000))
        with socket.socket() as s:
            if s.connect_ex(address) != 0:
                return "%s:%d" % address


def rows(page):
    return int(page.locator("[data-chart=reward]").get_attribute("data-rows") or 0)


def until(what, held):
    deadline = time.monotonic() + PATIENCE
    while not held():
        if time.monotonic() > deadline:
            raise SystemExit(f"never: {what}")
        time.sleep(0.1)


def examine(page, where, problems, barriers):
    """Ask axe for barriers, and look for a page that is wider than its window."""
    for violation in Axe().run(page).response["violations"] if barriers else []:
        if violation["impact"] in ("serious", "critical"):
            nodes = "; ".join(node["html"][:120] for node in violation["nodes"][:3])
            problems.append(f"axe, {where}: {violation['id']}: {violation['help']}: {nodes}")
    if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
        problems.append(f"{where}: the page is wider than its window")


def main(codea1, table, screenshots=None):
    problems = []
    expect.set_options(timeout=PATIENCE * 1000)
    with sync_playwright() as playwright, open(table, "w") as out:
        chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        browser.new_page().close()  # what a browser loads first takes seconds on a slow disk
        training = Program(codea1, "train", "--name", "ci", "--steps", str(STEPS), "--eval-problems", "20", stdout=out)
        started = []
        try:
            page = browser.new_page(viewport={"width": 1360, "height": 900})
            watch(page, problems)
            page.goto(training.url())

            # A second server of the same page, beside the training.
            beside = Program(codea1, "dashboard", "--run", "ci", "--dashboard-address", free_address())
            started.append(beside)
            address = beside.url()
            other = browser.new_page(viewport={"width": 1360, "height": 900})
            watch(other, problems)
            other.goto(address)
            expect(other.locator("#connection.live")).to_be_visible()

            # The stream survives a restart of its server.
            beside.kill()
            expect(other.locator("#connection.lost")).to_be_visible()
            again = Program(codea1, "dashboard", "--run", "ci", "--dashboard-address", address.split("/")[2])
            started.append(again)
            expect(other.locator("#connection.live")).to_be_visible()

            # The charts move, without a reload of the page.
            until("a first step in the charts", lambda: rows(page) > 0)

            # A group opens from a link, also with the keyboard.
            page.get_by_role("link", name="Groups").click()
            page.locator("#group_body tbody a[href^='#/group/']").first.focus()
            page.keyboard.press("Enter")
            expect(page.locator(".answer").first).to_be_visible()
            expect(page.locator(".matrix tbody tr").first).to_be_visible()

            # The book is searched.
            page.get_by_role("link", name="Mistake Book").click()
            test = page.locator("#book_tests .test").first
            expect(test).to_be_visible()
            question = test.locator("summary .note").text_content()
            page.get_by_role("searchbox").fill(question.upper())
            expect(page.locator("#book_summary")).not_to_contain_text("the first")
            expect(page.locator("#book_tests .test").first).to_contain_text(question)
            page.locator("#book_tests .test summary").first.click()
            expect(page.locator("#book_tests .changes a").first).to_be_visible()

            # The end is said, and the page stays.
            expect(page.locator("#end")).to_contain_text("Last event: run.finished")
            if training.process.wait(PATIENCE) != 0:
                raise SystemExit("the training failed:\n" + training.log())
            expect(page.locator("#connection.ended")).to_be_visible()
            expect(other.locator("#end")).to_contain_text("report at")
            page.get_by_role("link", name="Training").click()
            until("all steps in the charts", lambda: rows(page) == STEPS)
            until("all steps in the charts after the restart", lambda: rows(other) == STEPS)

            # The server beside the training shows the log from now on.
            url = address + "#/group/s000001-q0000"
            until("a group from the log", lambda: (other.goto(url), other.reload(), other.wait_for_timeout(1000), other.locator(".answer").count())[-1] > 0)

            # Two runs are laid over one another: a run of the directory, and a report.
            shutil.copytree("runs/ci", "runs/copy", ignore=shutil.ignore_patterns("checkpoints", "nats", "start", "outbox"))
            other.goto(address + "#/training")
            other.reload()
            other.locator("#overlay option[value=copy]").wait_for(state="attached")
            other.locator("#overlay").select_option("copy")
            expect(other.locator("[data-chart=reward] .u-legend")).to_contain_text("copy: Code LLM")
            other.locator("#overlay_file").set_input_files("runs/ci/report.html")
            expect(other.locator("#overlaid button")).to_have_count(2)
            with other.expect_download() as saved:
                other.get_by_role("button", name="Reward: save as CSV").click()
            lines = pathlib.Path(saved.value.path()).read_text().splitlines()
            if len(lines) != STEPS + 1 or lines[0].count(",") != 6:
                problems.append(f"CSV of three runs and {STEPS} steps: {lines}")
            with other.expect_download() as saved:
                other.get_by_role("button", name="Reward: save as PNG").click()
            if not pathlib.Path(saved.value.path()).read_bytes().startswith(b"\x89PNG"):
                problems.append("the PNG is none")

            # Every view, in both colours and on a phone, and the report from disk.
            report = pathlib.Path("runs/ci/report.html").resolve().as_uri()
            for name, base, scheme, width, height, hashes in [
                ("light", address, "light", 1360, 900, VIEWS), ("dark", address, "dark", 1360, 900, ["training", "pipeline", "group/s000001-q0000"]),
                ("phone", address, "light", 390, 844, VIEWS), ("report", report, "light", 1360, 900, ["run"]),
            ]:
                view = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
                watch(view, problems)
                for hash in hashes:
                    view.goto(f"{base}#/{hash}")
                    expect(view.locator("main > .view:not([hidden])")).to_be_visible()
                    expect(view.locator("#run")).to_have_text("ci")
                    expect(view.locator("#group_body .note", has_text="reading")).to_have_count(0)
                    examine(view, f"{name} {hash}", problems, barriers=name != "phone")
                    if screenshots:
                        view.screenshot(path=f"{screenshots}/{hash.replace('/', '-')}-{name}.png", full_page=True)
                if name == "light":
                    paint = view.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
                    print(f"first contentful paint after {paint:.0f} ms")
                view.close()
        finally:
            for program in [training, *started]:
                if program.process.poll() is None:
                    program.kill()
            browser.close()
            shutil.rmtree("runs/copy", ignore_errors=True)
    if problems:
        raise SystemExit("\n".join(problems))


if __name__ == "__main__":
    main(*sys.argv[1:])
