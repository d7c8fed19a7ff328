"""Masks, accumulators and `replace`, and why an entry that is missing is not zero."""

from lagpu import FP64, INT32, Vector, binary, generators, loop, semiring

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
