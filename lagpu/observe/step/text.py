"""A step as text: the value of each entry, a dot where there is none."""

from __future__ import annotations

from typing import Any

from lagpu.core.matrix import Matrix
from lagpu.core.vector import Vector
from lagpu.observe.step.state import State, StepRecord

_CELLS = 24  # of a vector on a line
_ROWS = 8  # of a matrix


def step_text(step: StepRecord) -> str:
    """Return the statement and a line for each vector, with an arrow at the written one.

    If the statement wrote a matrix, the first rows of that matrix follow.
    """
    where = f"level {step.level}, " if step.level >= 0 else ""
    lines = [f"step {step.number}: {where}{step.place}", f"  {step.formula}"]
    width = max(map(len, [*step.vectors, *step.scalars]), default=0)
    for name, state in step.vectors.items():
        lines.append(f"{_arrow(step, name)} {name:<{width}}  {_cells(state)}")
    for name, value in step.scalars.items():
        lines.append(f"{_arrow(step, name)} {name:<{width}}  {'.' if value is None else value}")
    if step.output in step.matrices:
        lines += _rows(step.output, step.matrices[step.output])
    return "\n".join(lines)


def _rows(name: str, A: Matrix) -> list[str]:
    """Return a line for each of the first rows of the written matrix."""
    states = [_state(A[k, :].new()) for k in range(min(A.nrows, _ROWS))]
    lines = [f"> {name}[{k}]  {_cells(state)}" for k, state in enumerate(states)]
    rest = A.nrows - len(lines)
    return [*lines, f"> ... {rest} more rows, {A.nvals} entries"] if rest else lines


def _state(v: Vector) -> State:
    return State(v.size, v.dtype, *v.to_coo())


def _arrow(step: StepRecord, name: str) -> str:
    return ">" if name == step.output else " "


def _cells(state: State) -> str:
    entries = state.to_dict()
    cells = [shown(entries[k]) if k in entries else "." for k in range(min(state.size, _CELLS))]
    width = max(map(len, cells), default=0)
    rest = state.size - len(cells)
    more = f"  ... {rest} more, {state.nvals} entries" if rest else ""
    return " ".join(f"{cell:>{width}}" for cell in cells) + more


def shown(value: Any) -> str:
    """Return a value in few characters: 1 and 0 for BOOL, whole numbers, or four digits."""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)


def fitting(value: Any) -> str:
    """Return a value for a cell: a float of two digits, or a power of ten, if it is longer."""
    word = shown(value)
    for digits in (3, 2):
        if isinstance(value, float) and len(word) > 4:
            word = f"{value:.{digits}g}"
    if isinstance(value, int) and len(word) > 6:
        word = f"{value:.1e}".replace("e+0", "e").replace("e+", "e")
    return word
