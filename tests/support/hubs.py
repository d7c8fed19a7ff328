"""The directions that a traced search took."""


def directions(t):
    return [row.direction for row in t.rows if row.method == "mxv"]
