#!/usr/bin/env python3
"""Uses the page that runs the command, as a person would: in a headless Chromium, every example.

    docs/site/check.py [SITE] [--tilewright BINARY] [--screenshots FOLDER]

SITE is what `build.py` wrote. With a binary, what the page shows has to be what the binary prints.
"""

import argparse
import http.server
import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from urllib.parse import quote

ROOT = Path(__file__).resolve().parent.parent.parent
WAIT_S = 180

# Runs each example of each mode in the page, which lies in a frame, and sends what it shows.
DRIVER = """<!doctype html><title>check</title><iframe id="frame" width="1200" height="900"></iframe>
<script type="module">
const frame = document.getElementById("frame");
const pause = () => new Promise((done) => setTimeout(done, 50));
const open = async (address) => {
  frame.src = address;
  await new Promise((done) => frame.addEventListener("load", done, { once: true }));
};
const page = () => frame.contentDocument;
const shown = (id) => (page().getElementById(id).hidden ? "" : page().getElementById(id).textContent);
const results = [];
await open("playground/index.html");
const ready = async () => {
  while (page().querySelector("form").getAttribute("aria-busy") !== "false") await pause();
};
await ready();
for (const tab of page().querySelectorAll("nav button")) {
  tab.click();
  await ready();
  const choice = page().getElementById("example");
  for (const { value } of [...choice.options]) {
    choice.value = value;
    choice.dispatchEvent(new Event("change"));
    await ready();
    const mode = tab.value;
    const inputs = Object.fromEntries([...page().querySelectorAll("textarea")].map((t) => [t.name, t.value]));
    page().querySelector("form").requestSubmit();
    while (page().getElementById("state").textContent.startsWith("running")) await pause();
    const written = page().getElementById("page");
    results.push({
      mode, example: value, inputs,
      command: shown("command"), output: shown("output"), errors: shown("errors"),
      state: page().getElementById("state").textContent, page: written.hidden ? 0 : written.srcdoc.length,
      fits: page().documentElement.scrollWidth <= frame.clientWidth,
    });
  }
}
frame.width = 400;
await pause();
results.push({ narrow: page().documentElement.scrollWidth <= frame.clientWidth });
await fetch("/results", { method: "POST", body: JSON.stringify(results) });
</script>
"""

# The exit code of each kind of example: what two functions answer that differ is 1.
DIFFERS = ("the second without the last column", "the same?")


def serve(site, received):
    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments):
            super().__init__(*arguments, directory=site)

        def do_GET(self):
            if self.path != "/check.html":
                return super().do_GET()
            self.answer(DRIVER.encode())

        def do_POST(self):
            received.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.answer(b"")

        def answer(self, content):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


def chromium(*options):
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        print("there is no Chromium", file=sys.stderr)
        sys.exit(2)
    # A page of a folder that this program serves; as root there is no sandbox.
    return [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", *options]


def printed(binary, result):
    """What the binary prints for the command of a result."""
    with tempfile.TemporaryDirectory() as folder:
        names = {"module": "function", "steps": "schedule"}
        for name, content in result["inputs"].items():
            (Path(folder) / f"{names.get(name, name)}.py").write_text(content)
        shutil.copyfile(ROOT / "examples/digits/digits.onnx", Path(folder) / "model.onnx")
        command = result["command"].replace("tilewright", str(binary), 1)
        return subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True)


def faults(results, binary):
    """What is wrong with the results, a line each."""
    *examples, last = results
    if not last["narrow"]:
        yield "the page does not fit a width of 400"
    for result in examples:
        name = f"{result['mode']}, {result['example']}"
        code = result["state"].split(",")[0].removeprefix("exit code ")
        if code not in ("0", "1") or (code == "1" and not name.endswith(DIFFERS)):
            yield f"{name}: {result['state']}: {result['errors']}"
        if not result["fits"]:
            yield f"{name}: the page does not fit its width"
        if "--html" in result["command"] and not result["page"]:
            yield f"{name}: no page was written"
        if binary is not None and result["mode"] != "plan":
            native = printed(binary, result)
            if str(native.returncode) != code or native.stdout != result["output"]:
                yield f"{name}: the binary prints something else: {native.returncode}\n{native.stdout}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("site", nargs="?", type=Path, default=ROOT / "target/site")
    parser.add_argument("--tilewright", type=lambda path: Path(path).resolve())
    parser.add_argument("--screenshots", type=Path)
    arguments = parser.parse_args()
    received = []
    address = serve(arguments.site, received)
    # Its helpers may still write while it ends.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = subprocess.Popen(
            chromium(f"--user-data-dir={profile}", "--remote-debugging-port=0", f"{address}/check.html"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        end = time.monotonic() + WAIT_S
        while not received and time.monotonic() < end and browser.poll() is None:
            time.sleep(0.2)
        browser.kill()
        browser.wait()
    if not received:
        print(f"the page sent no results within {WAIT_S} s", file=sys.stderr)
        sys.exit(1)
    wrong = list(faults(received[0], arguments.tilewright))
    for line in wrong:
        print(line)
    print(f"{len(received[0]) - 1} examples, {len(wrong)} faults")
    if arguments.screenshots is not None:
        arguments.screenshots.mkdir(parents=True, exist_ok=True)
        first = f"{address}/playground/index.html#schedule/{quote('A matrix product of 127 in tiles of 32')}"
        for width in (400, 1200):
            picture = arguments.screenshots / f"playground-{width}.png"
            options = [f"--window-size={width},1000", "--virtual-time-budget=5000", f"--screenshot={picture}", first]
            subprocess.run(chromium(*options), stderr=subprocess.DEVNULL, check=True)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
