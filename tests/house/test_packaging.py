"""What is shipped is whole, and what the papers beside it say is so."""

import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

import simlib
from support.examples import python_blocks

ROOT = Path(__file__).parents[2]
LEFT = shutil.ignore_patterns(
    ".*", "_build", "build", "dist", "executed", "__pycache__", "*.egg-info"
)
ENVIRONMENT = {key: value for key, value in os.environ.items() if "PYTHON" not in key}


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def run(*command, folder):
    """Run a command; return what it says, and fail with that if it fails."""
    told = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    command = [*map(str, command)]
    result = subprocess.run(command, cwd=folder, env=ENVIRONMENT, **told)
    assert result.returncode == 0, result.stdout
    return result.stdout


# The distributions


def build(kind, source, target):
    """Build an sdist or a wheel as pip does, with the setuptools that is here."""
    code = f"from setuptools.build_meta import *; build_{kind}({str(target)!r})"
    target.mkdir()
    run(sys.executable, "-c", code, folder=source)
    [file] = target.iterdir()
    return file


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    """The source distribution, unpacked."""
    folder = tmp_path_factory.mktemp("sdist")
    shutil.copytree(ROOT, folder / "checkout", ignore=LEFT)
    archive = build("sdist", folder / "checkout", folder / "dist")
    run(sys.executable, "-m", "tarfile", "-e", archive, folder, folder=folder)
    return folder / f"simlib-{simlib.__version__}"


@pytest.fixture(scope="module")
def wheel(sdist, tmp_path_factory):
    """A wheel made of the source distribution, as those are that users make."""
    folder = tmp_path_factory.mktemp("wheel")
    source = shutil.copytree(sdist, folder / "source")  # the build leaves files there
    return build("wheel", source, folder / "dist")


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory):
    """Return the Python of an environment with the wheel and what that requires.

    The latter is not installed, for which a network would be needed, but linked.
    """
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet")
    run(*pip, "--no-deps", "--no-index", "--no-compile", wheel, folder=folder)
    [site] = folder.glob("lib/python*/site-packages")
    [metadata] = site.glob("simlib-*.dist-info")
    for required in requirements(Distribution.at(metadata), extra="text"):
        for top in {Path(file).parts[0] for file in required.files} - {".."}:
            if not (site / top).exists():
                (site / top).symlink_to(required.locate_file(top))
    return python


def test_an_editable_install_is_found_from_the_folder_above_it(tmp_path):
    """Where the checkout is called simlib, and would pass for a namespace package."""
    shutil.copytree(ROOT, tmp_path / "simlib", ignore=LEFT)
    wheel = build("editable", tmp_path / "simlib", tmp_path / "dist")
    venv.create(tmp_path / "environment", symlinks=True)
    python = tmp_path / "environment" / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet")
    run(*pip, "--no-deps", "--no-index", wheel, folder=tmp_path)
    code = "import importlib.util; print(importlib.util.find_spec('simlib').origin)"
    found = Path(run(python, "-c", code, folder=tmp_path).strip())
    assert found == tmp_path / "simlib" / "simlib" / "__init__.py"


def requirements(dist, extra=""):
    """Yield the distributions that one requires, directly or not."""
    for text in dist.requires or ():
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
            required = distribution(requirement.name)
            assert requirement.specifier.contains(required.version, prereleases=True)
            yield required
            yield from requirements(required)


def library(names):
    """Return which of some paths belong to the library."""
    paths = map(Path, names)
    return {
        path.as_posix()
        for path in paths
        if path.parts[0] == "simlib" and path.suffix in (".py", ".pyi", ".typed")
    }


def test_sdist_and_wheel_are_the_library_alone(sdist, wheel):
    """No press and no study, no test and no page."""
    ours = library(path.relative_to(ROOT) for path in ROOT.glob("simlib/**/*"))
    source = {path.relative_to(sdist).as_posix() for path in sdist.glob("**/*")}
    papers = "LICENSE MANIFEST.in PKG-INFO README.md pyproject.toml setup.cfg"
    assert library(source) == ours
    others = {name.partition("/")[0] for name in source}
    assert others == {"simlib", "simlib.egg-info", *papers.split()}
    built = zipfile.ZipFile(wheel).namelist()
    assert library(built) == ours
    others = {name.partition("/")[0] for name in built}
    assert others == {"simlib", f"simlib-{simlib.__version__}.dist-info"}


@pytest.mark.slow
def test_the_wheel_runs_the_first_example_of_the_readme(environment, tmp_path):
    example, shown = python_blocks(read("README.md"))[0]
    example += "import simlib; print(simlib.__file__)"
    said = run(environment, "-c", example, folder=tmp_path).splitlines()
    assert said[:-1] == shown.splitlines()
    assert Path(said[-1]).is_relative_to(environment.parents[1])


# What is said beside the code


def test_one_version(wheel):
    assert re.fullmatch(r"\d+\.\d+\.\d+", simlib.__version__)
    assert wheel.name.startswith(f"simlib-{simlib.__version__}-")
    assert yaml.safe_load(read("CITATION.cff"))["version"] == simlib.__version__
    assert f"## {simlib.__version__}\n" in read("CHANGELOG.md")


def test_metadata(wheel):
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith("/METADATA")]
        lines = archive.read(name).decode().splitlines()
    links = {line for line in lines if line.startswith("Project-URL: ")}
    source = yaml.safe_load(read("CITATION.cff"))["repository-code"]
    assert f"Project-URL: Source, {source}" in links
    assert f"Project-URL: Changelog, {source}/blob/main/CHANGELOG.md" in links
    assert "Provides-Extra: text" in lines


def test_every_supported_python_is_tested():
    """Those of the workflow are those that pyproject.toml names."""
    text = read("pyproject.toml")
    named = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', text)
    workflow = yaml.safe_load(read(".github/workflows/ci.yml"))
    assert workflow["jobs"]["tests"]["strategy"]["matrix"]["python"] == named
    oldest = SpecifierSet(re.search(r'requires-python = "(.+)"', text)[1])
    assert [version for version in ("3.9", "3.10", "3.11") if version in oldest] == [
        named[0]
    ]
    assert f"(3, {named[0].removeprefix('3.')})" in read("Makefile")


def test_every_command_of_the_workflow_exists():
    jobs = yaml.safe_load(read(".github/workflows/ci.yml"))["jobs"]
    commands = [s["run"] for job in jobs.values() for s in job["steps"] if "run" in s]
    targets = [re.match(r"make (\w+) PYTHON=python$", c)[1] for c in commands]
    assert targets == ["test", "quick"]
    for target in targets:
        assert re.search(rf"^{target}\b.*:", read("Makefile"), re.MULTILINE)


# A method, as CONTRIBUTING.md adds one


@pytest.fixture
def toy(tmp_path):
    """A checkout with the method of CONTRIBUTING.md."""
    method, lines, test = (code for code, _ in python_blocks(read("CONTRIBUTING.md")))
    shutil.copytree(ROOT / "simlib", tmp_path / "simlib", ignore=LEFT)
    tests = tmp_path / "tests" / "approximation"
    shutil.copytree(ROOT / "tests" / "support", tmp_path / "tests" / "support")
    tests.mkdir()
    for name in ("test_methods.py", "test_plan.py"):
        shutil.copy(ROOT / "tests" / "approximation" / name, tests)
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path / "tests")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    package = tmp_path / "simlib" / "approximation"
    (package / "truncated.py").write_text(method, encoding="utf-8")
    (tests / "test_truncated.py").write_text(test, encoding="utf-8")
    registry = package / "methods.py"
    imported, entry = lines.splitlines(keepends=True)
    text = registry.read_text(encoding="utf-8")
    before = "from simlib.similarity.known import"
    for line, place in (imported, before), (entry, "}\nCOMPANION_METHODS"):
        assert text.count(place) == 1
        text = text.replace(place, line + place)
    registry.write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.slow
def test_the_method_of_contributing(toy):
    run(sys.executable, "-m", "ruff", "check", folder=toy)
    run(sys.executable, "-m", "ruff", "format", "--check", folder=toy)
    pytest_ = (sys.executable, "-m", "pytest", "-q", "-k", "truncated", "-p")
    said = run(*pytest_, "no:cacheprovider", folder=toy)
    assert int(re.search(r"(\d+) passed", said)[1]) > 30
    assert "failed" not in said
