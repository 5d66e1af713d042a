"""Print the newest other Python on which the tests can run: on PATH, or under pyenv.

Other than the minor version that runs this; final, from 3.11 on, and able to make an
environment. What is passed over, and why, goes to the standard error.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

OLDEST = (3, 11)
ASK = (
    "import ensurepip, lzma, sqlite3, ssl, sys, venv; "
    "print(*sys.version_info[:3], sys.version_info.releaselevel)"
)


def candidates() -> Iterator[Path]:
    """Yield all that is called python3 or python3.N, each file once."""
    folders = [Path(folder) for folder in os.get_exec_path()]
    folders += sorted(pyenv_root().glob("versions/*/bin"))
    seen = set()
    for folder in folders:
        for path in sorted(folder.glob("python3*")):
            if re.fullmatch(r"python3(\.\d+)?", path.name):
                if path.resolve() not in seen:
                    yield path
                seen.add(path.resolve())


def pyenv_root() -> Path:
    """Return the folder in which pyenv, if there is one, keeps its Pythons."""
    try:
        command = ["pyenv", "root"]
        result = subprocess.run(command, capture_output=True, text=True, check=True)
        return Path(result.stdout.strip())
    except (OSError, subprocess.CalledProcessError):
        return Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")


def version(path: Path) -> tuple[int, ...] | None:
    """Return the version of a Python, None if it does not start or is no release."""
    try:
        result = subprocess.run(
            [path, "-c", ASK], capture_output=True, text=True, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    words = result.stdout.split()
    if result.returncode or len(words) != 4 or words[3] != "final":
        return None
    return tuple(map(int, words[:3]))


def main() -> int:
    """Print the path, or exit with 1 if there is none."""
    found = {}
    for path in candidates():
        number = version(path)
        if number is None:
            print(
                f"passed over, for it fails or is no release: {path}", file=sys.stderr
            )
        elif number >= OLDEST and number[:2] != sys.version_info[:2]:
            found.setdefault(number, path)
    if not found:
        return 1
    print(found[max(found)])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
