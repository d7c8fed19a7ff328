"""Which matrices have the rows of a block worked on apart."""

from lagpu import generators


def test_which_graphs(backend):
    """Sparse ones, and of them those without hubs; of one row none."""
    fits = {
        "road": generators.road(30, backend=backend),
        "delaunay": generators.delaunay(9, backend=backend),
        "star": generators.star(400, backend=backend),
        "kron": generators.kronecker(11, 4, backend=backend),
        "dense": generators.kronecker(9, 16, backend=backend),
    }
    assert fits["kron"].nvals <= 8 * fits["kron"].nrows
    found = {name for name, A in fits.items() if backend.rows_apart(A.data, 2)}
    assert found == (set() if backend.name == "cpu" else {"road", "delaunay"})
    assert not any(backend.rows_apart(A.data, 1) for A in fits.values())


def test_hubs_are_counted_once(backend, monkeypatch):
    A = generators.road(20, backend=backend)
    if backend.name == "cpu":
        assert not backend.rows_apart(A.data, 2)
        return
    assert backend.rows_apart(A.data, 2)
    monkeypatch.setattr(type(A.data), "col_ptr", property(lambda self: 1 / 0), raising=False)
    assert backend.rows_apart(A.data, 64)
