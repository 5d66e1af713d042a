"""Draw the pictures under the slider of the chapter on geodesic distances.

Distances from one place of the bunny to all others, approximated from those between
more and more landmarks: `python benchmarks/slider.py` writes
book/_static/landmarks.html.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from mpl_toolkits.mplot3d.art3d import Poly3DCollection

from press import frames
from simlib.biharmonic import (
    biharmonic_operator,
    heat_geodesics,
    interpolation,
    mesh_laplacian,
)
from simlib.landmarks import uniform
from study.datasets import load_bunny

PAGE = Path(__file__).parents[1] / "book" / "_static" / "landmarks.html"
ALT = """The Stanford bunny with bands of equal distance from the tip of an ear.
With few landmarks the bands are far off; as landmarks are added they settle."""
SIZES = (5, 10, 20, 50, 100, 200, 500, 1000)
BANDS = 16
SIDE = np.radians([12, -15])  # elevation and azimuth of the viewer


def draw(mesh, share, landmarks, title):
    """Return bands of a function from 0 to 1 on the side of a mesh that is seen."""
    e, a = SIDE
    viewer = np.array([np.cos(e) * np.sin(a), np.sin(e), np.cos(e) * np.cos(a)])
    corners = mesh.vertices[mesh.faces]
    across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    facing = across / np.linalg.norm(across, axis=1, keepdims=True) @ viewer
    band = np.floor(np.clip(share[mesh.faces].mean(axis=1), 0, 1) * BANDS)
    light = (0.5 + 0.5 * np.clip(facing, 0, 1)) * np.where(band % 2, 0.75, 1)
    colours = plt.cm.cividis(0.15 + 0.85 * band / BANDS)[:, :3] * light[:, None]
    fig = plt.figure(figsize=(6, 4.4))
    ax = fig.add_axes((0, 0, 1, 0.94), projection="3d", computed_zorder=False)
    seen = facing > 0
    ax.add_collection3d(
        Poly3DCollection(
            corners[seen],
            facecolors=colours[seen],
            linewidths=0,
            antialiaseds=False,
            clip_on=False,  # the tail is outside the square of the axes
        )
    )
    near = np.zeros(len(mesh.vertices), dtype=bool)
    near[mesh.faces[facing > 0.3]] = True
    dots = mesh.vertices[landmarks[near[landmarks]]] + 0.01 * viewer
    size = 60 / np.sqrt(len(landmarks))
    look = {"color": "white", "edgecolor": "black", "depthshade": False}
    ax.scatter(*dots.T, s=size, clip_on=False, **look)
    low, high = mesh.vertices.min(axis=0), mesh.vertices.max(axis=0)
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), zlim=(low[2], high[2]))
    ax.set_box_aspect(high - low, zoom=1.35)
    ax.view_init(elev=12, azim=-15, vertical_axis="y")
    ax.set_axis_off()
    fig.suptitle(title)
    return fig


def main():
    """Draw all pictures."""
    mesh = load_bunny()
    order = uniform(len(mesh.vertices), SIZES[-1], rng=0)
    start = int(np.argmax(mesh.vertices[:, 1]))  # the tip of an ear
    D = heat_geodesics(mesh.vertices, mesh.faces, np.append(order, start))
    wanted = D[:, -1]
    W = D[order, :-1]
    W = (W + W.T) / 2
    M = biharmonic_operator(*mesh_laplacian(mesh.vertices, mesh.faces))
    pictures = {}
    for size in SIZES:
        P = interpolation(M, order[:size])
        found = P @ (W[:size, :size] @ P[start])
        error = np.linalg.norm(found - wanted) / np.linalg.norm(wanted)
        title = (
            f"{size} landmarks, {size * (size + 1) // 2} distances: error {error:.2g}"
        )
        print(title)
        pictures[size] = draw(mesh, found / wanted.max(), order[:size], title)
    page = frames(pictures, name="landmarks", alt=ALT.replace("\n", " "))
    PAGE.write_text(page.data, encoding="utf-8")


if __name__ == "__main__":
    main()
