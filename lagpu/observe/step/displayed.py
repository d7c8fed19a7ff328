"""`Step`: the record of a statement that `step` yields, displayed as text and as a picture."""

from __future__ import annotations

from lagpu.observe.step.drawing import step_html
from lagpu.observe.step.state import StepRecord
from lagpu.observe.step.text import step_text


class Step(StepRecord):
    """The state of a program after one statement.

    Attributes
    ----------
    number : int
        Number of the statement, from 1.
    level : int
        Iteration of the enclosing `loop`, from 0; -1 outside of a loop.
    formula : str
        The statement as mathematics, with the author's names.
    source : str
        The source text of the statement, on one line; empty if it cannot be read.
    code : CodeType or None
        The function that contains the statement.
    file : str
        The file of the function.
    line, last_line : int
        The first and the last line of the statement.
    output : str
        Name of the object that the statement wrote.
    vectors, before : dict of str to State
        Every vector in scope by its name, after the statement and before it.
    scalars : dict of str to number or None
        Every `Scalar` in scope; None if it is empty.
    matrices : dict of str to Matrix
        Every matrix in scope; a selection as a matrix, from before the statement.
    mask : Masking or None
        The mask of the statement.
    product : Multiplied or None
        The operands, if the statement is a product of a matrix and a vector.
    """

    def __repr__(self) -> str:
        return step_text(self)

    def _repr_html_(self) -> str:
        return step_html(self)
