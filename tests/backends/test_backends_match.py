"""What the matchers of loops share with the kernels."""

from lagpu.backends import match
from lagpu.backends.gpu.kernels import constant


def test_assignments_have_the_numbers_of_the_kernels():
    numbers = [constant(name) for name in ("kDepth", "kValue", "kNumber")]
    assert numbers == [match.DEPTH, match.VALUE, match.NUMBER]
