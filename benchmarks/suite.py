"""How long the whole test suite takes on this machine; with ``--record`` the figure goes into the results.

Run: ``python benchmarks/suite.py [--record]`` from the root of a clean checkout.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from time import monotonic

from kernelcast.cli.recording import record


def main() -> None:
    begun = monotonic()
    done = subprocess.run([sys.executable, "-m", "pytest"], stdout=subprocess.PIPE, text=True, check=False)
    seconds = monotonic() - begun
    summary = done.stdout.splitlines()[-1] if done.stdout else ""
    print(f"{seconds:.1f} s: {summary}")
    passed = re.search(r"(\d+) passed", summary)
    if done.returncode or passed is None:
        print("nothing is recorded of a suite that fails", file=sys.stderr)
        sys.exit(done.returncode or 1)
    record(
        "python benchmarks/suite.py",
        Path(),
        lambda made: [
            made.record("tests.seconds", seconds, "s", noise=f"one run, {passed[1]} tests, machine shared")
        ],
        wanted="--record" in sys.argv[1:],
    )


if __name__ == "__main__":
    main()
