"""Graph files as tests read them."""

from lagpu.io import (
    read,
)

BANNER = "%%MatrixMarket matrix coordinate "


def entries(A):
    rows, cols, values = A.to_coo()
    return list(zip(rows.tolist(), cols.tolist(), values.tolist(), strict=True))


def edges(A):
    return [(i, j) for i, j, _ in entries(A)]


def read_cpu(path, **options):
    return read(path, backend="cpu", **options)
