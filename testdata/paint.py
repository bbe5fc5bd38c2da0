"""Opens the page of a finished run in a new Chromium and prints milliseconds as JSON.

Usage: paint.py CODEA1 RUN STEPS

It asks for the page when `codea1 dashboard --run RUN` has printed its address, and
again when that page has drawn its STEPS steps.
"""

import json
import re
import shutil
import subprocess
import sys
import time

from playwright.sync_api import sync_playwright

DRAWN = """new Promise((done) => {
  const timer = setInterval(() => {
    if (document.querySelector("[data-chart=reward]")?.dataset.rows !== "%s") return;
    clearInterval(timer);
    done(performance.now());
  }, 5);
})"""
PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime"


def main(codea1, run, steps):
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        browser.new_page().close()
        began = time.monotonic()
        server = subprocess.Popen([codea1, "dashboard", "--run", run, "--dashboard-address", "127.0.0.1:0"], stderr=subprocess.PIPE, text=True)
        try:
            url = next(found[1] for found in (re.search(r"^page +(http://\S+)$", line) for line in server.stderr) if found)
            figures = {"address-ms": 1000 * (time.monotonic() - began)}
            for prefix in ["", "again-"]:
                page = browser.new_context().new_page()
                page.goto(url)
                figures[prefix + "drawn-ms"] = page.evaluate(DRAWN % steps)
                figures[prefix + "paint-ms"] = page.evaluate(PAINT)
        finally:
            server.kill()
            browser.close()
    print(json.dumps(figures))


if __name__ == "__main__":
    main(*sys.argv[1:])
