"""Pictures under a slider, computed beforehand: they move without a server."""

import base64
import hashlib
import html
import io
import json
from collections.abc import Mapping
from typing import Any

_PAGE = """\
<div class="frames {id}">
<img src="{first}" alt="{alt}">
<label hidden>{name} <input type="range" min="0" max="{most}" value="{at}" step="1">
<output>{label}</output></label>
<script type="application/json">{pictures}</script>
<script>
for (const box of document.querySelectorAll(".{id}")) {{
  const [img, label] = [box.querySelector("img"), box.querySelector("label")];
  const [input, output] = [label.querySelector("input"), label.querySelector("output")];
  const pictures = JSON.parse(box.querySelector("script").textContent);
  const show = () => {{
    const [text, source] = pictures[input.value];
    img.src = source;
    output.textContent = text;
    input.setAttribute("aria-valuetext", text);
  }};
  input.addEventListener("input", show);
  label.hidden = false;
  show();
}}
</script>
</div>
"""


def frames(
    pictures: Mapping[Any, Any],
    *,
    name: str,
    alt: str,
    first: Any = None,
    dpi: int = 110,
) -> Any:
    """Return pictures under a slider, as HTML that needs no network.

    Without JavaScript there is the first picture, and no slider.

    The `pictures` are figures of Matplotlib by label; they are closed. `name` is what
    the slider changes, `alt` what is seen, for who does not, and `first` the label of
    the picture that is seen first, the last if not given.
    """
    from IPython.display import HTML

    labels = [*pictures]
    if first not in labels and (first is not None or not labels):
        raise ValueError(f"there is no picture with the label {first!r}, of {labels}")
    at = len(labels) - 1 if first is None else labels.index(first)
    drawn = [(str(label), _source(figure, dpi)) for label, figure in pictures.items()]
    every = json.dumps(drawn).replace("<", r"\u003c")
    page = _PAGE.format(
        id=f"frames-{hashlib.sha256(every.encode()).hexdigest()[:8]}",
        first=drawn[at][1],
        at=at,
        alt=html.escape(alt),
        name=html.escape(name),
        label=html.escape(drawn[at][0]),
        most=len(drawn) - 1,
        pictures=every,
    )
    return HTML(page)


def _source(figure: Any, dpi: int) -> str:
    """Return a figure as an address that holds all of it, and close it."""
    import matplotlib.pyplot as plt

    file = io.BytesIO()
    figure.savefig(file, format="webp", dpi=dpi)
    plt.close(figure)
    return f"data:image/webp;base64,{base64.b64encode(file.getvalue()).decode()}"
