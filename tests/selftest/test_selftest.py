"""The self-test: its report, and that it finds a backend that errs."""

from __future__ import annotations

import json
from concurrent.futures import ProcessPoolExecutor
from datetime import datetime
from itertools import islice
from typing import Any

import numpy as np
import pytest
from samples import picked, sampled

import lagpu
from lagpu import backends, selftest, versions
from lagpu.backends.gpu.backend import GpuBackend
from lagpu.backends.gpu.fused.program.run import BitmapOperands
from lagpu.backends.gpu.fused.search_many import PerSourceSearch
from lagpu.backends.gpu.fused.sweep import PerSourceSweep
from lagpu.backends.gpu.ops import elementwise
from lagpu.backends.gpu.ops.strategies import STRATEGIES
from lagpu.backends.gpu.storage.stores import VectorStore
from lagpu.catalog import ALGORITHMS
from lagpu.cli import main
from lagpu.operations import Multiply, MultiplySelection
from lagpu.selftest import algorithms, operations
from lagpu.selftest.cases import DEEP, GRAPHS, Case, kind_of


def failing(cases, place: str = "sim") -> list[str]:
    """Return the names of the cases that fail."""
    rows = [selftest._row(case, backends.get(place), backends.get("cpu")) for case in cases]
    return [row["case"] for row in rows if not row["passed"]]


def chosen(cases, *words: str) -> list[Case]:
    found = [case for case in cases if any(word in case.name for word in words)]
    assert found, words
    return found


def calls_on(graph, *names: str) -> list[Case]:
    """Return cases of one graph: of some algorithms, or of all."""
    rows = [row for row in ALGORITHMS if row.name in (names or row.name)]
    return [algorithms.case(row, [graph]) for row in rows if graph.n <= 32 or not row.slow]


def graph_of(name: str):
    return next(graph for graph in GRAPHS if graph.name == name)


@pytest.fixture
def place(backend):
    """The name of a backend that has kernels."""
    if backend.device is None:
        pytest.skip("test_the_report runs every case here")
    return backend.name


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", ["vectors", "matrices", "loops", "selections"])
def test_all_cases_pass(place, kind):
    assert failing(getattr(operations, kind)(), place) == []


@pytest.mark.ci
def test_all_cases_of_vectors_pass_on_the_oracle():
    """Nearly all cases are of vectors: none is of a type that its operator refuses.

    Every third here, and all in the report of the exhaustive run.
    """
    assert failing(list(operations.vectors())[::3], "cpu") == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("graph", [*GRAPHS, DEEP], ids=lambda graph: graph.name)
def test_all_searches_pass(place, graph):
    assert failing(calls_on(graph), place) == []


def test_every_public_algorithm_has_a_row():
    assert {row.name for row in ALGORITHMS} == set(lagpu.algorithms.__all__)
    keys = [row.key for row in ALGORITHMS]
    assert len(set(keys)) == len(keys)
    for name in lagpu.algorithms.__all__:
        rows = [row for row in ALGORITHMS if row.name == name]
        assert [bool(row.topic) for row in rows] == [k == 0 for k in range(len(rows))], name


def test_every_algorithm_is_a_case_on_every_size(monkeypatch):
    ran = []
    monkeypatch.setattr(
        algorithms, "outcome", lambda row, inputs: ran.append((row, inputs.graphs["pattern"]))
    )
    for case in algorithms.cases():
        case.run(backends.get("cpu"), backends.get("cpu"))
    for row in ALGORITHMS:
        tried = [A for other, A in ran if other is row]
        sizes = {graph.n for graph in GRAPHS if graph.n <= 32 or not row.slow}
        for n in sizes:
            assert {str(A.dtype) for A in tried if A.nrows == n} == {"BOOL", "INT64"}, row.key
        assert (DEEP.n in {A.nrows for A in tried}) is (row.name in algorithms._DEEP)


@pytest.mark.exhaustive
@pytest.mark.parametrize("kernel", [*STRATEGIES, ""])
def test_all_products_pass(place, kernel):
    assert failing(operations.products((kernel,)), place) == []


@pytest.mark.parametrize("first", sampled(range(9), 9))
def test_some_of_all_cases_pass(place, first):
    """Every twelfth, a ninth of them in a plain run."""
    cases = list(selftest._cases(backends.get(place)))[12 * first :: 9 * 12]
    assert failing(cases, place) == []


def test_a_quick_run_has_one_case_of_each_kind(monkeypatch):
    ran: list[Case] = []
    monkeypatch.setattr(selftest, "_row", lambda case, *_: ran.append(case) or {"passed": True})
    selftest.run("sim")
    every, kinds = len(ran), {kind_of(case.group, case.name) for case in ran}
    ran.clear()
    selftest.run("sim", quick=True)
    assert len(ran) == len(kinds) < every / 5
    assert {kind_of(case.group, case.name) for case in ran} == kinds
    assert ("products", "pull_bitmap") in kinds
    products_ran = [case for case in ran if case.group == "products" and case.brief]
    assert len(products_ran) == len(STRATEGIES) + 1
    assert all(case.run is case.brief for case in products_ran)
    (searched,) = [case for case in ran if case.name == "bfs_levels"]
    assert searched.run is searched.brief


def test_the_command_takes_quick_and_jobs(run, monkeypatch):
    ran: list[tuple[bool, int]] = []
    monkeypatch.setattr(
        selftest, "run", lambda place, quick, jobs: ran.append((quick, jobs)) or 1 / 0
    )
    for words in ([], ["--quick"], ["--jobs", "3"]):
        with pytest.raises(ZeroDivisionError):
            run("selftest", "-b", "cpu", *words)
    assert ran == [(False, 1), (True, 1), (False, 3)]


@pytest.mark.parametrize("every", [50, *picked([1], rest="exhaustive")])
def test_the_report(tmp_path, monkeypatch, capsys, every):
    monkeypatch.setenv("LAGPU_COMMIT", "0123abc")
    all_cases = selftest._cases
    monkeypatch.setattr(selftest, "_cases", lambda place: islice(all_cases(place), 0, None, every))
    file = tmp_path / "report.json"
    assert main(["selftest", "--backend", "cpu", "--json", str(file)]) == 0
    assert "0 failed" in capsys.readouterr().out
    report = json.loads(file.read_text())
    assert list(tmp_path.iterdir()) == [file]
    assert datetime.fromisoformat(report["date"]).tzinfo is not None
    assert report["backend"] == "cpu"
    assert report["device"] == {"device": "host"}
    assert report["sources_hash"] == ""  # of its own the backend has no kernels
    assert report["commit"] == "0123abc"
    assert report["versions"] == versions.versions()
    for row in report["rows"]:
        assert row.keys() == {"group", "case", "passed", "ms", "detail"}
        assert row["passed"] is True
    groups = {row["group"] for row in report["rows"]}
    assert groups - {"operators"} == {"products", "vectors", "matrices", "algorithms"}
    assert every > 1 or "operators" in groups  # which is one case
    totals = report["totals"]
    assert totals["cases"] == totals["passed"] == len(report["rows"])
    assert totals["failed"] == 0
    names = [(row["group"], row["case"]) for row in report["rows"]]
    assert len(set(names)) == len(names)


@pytest.mark.ci
def test_processes_share_the_cases_of_a_run(monkeypatch):
    pools = []

    class Pool(ProcessPoolExecutor):
        def __init__(self, jobs, **how):
            pools.append(jobs)
            super().__init__(jobs, **how)

    monkeypatch.setattr(selftest, "ProcessPoolExecutor", Pool)
    with monkeypatch.context() as patch:  # all pass, in this process alone
        passes = lambda case, *_: {"group": case.group, "case": case.name, "passed": True}  # noqa: E731
        patch.setattr(selftest, "_row", passes)
        alone = selftest.run("cpu", quick=True)
    shared = selftest.run("cpu", quick=True, jobs=2)
    assert pools == [2]
    left_out = {"ms", "seconds", "detail"}
    for one, two in zip(
        [*alone["rows"], alone["totals"]], [*shared["rows"], shared["totals"]], strict=True
    ):
        assert {k: v for k, v in one.items() if k not in left_out} == {
            k: v for k, v in two.items() if k not in left_out
        }


def test_a_failure_is_shown_and_exits_with_1(monkeypatch, capsys):
    def fail(place: Any, oracle: Any) -> str:
        raise ValueError("[bold]planted")

    monkeypatch.setattr(selftest, "_cases", lambda place: iter([Case("vectors", "planted", fail)]))
    assert main(["selftest", "--backend", "cpu"]) == 1
    out = capsys.readouterr().out
    assert "FAILED vectors: planted: ValueError: [bold]planted" in out
    assert "0 of 1 passed, 1 failed" in out


def test_the_device_stands_in_the_report(monkeypatch):
    monkeypatch.setattr(selftest, "_cases", lambda place: iter([]))
    report = selftest.run("sim")
    assert report["device"]["device"].startswith("sim")
    assert "compiler" in report["device"]


# ------------------------------------------------------------------------------ planted faults


def test_a_loop_over_a_block_that_ignores_its_masks_is_found(monkeypatch):
    monkeypatch.setattr(BitmapOperands, "mask_of", lambda self, desc: ("nowhere", False))
    name = "steps, and numbers on hub 1023"  # it ends whatever it writes
    assert failing(chosen(operations.loops(), name)) == [name]


def with_products(monkeypatch, change, kind=Multiply):
    """Run each product with a vector as `change` makes its statement."""
    whole = GpuBackend.execute

    def execute(self, s):
        changes = isinstance(s.operation, kind) and type(s.out) is VectorStore
        whole(self, change(s) if changes else s)

    monkeypatch.setattr(GpuBackend, "execute", execute)


def with_product(s, **fields):
    """The statement with another algebra."""
    product = s.operation.product._replace(**fields)
    return s._replace(operation=s.operation._replace(product=product))


@pytest.mark.ci
def test_a_product_that_ignores_its_mask_is_found(monkeypatch):
    with_products(
        monkeypatch, lambda s: s._replace(desc=s.desc._replace(mask=None, complement=False))
    )
    some = [*STRATEGIES][:: len(STRATEGIES) // 4]
    assert {name.partition("_")[0] for name in some} == {"pull", "push"}
    cases = chosen(operations.products(some), "any_pair BOOL")
    assert len(failing(cases)) == len(cases)
    # Without its mask a search never ends; a product over a graph without edges does.
    assert failing(calls_on(graph_of("empty 33"), "bfs_levels")) == []


@pytest.mark.ci
def test_a_library_is_another_oracle(monkeypatch):
    cases = chosen(operations.products(("pull_scalar",)), "by a library")
    assert len(cases) == 1
    assert failing(cases) == []
    with_products(
        monkeypatch, lambda s: with_product(s, transpose=not s.operation.product.transpose)
    )
    assert len(failing(cases)) == 1


@pytest.mark.ci
def test_exchanged_operands_are_found(monkeypatch):
    with_products(monkeypatch, lambda s: with_product(s, flip=not s.operation.product.flip))
    assert failing(chosen(operations.products(("pull_warp",)), "plus_minus"))
    assert failing(chosen(operations.matrices(), "product with A.T", "registered"))


@pytest.mark.exhaustive
def test_a_transposed_product_is_found(monkeypatch):
    with_products(
        monkeypatch, lambda s: with_product(s, transpose=not s.operation.product.transpose)
    )
    assert failing(chosen(operations.products(("push_edge",)), "any_pair BOOL", "any_secondi"))
    assert failing(calls_on(graph_of("directed random 32")))


@pytest.mark.ci
def test_a_selection_that_takes_what_is_no_row_is_found(monkeypatch):
    def clipped(s):
        f = s.operation.indices
        rows = f.copy(f.dtype)
        rows.to_writable()
        rows.values = np.minimum(rows.values, f.size - 1)
        return s._replace(operation=s.operation._replace(indices=rows))

    with_products(monkeypatch, clipped, MultiplySelection)
    assert failing(operations.selections()) == [
        case.name for case in operations.selections() if "loop" not in case.name
    ]


def test_a_wrong_parent_is_found(monkeypatch):
    whole = GpuBackend.vector_to_coo

    def off_by_one(self, v):
        indices, values = whole(self, v)
        return indices, values + (values.dtype.kind == "i") * (indices == indices.max(initial=0))

    monkeypatch.setattr(GpuBackend, "vector_to_coo", off_by_one)
    for name in ("bfs_parents", "bfs_levels", "bfs"):
        assert failing(calls_on(graph_of("random 31"), name)), name


def test_a_lost_accumulator_is_found(monkeypatch):
    whole = elementwise.write

    def overwritten(w, desc, t, region=None):
        whole(w, desc._replace(accum=None), t, region)

    monkeypatch.setattr(elementwise, "write", overwritten)
    assert failing(chosen(operations.vectors(), "assign and extract INT64"))


def test_a_wrong_type_is_found(monkeypatch):
    whole = GpuBackend.vector_to_coo

    def widened(self, v):
        indices, values = whole(self, v)
        return indices, values.astype("f8")

    monkeypatch.setattr(GpuBackend, "vector_to_coo", widened)
    assert failing(chosen(operations.vectors(), "apply abs INT32"))


@pytest.mark.ci
def test_rows_apart_that_err_are_found(monkeypatch):
    """On a GPU the sources of a deep graph are searched, and swept, each by itself."""
    cases = calls_on(DEEP, *algorithms._DEEP)
    names = [case.name for case in cases]
    whole = PerSourceSearch.run

    def ended(self, log=None):
        if not self._keep:
            self._times = 50
        whole(self, log)

    with monkeypatch.context() as patched:
        patched.setattr(PerSourceSearch, "run", ended)
        assert failing(cases) == names[:1]
    monkeypatch.setattr(PerSourceSweep, "run", lambda self, log=None: None)
    assert failing(cases) == names[-1:]


def test_commit(monkeypatch):
    monkeypatch.setenv("LAGPU_COMMIT", "from the environment")
    assert versions.commit() == "from the environment"
    monkeypatch.delenv("LAGPU_COMMIT")
    monkeypatch.setenv("PATH", "")  # no git
    assert versions.commit() is None


def test_a_graph_that_wrongly_says_that_it_is_symmetric_is_found(monkeypatch):
    cases = chosen(operations.matrices(), "symmetric as made")
    assert failing(cases) == []
    whole = GpuBackend.dup

    def dup(self, x, dtype):
        copy = whole(self, x, dtype)
        if copy.nvals:  # one entry leaves, and what is known stays
            store = copy.store
            copy.store = store.with_values(dtype, store.values, store.iso)
            copy.store.row_idx = (store.row_idx + 1) % store.shape[0]
            copy.store.symmetric = True
        return copy

    monkeypatch.setattr(GpuBackend, "dup", dup)
    assert failing(cases) == ["symmetric as made"]


@pytest.mark.parametrize("name", ["pagerank", "bipartite_sides"])
def test_a_proved_result_of_another_type_fails(name, monkeypatch):
    """Their checkers prove numbers, and the numbers are not compared."""
    right = getattr(lagpu.algorithms, name)

    def wrong(A, *given, **options):
        found = right(A, *given, **options)
        first, *rest = found if isinstance(found, tuple) else (found,)
        if A.backend.name != "sim" or first is None:
            return found
        made = first.apply("identity").new("FP32")
        return (made, *rest) if rest else made

    monkeypatch.setattr(lagpu.algorithms, name, wrong)
    assert failing(calls_on(GRAPHS[0], name))
