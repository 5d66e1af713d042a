"""How long the commands of the README take from a ready environment.

    python benchmarks/times.py

They run one after the other in a fresh clone of the last commit, with an environment of
its own, on a machine that should have nothing else to do; the seconds go to
``book/times.json``, which the colophon shows.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from press.kernel import machine

ROOT = Path(__file__).resolve().parents[1]
COMMANDS = ("make test", "make book", "make quick")


def main() -> None:
    git = ["git", "-C", str(ROOT), "rev-parse", "HEAD"]
    commit = subprocess.run(git, check=True, capture_output=True, text=True).stdout
    times = {
        "commit": commit.strip(),
        "date": datetime.now(UTC).date().isoformat(),
        "data": bool(os.environ.get("SIMLIB_DATA")),
        "seconds": {},
        **machine(),
    }
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["git", "clone", "--quiet", ROOT, folder], check=True)

        def run(*command: str) -> None:
            asked = [*command, f"PYTHON={sys.executable}"]
            subprocess.run(asked, cwd=folder, check=True, stdout=sys.stderr)

        run("make", ".venv/ready")
        for command in COMMANDS:
            start = time.perf_counter()
            run(*command.split())
            times["seconds"][command] = round(time.perf_counter() - start)
            print(f"{command}: {times['seconds'][command]} s", flush=True)
            text = json.dumps(times, indent=1) + "\n"
            (ROOT / "book" / "times.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
