"""A kernel for one chapter: traced, and without its user's own settings."""

import os
import platform
import re
import shutil
import sys
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import tracer
from .repository import Repository

if TYPE_CHECKING:
    from nbformat import NotebookNode

# What a user sets for sessions of their own: filters, a start, a way to draw, kernels.
PERSONAL = {"PYTHONWARNINGS", "PYTHONSTARTUP", "MPLBACKEND", "MATPLOTLIBRC"}
PERSONAL |= {"JUPYTER_PATH"}
_TRACE = "get_ipython().ast_transformers.append(__ran__)"


async def run(
    notebook: "NotebookNode", folder: Path, repository: Repository, title: str = ""
) -> None:
    """Execute the cells of a notebook in place; raise at the first that fails.

    What ran is told in the file ``log`` of the folder; see `press.tracer`.
    """
    from jupyter_client.kernelspec import KernelSpecManager
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient
    from tqdm import tqdm

    kernels = KernelSpecManager(kernel_dirs=[])  # none but that of this Python
    manager = AsyncKernelManager(kernel_spec_manager=kernels)
    options = [f"--IPKernelApp.exec_lines={_TRACE}"]
    client = NotebookClient(notebook, manager, extra_arguments=options)
    client.iopub_timeout = 600  # seconds; another chapter may be compared meanwhile
    done, env = False, environment(folder, repository)
    try:
        await client.async_start_new_kernel(cwd=str(repository.root), env=env)
        await client.async_start_new_kernel_client()
        cells = tqdm(notebook.cells, title, leave=False, disable=None)
        for index, cell in enumerate(cells):
            await client.async_execute_cell(cell, index)
        done = True
    finally:
        if client.kc:
            client.kc.stop_channels()
        await manager.shutdown_kernel(now=not done)


def environment(folder: Path, repository: Repository) -> dict[str, str]:
    """Return the variables of a kernel that is traced, with a folder of its own.

    Linear algebra gets one thread unless the environment says otherwise.
    """
    shutil.copyfile(tracer.__file__, folder / "sitecustomize.py")
    kept = {name: text for name, text in os.environ.items() if name not in PERSONAL}
    own = [folder, repository.root, repository.book]  # also where it is not installed
    path = [*map(str, own), *filter(None, [kept.get("PYTHONPATH")])]
    fonts = Path(sys.prefix, "matplotlib")  # made by make
    kept |= {"MPLCONFIGDIR": str(fonts)} if fonts.is_dir() else {}
    ours = {
        "IPYTHONDIR": str(folder / "ipython"),
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        "PYTHONPATH": os.pathsep.join(path),
        "PRESS_ROOT": str(repository.root),
        "PRESS_LOG": str(folder / "log"),
        "PRESS_DATA": repository.data,
    }
    return {"OPENBLAS_NUM_THREADS": "1"} | kept | ours


def machine() -> dict[str, Any]:
    """Return the processor and the versions that results may depend on."""
    cpu = platform.processor() or platform.machine()
    told = Path("/proc/cpuinfo")  # of Linux
    if told.exists() and (found := re.search("model name.*: (.*)", told.read_text())):
        cpu = found[1]
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "scipy": version("scipy"),
    }
