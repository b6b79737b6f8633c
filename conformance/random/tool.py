"""Runs of the `tilewright` program."""

import re
import subprocess
from dataclasses import dataclass


@dataclass
class Answer:
    """What a run said; `status` is ok, refused, internal, crashed or timed out."""

    status: str
    out: str
    err: str

    def reason(self):
        """The first line of the message, without names and numbers, for grouping."""
        lines = [line for line in self.err.splitlines() if line.strip()]
        first = next((line for line in lines if line.startswith("error")), "")
        first = first or next((line for line in lines if "panicked" in line), "no message")
        return re.sub(r"\d+", "N", re.sub(r"`[^`]*`", "`_`", first))[:100]


def run(program, arguments, *, stdin=None, timeout=20.0):
    try:
        done = subprocess.run(
            [str(program), *map(str, arguments)],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
            errors="replace",
        )
    except subprocess.TimeoutExpired:
        return Answer("timed out", "", "")
    if done.returncode == 0:
        status = "ok"
    elif done.returncode == 2:
        internal = "this is a bug in tilewright" in done.stderr
        status = "internal" if internal else "refused"
    else:
        status = "crashed"
    return Answer(status, done.stdout, done.stderr)


def stages(out):
    """The modules that `--print-after-all` prints, as (what ran, text)."""
    found = []
    for part in re.split(r"^# after ", out, flags=re.M)[1:]:
        what, _, text = part.partition("\nfrom tvm.script import ir as I\n")
        found.append((what, "from tvm.script import ir as I\n" + text))
    return found
