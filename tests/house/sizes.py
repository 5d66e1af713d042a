"""How large the house is: ``python tests/house/sizes.py`` prints lines of code.

Lines of the library, the tools of the book and the tests are all lines of their files;
those of chapters are lines of code that are not empty, and are hidden where a tag folds
or removes them.
"""

from pathlib import Path

from press import Repository, read_chapter
from press.chapters import code_cells, tags

ROOT = Path(__file__).parents[2]
FOLDS = {"hide-input", "hide-cell", "remove-input", "remove-cell"}


def lines(folder: str) -> int:
    """Return the lines of the Python files of a folder."""
    files = (ROOT / folder).rglob("*.py")
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files)


def chapter(page: str) -> tuple[int, int]:
    """Return how many lines of code of a chapter are visible, and how many hidden."""
    found = [0, 0]
    for cell in code_cells(read_chapter(Repository.here().source(page))):
        code = [line for line in cell.source.splitlines() if line.strip()]
        found[bool(FOLDS.intersection(tags(cell)))] += len(code)
    return found[0], found[1]


def main() -> None:
    """Print all sizes."""
    print("visible  hidden  of the code of chapters")
    counts = {page: chapter(page) for page in Repository.here().pages()}
    counts["all chapters"] = tuple(map(sum, zip(*counts.values(), strict=True)))
    for page, (visible, hidden) in counts.items():
        if visible + hidden:
            print(f"{visible:7}  {hidden:6}  {page}")
    for folder in ("simlib", "book/press", "book/study", "book/claims", "tests"):
        print(f"{lines(folder):7}          {folder}")


if __name__ == "__main__":
    main()
