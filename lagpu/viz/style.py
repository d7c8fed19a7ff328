"""Colours, sizes and axes of all pictures, and `save`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lagpu.errors import BackendUnavailable, DomainMismatch, FileMissing, InvalidValue

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The palette of Okabe and Ito, and greys; distinct under every common form of colour-blindness.
BLUE, SKY, GREEN = "#0072B2", "#56B4E9", "#009E73"
ORANGE, VERMILION, YELLOW = "#E69F00", "#D55E00", "#F0E442"
INK, MUTED, GREY, PALE = "#222222", "#666666", "#BBBBBB", "#EEEEEE"

#: Size of labels in points: 14 pixels where a page shows a picture at its own size.
LABEL = 10.5

#: For text with names, in which a dollar sign begins no formula.
AS_IT_IS: dict[str, Any] = {"parse_math": False}


def pyplot() -> Any:
    """Return ``matplotlib.pyplot``.

    Raises
    ------
    BackendUnavailable
        If Matplotlib is not installed.
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise BackendUnavailable(
            f'viz: {error}. Install it with: pip install "lagpu[viz]"'
        ) from error
    return plt


def axes(ax: Axes | None, width: float, height: float) -> Axes:
    """Return `ax`, or new axes in a figure of this size in inches."""
    if ax is None:
        _, ax = pyplot().subplots(figsize=(width, height), layout="constrained")
    if not hasattr(ax, "add_patch"):
        raise DomainMismatch(f"viz: ax is {type(ax).__name__}, not Axes. Use plt.subplots().")
    return ax


def refuse_larger(what: str, found: int, most: int, unit: str, remedy: str) -> None:
    """Raise if an object is too large for a picture.

    Raises
    ------
    InvalidValue
        ``viz.graph: 4,096 vertices > 500. remedy``
    """
    if found > most:
        raise InvalidValue(f"viz.{what}: {found:,} {unit} > {most:,}. {remedy}")


def level_colours(count: int) -> list[Any]:
    """Return a colour for each of `count` levels, dark to light, distinct in grey too."""
    shades = pyplot().get_cmap("viridis")
    return [shades(x) for x in np.linspace(0.12, 0.97, max(count, 2))[:count]]


def save(picture: Axes | Figure, path: str | os.PathLike[str]) -> None:
    """Write a picture to a file; in an SVG text stays text, and equal pictures are equal files.

    Parameters
    ----------
    picture : Axes or Figure
        The result of a function of this module.
    path : path
        The file; the suffix decides the format: ``.svg``, ``.pdf``, ``.png``.

    Raises
    ------
    InvalidValue
        If Matplotlib does not know the format, or the file cannot be written.
    FileMissing
        If the file's folder does not exist.
    """
    figure: Any = picture if hasattr(picture, "savefig") else picture.get_figure()
    suffix = Path(path).suffix.removeprefix(".").lower()
    known = figure.canvas.get_supported_filetypes()
    if suffix not in known:
        raise InvalidValue(f"viz.save: {suffix!r} is not a format. Use one of {', '.join(known)}.")
    folder = Path(path).parent
    if not folder.is_dir():
        raise FileMissing(f"viz.save: there is no folder {folder}. Create it first.")
    from matplotlib import rc_context

    dated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    try:
        with rc_context({"svg.fonttype": "none", "svg.hashsalt": "lagpu"}):
            figure.savefig(path, bbox_inches="tight", dpi=160, metadata=dated.get(suffix))
    except OSError as error:
        raise InvalidValue(f"viz.save: {path}: {error.strerror or error}.") from error
