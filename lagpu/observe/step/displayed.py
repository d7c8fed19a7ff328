"""What `step` yields: a record that shows itself as text and as a picture."""

from __future__ import annotations

from lagpu.observe.step.drawing import framed
from lagpu.observe.step.state import StepRecord
from lagpu.observe.step.text import told

__all__ = ["Step"]


class Step(StepRecord):
    """The program after one statement.

    Attributes
    ----------
    number : int
        Of the statement, from 1.
    level : int
        Iteration of the enclosing `loop`, from 0; -1 outside of one.
    formula : str
        The statement as mathematics, with the author's names.
    source : str
        The statement as it is written, on one line; empty if its source cannot be read.
    code : CodeType or None
        The function it stands in.
    file : str
        Where that is written.
    line, last_line : int
        Of the statement.
    output : str
        Name of what it wrote.
    vectors, before : dict of str to State
        Every vector in sight by its name, after the statement and before it.
    scalars : dict of str to number or None
        Every `Scalar` in sight; None if it is empty.
    matrices : dict of str to Matrix
        Every matrix in sight; of a selection the matrix that it was before the statement.
    mask : Masking or None
        The mask.
    product : Multiplied or None
        The operands, if the statement is a product of a matrix and a vector.
    """

    def __repr__(self) -> str:
        return told(self)

    def _repr_html_(self) -> str:
        return framed(self)
