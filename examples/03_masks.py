"""Masks, accumulators and `replace`, and why an entry that is missing is not zero."""

from lagpu import FP64, INT32, Matrix, Vector, binary, explore, generators, loop, semiring

snow = Vector.from_coo([0, 1, 3], [2.0, 0.0, 1.0], FP64, size=4, name="snow")
print(snow)

print("least ", snow.reduce("min").new().value)
print("mean  ", snow.reduce("plus").new().value / snow.nvals)
print("town 1", snow.get(1))
print("town 2", snow.get(2))

nothing = Vector(FP64, 4).reduce("plus").new()
print(nothing, nothing.is_empty)

path = generators.path(4)
right = Vector(INT32, 4, like=path, name="right")
wrong = Vector(INT32, 4, like=path, name="wrong")

frontier = Vector.from_coo([0], [True], size=4, like=path)
for depth in loop(until_empty=frontier):
    right(frontier.S) << depth
    frontier(~right.S, replace=True) << semiring.any_pair(frontier @ path)

frontier = Vector.from_coo([0], [True], size=4, like=path)
for depth in loop(until_empty=frontier):
    wrong(frontier.S) << depth
    frontier(~wrong.V, replace=True) << semiring.any_pair(frontier @ path)

print("~levels.S", right.to_dense())
print("~levels.V", wrong.to_dense())

w = Vector.from_coo([0, 1, 2], [10, 20, 30], size=5, name="w")
t = Vector.from_coo([1, 3, 4], [1, 3, 4], size=5, name="t")
keep = Vector.from_coo([0, 1, 3], True, size=5, name="keep")

merged, replaced = w.dup(name="merged"), w.dup(name="replaced")
added, both = w.dup(name="added"), w.dup(name="both")
merged(keep.S) << t
replaced(keep.S, replace=True) << t
added(keep.S, accum=binary.plus) << t
both(keep.S, accum=binary.plus, replace=True) << t

A = Matrix.from_coo(
    [0, 0, 1, 2, 2, 3, 4, 5, 6], [1, 2, 3, 3, 4, 5, 5, 1, 0],
    [7.0, 2.0, 1.0, 4.0, 3.5, 1.0, 6.0, 1.0, 5.0], nrows=7, ncols=7, name="A",
)  # fmt: skip
everywhere = Vector.from_dense([True] * 7, like=A, name="everywhere")


def search(A, source, semiring, mask):
    levels = Vector(INT32, A.nrows, like=A)
    frontier = Vector(FP64, A.nrows, like=A)
    frontier[source] = 1
    for depth in loop(until_empty=frontier, times=5):
        levels(frontier.S) << depth
        frontier(mask(levels), replace=True) << semiring(frontier @ A)
    return levels


masks = {
    "~levels.S": lambda levels: ~levels.S,
    "~levels.V": lambda levels: ~levels.V,
    "everywhere": lambda levels: everywhere.S,
}
semirings = [semiring.any_pair, semiring.plus_first, semiring.min_plus, semiring.plus_times]
runs = explore(search, A, source=range(7), semiring=semirings, mask=masks)
print(len(runs), "runs;", len(runs["0", "semiring.any_pair", "~levels.S"]), "statements")
