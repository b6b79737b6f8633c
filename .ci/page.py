#!/usr/bin/env python3
"""Uses the page of `plan --html` in a headless Chromium, by mouse and by keyboard, at two widths.

    .ci/page.py TILEWRIGHT [--screenshots FOLDER]

A script that is added to the page chooses calls and tensors and says what it found. The exit code is 1 where
something is missing. With `--screenshots`, pictures at both widths, light and dark, are left for people.
"""

import argparse
import html
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MODEL = ROOT / "examples/digits/digits.onnx"
WIDTHS = (400, 1200)

# What is done on the page; each line of the result is a name and whether it holds.
CHECKS = """
const found = {};
const check = (name, holds) => { found[name] = Boolean(holds); };
const key = (target, name) => target.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true }));
const fits = () => document.documentElement.scrollWidth <= window.innerWidth;
const terms = [...document.querySelectorAll("dl.about dt")].map((e) => e.textContent);
check("machine, threads, inputs and source of costs", ["Machine", "Threads", "Inputs", "Costs"].every((t) => terms.includes(t)));
check("inputs are numbers", /image: float32\\[\\d+,1,8,8\\]/.test(document.querySelector("dl.about").textContent));
check("it fits the width", fits());
const listed = document.querySelector("section table button[data-c]");
listed.focus();
listed.click();
check("a click opens the panel", !panel.hidden && document.activeElement === title);
check("it fits the width with the panel", fits());
check("it says why", body.querySelector(".why") && body.textContent.includes("whole model"));
check("it has index maps", body.textContent.includes("lambda i0"));
key(document, "Escape");
check("Escape closes it, and the focus is where it was", panel.hidden && document.activeElement === listed);
const call = document.querySelector("svg g[data-c]");
check("calls can be reached by Tab", call.tabIndex === 0 && call.getAttribute("aria-label"));
key(call, "Enter");
check("Enter opens a call", !panel.hidden && title.textContent.startsWith("Call "));
key(document, "Escape");
const tensors = [...document.querySelectorAll("svg g[data-t]")];
const padded = tensors.filter((tensor) => {
  key(tensor, " ");
  return !panel.hidden && title.textContent.startsWith("Tensor ") && body.querySelector("table.m td");
});
check("Space opens each tensor, with its cells", tensors.length > 0 && padded.length === tensors.length);
const pads = [...document.querySelectorAll("template")].map((t) => t.content.querySelector("td.p")).filter(Boolean);
const shown = pads.length ? document.body.appendChild(document.importNode(pads[0].closest("table"), true)) : null;
check("padding is hatched", !shown || getComputedStyle(shown.querySelector("td.p")).backgroundImage.includes("gradient"));
if (shown) shown.remove();
const slider = document.querySelector("input[data-zoom]");
slider.value = slider.max;
slider.dispatchEvent(new Event("input"));
check("a large drawing scrolls in its own box", fits());
const made = document.createElement("pre");
made.id = "checked";
made.textContent = JSON.stringify(found);
document.body.append(made);
"""


def chromium():
    """The program, by its names."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if shutil.which(name):
            return name
    sys.exit("page: there is no Chromium: apt-get install chromium")


def run(browser, page, width, *options):
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    command += [f"--window-size={width},1600", *options, page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=120).stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tilewright")
    parser.add_argument("--screenshots", type=Path, metavar="FOLDER")
    given = parser.parse_args()
    browser = chromium()
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        page, checked = Path(folder) / "plan.html", Path(folder) / "checked.html"
        command = [given.tilewright, "plan", MODEL, "--html", page]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        text = page.read_text(encoding="utf-8")
        checked.write_text(text.replace("</body>", f"<script>{CHECKS}</script></body>"), encoding="utf-8")
        for width in WIDTHS:
            dom = run(browser, checked, width, "--dump-dom")
            found = re.search(r'<pre id="checked">(.*?)</pre>', dom, re.S)
            if found is None:
                sys.exit(f"page: the checks did not end at {width} pixels")
            results = json.loads(html.unescape(found.group(1)))
            for name, holds in results.items():
                if not holds:
                    print(f"page: at {width} pixels: not so: {name}")
                wrong += not holds
            print(f"page: {width} pixels: {sum(results.values())} of {len(results)} hold")
            for scheme, number in (("light", 1), ("dark", 0)) if given.screenshots else ():
                given.screenshots.mkdir(parents=True, exist_ok=True)
                picture = given.screenshots.resolve() / f"plan-{width}-{scheme}.png"
                setting = f"--blink-settings=preferredColorScheme={number}"
                run(browser, page, width, setting, f"--screenshot={picture}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
