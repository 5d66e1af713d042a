"""What `make` does before it does anything, with Pythons that only pretend."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(
    shutil.which("make") is None or os.name != "posix", reason="needs make and sh"
)

# It tells another version and place, and writes down what else it is asked. As the
# Python of an environment, or asked to make one, it installs nothing.
PYTHON = """\
#!/bin/sh
if [ "$1" = -c ]; then
  case "$2" in *version_info*) ;; *) exit 0 ;; esac
  exec {real} -c '
import sys
sys.version_info, sys.base_prefix = ({version}, "final", 0), "{prefix}"
exec(sys.argv[1])' "$2"
fi
echo "{name} $@" >> {log}
if [ "$2" = venv ]; then
  for folder; do :; done
  if [ "$3" = --clear ]; then rm -r "$folder"; fi
  mkdir -p "$folder/bin"
  touch "$folder/pyvenv.cfg"
  cp "$0" "$folder/bin/python"
fi
if [ -e {broken} ] && [ "$2" = pip ]; then exit 1; fi
exit 0
"""


class Checkout:
    """A folder with the Makefile, and the commands that were given to its Pythons."""

    def __init__(self, folder):
        self.folder, self.log = folder / "a checkout", folder / "log"
        self.broken = folder / "broken"
        (self.folder / "book").mkdir(parents=True)
        shutil.copy(ROOT / "Makefile", self.folder)
        for name in ("requirements.lock", "pyproject.toml", "book/pyproject.toml"):
            (self.folder / name).touch()
            os.utime(self.folder / name, (1, 1))

    def python(self, name, *version, prefix="/somewhere"):
        """Make a Python; return its path."""
        path = self.folder.parent / name
        text = PYTHON.format(
            real=sys.executable,
            version=", ".join(map(str, version)),
            prefix=prefix,
            name=name,
            log=self.log,
            broken=self.broken,
        )
        path.write_text(text)
        path.chmod(0o755)
        return path

    def make(self, *arguments, goal=".venv/ready"):
        """Run make; return its exit status, what it says, and the environments made."""
        self.log.write_text("")
        result = subprocess.run(
            ["make", "--no-print-directory", goal, *arguments],
            cwd=self.folder,
            capture_output=True,
            text=True,
            env={"PATH": os.environ["PATH"]},
        )
        told = self.log.read_text().splitlines()
        made = [line for line in told if " -m venv " in line]
        return result.returncode, result.stderr, made

    @property
    def ready(self):
        return (self.folder / ".venv" / "ready").exists()


@pytest.fixture
def checkout(tmp_path):
    return Checkout(tmp_path)


@pytest.mark.parametrize("goal", ["test", "book", "quick", "full", "lock"])
@pytest.mark.parametrize("version", [(3, 10, 13), (2, 7, 18)])
def test_an_old_python_is_refused_in_one_line(checkout, goal, version):
    old = checkout.python("old", *version)
    status, message, made = checkout.make(f"PYTHON={old}", goal=goal)
    assert status != 0
    assert made == []
    assert not (checkout.folder / ".venv").exists()
    [line] = message.splitlines()
    number = ".".join(map(str, version))
    assert f"needs Python 3.11 or later, and {old} is {number}." in line
    assert f"make PYTHON=python3.12 {goal}" in line


def test_what_does_not_start_is_refused_in_one_line(checkout):
    for python in (checkout.folder / "nothing", shutil.which("false")):
        status, message, _ = checkout.make(f"PYTHON={python}", goal="test")
        assert status != 0
        [line] = message.splitlines()
        assert f"{python} does not start" in line
    assert not (checkout.folder / ".venv").exists()


def test_cleaning_needs_no_python(checkout):
    status, message, _ = checkout.make("PYTHON=nothing", goal="clean")
    assert (status, message) == (0, "")


def test_an_environment_is_made_once(checkout):
    python = checkout.python("new", 3, 12, 1)
    assert checkout.make(f"PYTHON={python}") == (0, "", ["new -m venv .venv"])
    assert checkout.ready
    assert checkout.make(f"PYTHON={python}") == (0, "", [])


@pytest.mark.parametrize(
    "other", [((3, 13, 0), "/somewhere"), ((3, 12, 1), "/somewhere/else")]
)
def test_the_environment_of_another_python_is_made_anew(checkout, other):
    version, prefix = other
    first = checkout.python("first", 3, 12, 1)
    second = checkout.python("second", *version, prefix=prefix)
    checkout.make(f"PYTHON={first}")
    (checkout.folder / ".venv" / "leftover").touch()
    made = checkout.make(f"PYTHON={second}")
    assert made == (0, "", ["second -m venv --clear .venv"])
    assert not (checkout.folder / ".venv" / "leftover").exists()
    assert checkout.make(f"PYTHON={second}") == (0, "", [])


def test_the_environment_of_a_moved_checkout_is_made_anew(checkout):
    """Its scripts hold absolute paths."""
    python = checkout.python("new", 3, 12, 1)
    checkout.make(f"PYTHON={python}")
    checkout.folder = checkout.folder.rename(checkout.folder.parent / "moved")
    made = checkout.make(f"PYTHON={python}")
    assert made == (0, "", ["new -m venv --clear .venv"])


def test_an_environment_that_was_not_finished_is_made_anew(checkout):
    python = checkout.python("new", 3, 12, 1)
    checkout.broken.touch()
    assert checkout.make(f"PYTHON={python}")[0] != 0
    assert not checkout.ready
    checkout.broken.unlink()
    made = checkout.make(f"PYTHON={python}")
    assert made == (0, "", ["new -m venv --clear .venv"])
    assert checkout.ready


def test_a_new_lock_is_installed_into_the_environment_there_is(checkout):
    python = checkout.python("new", 3, 12, 1)
    checkout.make(f"PYTHON={python}")
    os.utime(checkout.folder / "requirements.lock", (2**32, 2**32))
    assert checkout.make(f"PYTHON={python}")[::2] == (0, [])
    assert "pip --quiet" in checkout.log.read_text()
    checkout.broken.touch()
    assert checkout.make(f"PYTHON={python}")[0] != 0
    assert not checkout.ready


def test_nothing_that_is_no_environment_is_cleared(checkout):
    python = checkout.python("new", 3, 12, 1)
    (checkout.folder / "kept").mkdir()
    made = checkout.make(f"PYTHON={python}", "VENV=kept", goal="kept/ready")
    assert made == (0, "", ["new -m venv kept"])


# The other Python of continuous integration


@pytest.fixture
def pythons(tmp_path, monkeypatch):
    """Put Pythons on PATH, or into pyenv; they answer, or do not."""
    path, root = tmp_path / "bin", tmp_path / "pyenv"
    monkeypatch.setenv("PATH", f"{path}{os.pathsep}/usr/bin{os.pathsep}/bin")
    monkeypatch.setenv("PYENV_ROOT", str(root))

    def add(name, answer, status=0, version=None):
        folder = path if version is None else root / "versions" / version / "bin"
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / name
        file.write_text(f"#!/bin/sh\necho {answer}\nexit {status}\n")
        file.chmod(0o755)
        return file

    return add


def other_python():
    command = [sys.executable, ROOT / ".ci" / "other_python.py"]
    result = subprocess.run(command, capture_output=True, text=True)
    return result.stdout.strip(), result.stderr


def test_the_newest_other_python_that_starts(pythons):
    pythons("python3.70", "3 70 1 final")
    newest = pythons("python3.80", "3 80 0 final")
    pythons("python3.90", "pyenv: not found", status=127)
    pythons("python3.95", "3 95 0 beta")
    pythons("python3", "{} {} 99 final".format(*sys.version_info[:2]))
    pythons("python3.6-config", "3 99 0 final")
    found, log = other_python()
    assert found == str(newest)
    for name in ("python3.90", "python3.95"):
        assert name in log
    inside = pythons("python3.80", "3 80 1 final", version="3.80.1")
    assert other_python()[0] == str(inside)


def test_no_other_python(pythons, monkeypatch):
    pythons("python3.10", "3 10 1 final")
    pythons("python3", "{} {} 0 final".format(*sys.version_info[:2]))
    monkeypatch.setenv("PATH", os.environ["PATH"].split(os.pathsep)[0])
    assert other_python()[0] == ""
