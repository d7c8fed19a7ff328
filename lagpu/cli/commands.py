"""The commands and their options, as data: each row names the function that a command runs.

For a quick start this module and `lagpu.cli.entry` import only typer and light parts of `lagpu`: no
checkers, readers or generators, whose import takes long. `run` imports the other modules of this
package when a command runs, and a proof imports its checker.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from typer.core import TyperGroup

from lagpu import algorithms
from lagpu.algorithms.betweenness import batch_size, is_directed, sample
from lagpu.algorithms.inputs import random_seed
from lagpu.backends.guard import is_overridden
from lagpu.core import Matrix, Vector
from lagpu.errors import CheckFailed, InvalidValue
from lagpu.versions import __version__

SHORTEST = "min"  # combines the lengths of an edge that a file gives twice


# Choices of options; the values are the names in lower case.
Output = StrEnum("Output", "LEVELS PARENTS PATHS")  # of a search
Forms = StrEnum("Forms", "AUTO CSC")  # in which a directed graph is kept
Mode = StrEnum("Mode", "FUSED EAGER BOTH")  # to run loops
Method = StrEnum("Method", "FASTSV BFS")  # for weak components


class Options(NamedTuple):
    """The options of a graph and its backend; a command has some of them."""

    graph: str
    backend: str = "cpu"
    kernel: str | None = None
    policy: str | None = None
    orientation: str = Forms.AUTO
    directed: bool | None = None
    renumber: bool = False
    seed: int | None = None


Declared = tuple[Any, Any]  # the type of an option, annotated with its help, and its default
REQUIRED = inspect.Parameter.empty


def argument(metavar: str, help: str, kind: Any = str, default: Any = REQUIRED) -> Declared:
    return Annotated[kind, typer.Argument(metavar=metavar, help=help)], default


def value(kind: Any, default: Any, help: str, *names: str, **how: Any) -> Declared:
    return Annotated[kind, typer.Option(*names, help=help, **how)], default


def option(kind: Any, help: str, *names: str, **how: Any) -> Declared:
    """Return an option that may be left out; its value is then None."""
    return value(kind | None, None, help, *names, show_default=False, **how)


def flag(name: str, help: str) -> Declared:
    return value(bool, False, help, name)


_START = "Vertex to start from."
_VERTEX = {"metavar": "VERTEX"}


# The suffixes are those of lagpu.io.formats, whose import would take time (a test compares).
FILES = (
    ".mtx, .npz, .graphml, .gml, .gr, .col, .graph, .metis, .sg, .wsg, .parquet, .h5, .hdf5, "
    ".konect, .e, .csv, .tsv, .el, .wel, .txt; text also packed, or in an archive"
)
_GRAPH_HELP = (
    f"A file ({FILES}; - is the standard input), or kron:16, urand:16, gnm:99:500, road:512, "
    "road:86:10, chains:12:16, hubs:99:5, grid:30x40, delaunay:16, mycielskian:11, path:9, "
    "cycle:9, star:9, complete:9; kron16 is the same as kron:16, and kron16e8 as kron:16:8."
)
#: The options that several commands have, by the names of their values.
OPTIONS: dict[str, Declared] = {
    "graph": argument("GRAPH", _GRAPH_HELP),
    "source": option(str, _START, "--source", "-s", **_VERTEX),
    "sources": option(str, "Several vertices, as in 0,5,9: levels from the nearest."),
    "each": flag("--each", "A search from each of --sources, all at once."),
    "backend": value(str, "auto", "auto, cpu, gpu or sim.", "--backend", "-b", metavar="NAME",
                     autocompletion=lambda: ["auto", "cpu", "gpu", "sim"]),
    "grid": option(
        str,
        "In pieces: all (GPUs, or processes of mpirun), 2, 2x3, or 4:cpu, 2:sim on that backend, "
        "all:gpu:3,1 on these GPUs; vertices by degree or at random: all-degree, 2x3-random.",
        metavar="PIECES"),
    "kernel": option(str, "Use this kernel for every product (gpu, sim)."),
    "policy": option(
        str,
        "Choose directions and kernels by this policy, as beamer, on gpu and sim also hiragushi, "
        "bfs2d:ratio=0.1, tdbu:vector or vbfs:64; or search a grid by a paper's system: "
        "kepler, bfs2d:ratio=0.1 or hiragushi."),
    "orientation": value(
        Forms, Forms.AUTO,
        "csc: keep a directed graph in one form alone, in half of the memory, so that a search has "
        "one direction; auto: in both forms where that pays.", metavar="FORMS"),
    "directed": option(
        bool, "Take the entries of a file as they are, or add each edge's reverse; "
        "by default the file decides.", "--directed/--undirected"),
    "renumber": flag("--renumber", "Vertices of the file have names, or numbers with gaps: take "
                     "and show these."),
    "seed": option(int, "Seed of a generated graph.", min=0),
    "save": option(Path, "Write the result here: .npz, .txt or .csv."),
    "check": flag("--check", "Prove the result."),
    "trace_file": option(Path, "Write the cost of each statement: .html or .json.", "--trace"),
    "step_file": option(
        Path, "Write a page to step through the algorithm on a small graph: .html.", "--step"),
    "as_json": flag("--json", "Print one JSON object and nothing else."),
    "json_file": option(Path, "Write the report here.", "--json"),
}  # fmt: skip

_HELP = {"help_option_names": ["-h", "--help"]}
app = typer.Typer(
    name="lagpu", help="Graph search as masked sparse linear algebra, on CPU and GPU.",
    pretty_exceptions_enable=False, context_settings=_HELP,
)  # fmt: skip


def _version(wanted: bool) -> None:
    if wanted:
        print(f"lagpu {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option(
        "--version", "-V", callback=_version, is_eager=True, help="Print the version and exit.",
    )] = False,
    debug: Annotated[bool, typer.Option(
        "--debug", help="Show where an error arose; any command takes it.",
    )] = False,
) -> None:  # fmt: skip
    """Graph search as masked sparse linear algebra, on CPU and GPU."""
    show_help(context)


def show_help(context: typer.Context) -> None:
    """Print the help of a group of commands if none of these is given."""
    if context.invoked_subcommand is None:
        print(context.get_help())


def add(
    name: str, help: str, options: Mapping[str, Declared], command: Callable[..., None],
    to: typer.Typer = app,
) -> None:  # fmt: skip
    """Add a command, which is called with the values of its options by name."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    given = [
        inspect.Parameter(name, keyword, default=default, annotation=of)
        for name, (of, default) in options.items()
    ]
    command.__signature__ = inspect.Signature(given)  # type: ignore[attr-defined]
    command.__annotations__ = {name: of for name, (of, _) in options.items()}
    to.command(name, help=help)(command)


def run(body: str, given: dict[str, Any]) -> None:
    """Call a function of this package, such as ``search.bfs``, with the values of options.

    Those of a graph are packed as `Options`, the first argument; `grid` is part of the backend.
    """
    if "grid" in given:
        grid = given.pop("grid")
        if grid is not None or "backend" in given:
            given["backend"] = placed(given.get("backend", "auto"), grid)
    module, _, function = body.rpartition(".")
    call = getattr(importlib.import_module(f"lagpu.cli.{module}"), function)
    if "graph" not in given:
        call(**given)
        return
    packed = {name: given.pop(name) for name in Options._fields if name in given}
    call(Options(**packed), **given)


def row(command: str, body: str, help: str, options: str, /, **own: Declared) -> None:
    """Add a command that runs a body; `options` are named in order, and some are its own."""
    known = OPTIONS | own
    declared = {key: known[key] for key in options.split()}
    add(command, help, declared, lambda **given: run(body, given))


def placed(backend: str, grid: str | None) -> str:
    """Return the name of the backend that ``--backend`` and ``--grid`` say together."""
    if grid is None:
        return backend
    pieces, colon, kind = grid.partition(":")
    known = re.fullmatch("(all|[1-9][0-9]*(x[1-9][0-9]*)?)(-random|-degree)?", pieces)
    if known is None or bool(colon) != bool(kind):
        raise InvalidValue(f"--grid: {grid!r} is not all, 2, 2x3, 4-degree:cpu or the like.")
    if kind and backend != "auto":
        raise InvalidValue(
            f"--grid: {grid} names the backend of the pieces, and so does --backend {backend}. "
            "Leave one of them out."
        )
    count = f"grid{known[3] or ''}" if known[1] == "all" else f"grid:{pieces}"
    if not kind and backend != "auto":
        kind = backend
    return ":".join(part for part in (count, kind) if part)


_PLACED = "kernel policy orientation directed renumber seed"
_OUT = argument("OUT", f"{FILES}.", Path)
_FAMILY = "With --algorithm: "
#: The results that ``lagpu check`` proves.
RESULTS = (
    "levels parents paths distances components strong sides cores order independent triangles "
    "clustering pagerank betweenness closeness harmonic"
)

row("bfs", "run.bfs", "Search a graph from one vertex or several, and show the cost of each level.",
    f"graph source sources each backend grid output {_PLACED} save check trace_file step_file "
    "as_json",
    output=value(Output, Output.LEVELS, "levels, parents, or paths: numbers of shortest paths.",
                 metavar="WHAT"))  # fmt: skip
row("info", "graphs.info", "Describe a graph and the memory it needs.",
    "graph grid directed renumber seed as_json")  # fmt: skip
row("convert", "graphs.convert", "Write a graph to a file of another format, by the suffix.",
    "graph out directed renumber ids seed",
    out=_OUT, ids=option(Path, "Write the id of each vertex: .npz, .txt or .csv."))  # fmt: skip
row("generate", "graphs.generate",
    "Make a graph and write it to a file in the format of the suffix.", "spec out seed",
    spec=argument("SPEC", "Such as kron:16 or road:512."), out=_OUT)  # fmt: skip
row("check", "check.check",
    """Prove the results in files, which --save or any other program wrote.

    The options of the algorithm are taken to be the defaults.
    """,
    f"graph source sources each {RESULTS} directed renumber seed as_json",
    **dict.fromkeys(RESULTS.split(), option(Path, "A saved result."))
    | {"strong": option(Path, "A saved result: strong components.")})  # fmt: skip
row("crosscheck", "check.crosscheck",
    "Run an algorithm on several backends, and stop at the first statement that differs.",
    "algorithm graph source backends output target kernel policy directed renumber seed as_json",
    algorithm=argument("ALGORITHM", "Name of a command: bfs, sssp, pagerank, ..."),
    backends=value(
        str, "cpu,gpu", "The oracle, and the backends compared with it; for a single backend, its "
        "fused loops are compared with its eager ones."),
    output=option(Output, "For bfs: levels, parents, or paths.", metavar="WHAT"),
    target=option(str, "For path.", "--target", "-t", **_VERTEX))  # fmt: skip
row("selftest", "check.selftest",
    "Prove an installation: every kernel, operation and algorithm against python-graphblas.",
    "backend grid quick jobs json_file",
    quick=flag("--quick", "One case of each kind: seconds instead of minutes."),
    jobs=option(int, "Processes that share the cases; by default one: each takes memory of the "
                "GPU.", min=1))  # fmt: skip
row("compile", "check.compile_kernels",
    "Compile the kernels of all algorithms, so that no first call waits for a compiler.",
    "backend jobs",
    jobs=option(int, "Processes; by default one a core, at most 8: each takes memory of the GPU.",
                min=1))  # fmt: skip
row("backends", "graphs.list_backends", "List the backends, and why a backend is unavailable.",
    "as_json")  # fmt: skip
row("bench", "measure.bench",
    "Measure searches from many roots, or every algorithm; results are proved and compared.",
    "graphs backend roots mode output kernel policy orientation renumber seed json_file peers "
    "algorithm repeats seconds limit budget",
    graphs=argument(
        "[GRAPH]...", "Graphs such as kron20e16 (which is kron:20:16) and road2048, or files; by "
        "default seven large graphs on a GPU, five small ones elsewhere. zoo, or zoo:16 of about "
        "2**16 vertices: graphs of twenty families, by each policy.", list[str] | None, None),
    backend=option(list[str], "auto, cpu, gpu or sim; repeatable.", "--backend", "-b",
                   metavar="NAME"),
    roots=option(int, "Searches from vertices of the largest component; by default 32, 8 on road, "
                 "delaunay."),
    mode=option(Mode, "Loops as one kernel, statement by statement, or both; "
                "by default fused if the backend can."),
    output=option(list[Output], "levels, parents, or paths; repeatable.", metavar="WHAT"),
    policy=option(list[str], "Choose directions and kernels by this policy, as beamer or "
                  "bfs2d:ratio=0.1; all, or repeatable."),
    renumber=flag("--renumber", "Vertices of the files have names, or numbers with gaps."),
    peers=option(
        list[str], "all (that are installed), or some of scipy, networkx, python-graphblas, "
        "igraph, networkit, pylibcugraph, and for products cusparse; or FILE.json, recorded "
        "figures in the form of a report of lagpu bench; repeatable."),
    algorithm=option(
        list[str], "Instead of searches measure all, or these functions of lagpu.algorithms, "
        "beside the cpu backend; repeatable.", metavar="NAME"),
    repeats=option(int, f"{_FAMILY}runs; by default 3."),
    seconds=option(float, f"{_FAMILY}no more runs after these; by default 1."),
    limit=option(float, f"{_FAMILY}a measurement ends after these seconds; by default 10."),
    budget=option(float, f"{_FAMILY}seconds of the whole; by default 480."))  # fmt: skip
row("graph500", "measure.run_graph500",
    "Run the Graph500 benchmark: construction, and searches proved by its five rules.",
    "scale edge_factor backend grid roots seed json_file",
    scale=value(int, REQUIRED, "2**SCALE vertices."),
    edge_factor=value(int, 16, "Tuples per vertex."),
    roots=option(int, "Searches; by default 64, or one from each vertex with an edge to another."),
    )  # fmt: skip
row("paper", "measure.run_paper",
    "Run a paper's tables and figures again: its variants, its metric, its figures beside ours.",
    "name table figure section gpus quick backend files only roots seconds memory seed json_file",
    name=argument("PAPER", "000 (hiragushi), 001 (vbfs), 002 (mgbc or bfs2d), 003 (turbobfs), "
                  "004 (kepler)."),
    table=option(str, "This table alone.", metavar="N"),
    figure=option(str, "This figure alone.", metavar="N"),
    section=option(str, "This section alone.", metavar="N"),
    gpus=option(int, "The experiments on several GPUs alone, on up to N of them.", metavar="N"),
    quick=flag("--quick", "Small graphs and few searches."),
    files=option(
        list[str], "The file of the paper's graph of this name, or a folder of files by their "
        "names in the SuiteSparse collection; repeatable.", "--graph", metavar="NAME=FILE"),
    only=option(list[str], "This graph alone; repeatable.", metavar="NAME"),
    roots=option(int, "Searches a graph; by default the paper's."),
    seconds=option(float, "Fewer searches where those of a variant take longer, in each turn."),
    memory=option(float, "What a GPU's arrays hold at most in a search, the graph included.",
                  metavar="GB"))  # fmt: skip


# ---- commands that run one algorithm: each maps its options to a `Job`, which `lagpu.cli.run` runs

TOP = 10  # vertices of a ranking
_MOST_ITERATIONS = 1_000_000  # more would seem endless
_OPTIONS = (
    "backend grid kernel policy orientation directed renumber seed save check step_file as_json"
)


@dataclass(frozen=True, eq=False)
class Job:
    """The algorithm of a command, with its proof and its output."""

    algorithm: str  # a function of `lagpu.algorithms`
    # The facts to print of (result, *vertices); a list of pairs is a ranking of vertices.
    facts: Callable[..., dict[str, Any]] = lambda _: {}
    more: dict[str, Any] = field(default_factory=dict)  # further arguments of the algorithm
    vertices: dict[str, str] = field(default_factory=dict)  # after the matrix, by option
    call: Callable[..., Any] | None = None  # of (matrix, *vertices), in place of the algorithm
    # Checks (`lagpu.check`, matrix, *vertices, result), in place of `lagpu.catalog.PROOFS`.
    prove: Callable[..., Any] | None = None
    vector: Callable[[Any], Any] = lambda found: found  # what is saved of a result, or None
    of_vertices: bool = False  # whether the values of the result are vertices
    is_matrix: bool = False  # whether the result is one
    dup_op: str | None = None  # of the weights of an edge that a file gives twice: else their sum
    seed_for: str = ""  # what the seed is for, besides a generated graph
    kinds: Sequence[str] = ()  # what the texts of `vertices` are, unless those are vertices

    def run(self, A: Matrix, *vertices: Any) -> Any:
        return (self.call or getattr(algorithms, self.algorithm))(A, *vertices, **self.more)


def ranking(of: Vector | Matrix) -> list[list[Any]]:
    """Return the largest finite values, largest first, as [vertex, value].

    An entry of a matrix has its row and column in place of a vertex.
    """
    *ends, values = of.to_coo()
    order = np.argsort(-values.astype(float), kind="stable")
    order = order[np.isfinite(values[order])][:TOP]
    places = np.stack(ends, axis=1)[order] if len(ends) > 1 else ends[0][order]
    return [[*pair] for pair in zip(places.tolist(), values[order].tolist(), strict=True)]


def add_job(
    name: str, help: str, own: dict[str, Declared], job_of: Callable[..., Job], *,
    save: bool = True, to: typer.Typer = app, body: str = "run.run",
) -> None:  # fmt: skip
    """Add a command that runs the `Job` that a function returns for its own options."""
    before = {name: of for name, of in own.items() if name not in _OPTIONS.split()}
    shared = {name: OPTIONS[name] for name in _OPTIONS.split() if save or name != "save"}

    def command(**given: Any) -> None:
        job = job_of(**{name: given[name] for name in own})
        run(body, {x: given[x] for x in ("graph", *shared)} | {"job": job})

    add(name, help, {"graph": OPTIONS["graph"]} | before | shared | own, command, to)


def _algorithm(
    *, save: bool = True, **own: Declared
) -> Callable[[Callable[..., Job]], Callable[..., Job]]:
    """Make a command of a function that returns a `Job` for the values of its own options."""

    def register(job_of: Callable[..., Job]) -> Callable[..., Job]:
        add_job(job_of.__name__, inspect.getdoc(job_of) or "", own, job_of, save=save)
        return job_of

    return register


def groups(labels: Vector, name: str = "groups") -> dict[str, Any]:
    """Return the number of groups of equal labels, and their sizes."""
    sizes = np.unique(labels.to_coo()[1], return_counts=True)[1]
    alone = int(np.count_nonzero(sizes == 1))
    return {name: len(sizes), "largest": int(sizes.max(initial=0)), "of_one_vertex": alone}


class Algorithms(TyperGroup):
    """``lagpu run``: a command for each algorithm, made when it is used."""

    prepare: Callable[[Any], Any] = staticmethod(lambda command: command)

    def list_commands(self, ctx: Any) -> list[str]:
        return list(algorithms.__all__)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command of an algorithm, or raise for another name."""
        if cmd_name not in algorithms.__all__:
            near = difflib.get_close_matches(cmd_name, algorithms.__all__, 1)
            advice = f"Did you mean {near[0]}?" if near else "`lagpu list` shows all."
            raise InvalidValue(f"run: there is no algorithm {cmd_name!r}. {advice}")
        if cmd_name not in self.commands:
            one = typer.Typer(add_completion=False, context_settings=_HELP)
            importlib.import_module("lagpu.cli.run").add(cmd_name, one)
            self.commands[cmd_name] = self.prepare(typer.main.get_command(one))
        return self.commands[cmd_name]


_algorithms = typer.Typer(
    name="run", cls=Algorithms, invoke_without_command=True,
    subcommand_metavar="ALGORITHM GRAPH", context_settings=_HELP,
    help="Run any algorithm; `lagpu run ALGORITHM --help` shows its options.",
)  # fmt: skip
_algorithms.callback()(show_help)
app.add_typer(_algorithms)


_SOURCE = value(str, REQUIRED, _START, "--source", "-s", **_VERTEX)
SEED = option(int, "Seed of a generated graph, and of the algorithm.", min=0)


@_algorithm(
    source=_SOURCE,
    delta=option(float, "Step of delta-stepping; without it Bellman-Ford."),
    limit=option(float, "Go no farther than this; of lengths of 0 or more."),
)
def sssp(source: str, delta: float | None, limit: float | None) -> Job:
    """Find the distances from one vertex over the weights of a graph.

    The shorter of two lengths counts for an edge that the file gives twice.
    """

    def facts(found: Vector, start: int) -> dict[str, Any]:
        return {"source": start, "reached": found.nvals, "farthest": ranking(found)}

    def prove(checkers: Any, A: Matrix, start: int, found: Vector) -> Any:
        return checkers.check_distances(A, start, found, np.inf if limit is None else limit)

    more = {"delta": delta, "limit": limit}
    return Job("sssp", facts, more, {"--source": source}, prove=prove, dup_op=SHORTEST)


@_algorithm(
    alpha=value(float, 0.85, "Probability of following an edge."),
    tol=value(float, 1e-6, "Stop at a change below n * TOL and 0.001."),
    max_iter=value(int, 100, "Largest number of iterations.", min=0, max=_MOST_ITERATIONS),
    weight=value(bool, True, "Whether values are weights.", "--weight/--no-weight"),
)
def pagerank(max_iter: int, **how: Any) -> Job:
    """Rank the vertices of a graph by PageRank."""
    return Job(
        "pagerank", lambda ranks: {"pagerank": ranking(ranks)}, {"max_iter": max_iter, **how},
        prove=lambda check, A, ranks: check.check_pagerank(A, ranks, **how),
    )  # fmt: skip


@_algorithm(
    k=option(int, "Estimate from K random sources.", "--sample", "-k"),
    sources=option(str, "Only paths from these vertices, as in 0,5,9; not with -k."),
    targets=option(str, "Only paths to these vertices, not scaled up; not with -k."),
    weight=flag("--weight", "Paths of least length over the weights, which are above 0."),
    normalized=value(bool, True, "Shares of pairs, or sums over them.", "--normalized/--sums"),
    endpoints=flag("--endpoints", "Count a path at its ends too."),
    batch=option(
        int, "Sources at once; by default as many as suit the graph and the memory.", min=1
    ),
    one_degree=flag("--one-degree", "Fold branches that are trees first; all sources."),
    pieces=option(
        int, "Pieces of the grid that share a copy of the graph; by default the fewest.", min=1
    ),
    seed=SEED,
)
def bc(
    k: int | None, sources: str | None, targets: str | None, weight: bool, batch: int | None,
    one_degree: bool, seed: int | None, **how: Any,
) -> Job:  # fmt: skip
    """Rank the vertices of a graph by betweenness centrality."""
    seeds: list[int] = []  # the one of all runs and of the proof
    words = {"--sources": sources, "--targets": targets}
    vertices = {option: text for option, text in words.items() if text is not None}

    def subsets(given: Any) -> dict[str, list[int]]:
        return {option.strip("-"): x for option, x in zip(vertices, given, strict=True)}

    if weight and (k is not None or batch is not None or how["pieces"] is not None):
        raise InvalidValue("--weight: takes sources one by one. Leave -k, --batch, --pieces out.")

    def call(A: Matrix, *given: list[int]) -> tuple[int | None, Vector, Vector | None]:
        # Several sources are a matrix, whose products take no kernel.
        is_single = weight or is_overridden(A.backend)
        subset = subsets(given)
        chosen = subset.get("sources")
        count = len(chosen) if chosen else A.nrows if k is None else k
        if batch is not None and batch > count:
            raise InvalidValue(f"--batch: {batch} at once of {count} sources. Give fewer.")
        if not seeds:
            seeds.append(random_seed(seed, "bc", A))
        size = batch or (1 if is_single else None)
        if size is None and A.backend.capabilities.clusters is None:  # else each has its own
            size = batch_size(A, sample(A, k, seeds[0], chosen))
        more = {"seed": seeds[0], "batch": size, **how}
        if k is None or one_degree or given:
            more |= {"one_degree": one_degree, "weight": weight, **subset}
            return size, algorithms.betweenness_centrality(A, k, **more), None
        return size, *algorithms.betweenness_estimate(A, k, **more)

    def prove(check: Any, A: Matrix, *given: Any) -> None:
        *some, found = given
        more: dict[str, Any] = {x: how[x] for x in ("normalized", "endpoints")} | subsets(some)
        if k is not None:
            more["sources"] = random.Random(seeds[0]).sample(range(A.nrows), k)
        more |= {"error": found[2], "directed": is_directed(A, weight), "weight": weight}
        check.check_betweenness(A, found[1], **more)

    def facts(found: tuple[int | None, Vector, Vector | None], *given: list[int]) -> dict[str, Any]:
        size, centrality, error = found
        lines = ranking(centrality)
        said: dict[str, Any] = {"sources": k or centrality.size, **subsets(given)}
        said |= {} if size is None else {"at_once": size}
        said["betweenness"] = lines
        if error is not None and k != 1:  # one source has no standard error
            said["standard_error"] = [[v, error.get(v)] for v, _ in lines]
        return said

    return Job(
        "betweenness_centrality", facts, vertices=vertices, call=call, prove=prove,
        vector=lambda found: found[1], dup_op=SHORTEST if weight else None,
        seed_for="" if k is None else "the choice of sources",
    )  # fmt: skip


@_algorithm(
    harmonic=flag("--harmonic", "Sum of reciprocal distances instead."),
    weight=flag("--weight", "Distances over the weights, 0 or more."),
)
def closeness(harmonic: bool, weight: bool) -> Job:
    """Rank the vertices of a graph by closeness centrality."""
    name = "harmonic" if harmonic else "closeness"
    return Job(
        f"{name}_centrality",
        lambda found: {name: ranking(found)},
        {"distance": weight},
        prove=lambda check, A, found: check.check_remoteness(A, found, name, weight=weight),
        dup_op=SHORTEST if weight else None,
    )


@_algorithm(
    strong=flag("--strong", "Components of vertices that reach each other."),
    method=option(Method, "Method for weak components; by default fastsv."),
)
def components(strong: bool, method: Method | None) -> Job:
    """Find the connected components of a graph."""
    if strong and method is not None:
        raise InvalidValue("--method: is for weak components. Leave out it or --strong.")
    name = "strongly_connected_components" if strong else "connected_components"
    more = {} if strong else {"method": (method or Method.FASTSV).value}
    return Job(name, lambda labels: groups(labels, "components"), more, of_vertices=True)


@_algorithm(
    save=False,
    pseudo=flag("--pseudo", "Estimate by a few searches: two vertices far apart."),
    source=option(str, "Where --pseudo begins; by default 0.", "--source", "-s", **_VERTEX),
)
def diameter(pseudo: bool, source: str | None) -> Job:
    """Find the largest distance between two vertices of a graph."""
    if source is not None and not pseudo:
        raise InvalidValue("--source: is where --pseudo begins. Leave it out, or add --pseudo.")

    def prove(check: Any, A: Matrix, *given: Any) -> None:
        length, begin, end = given[-1]
        route = algorithms.shortest_path(A, begin, end)
        check.check_route(A, begin, end, route)
        if len(route) - 1 != length:
            raise CheckFailed(
                f"pseudo_diameter: {length}, but the path has {len(route) - 1} edges."
            )

    if not pseudo:
        return Job("diameter", lambda found: {"diameter": found})
    return Job(
        "pseudo_diameter",
        lambda found, *_: dict(zip(("pseudo_diameter", "begin", "end"), found, strict=True)),
        vertices={} if source is None else {"--source": source}, prove=prove,
    )  # fmt: skip


@_algorithm(
    save=False,
    source=_SOURCE,
    target=value(str, REQUIRED, "Vertex to reach.", "--target", "-t", **_VERTEX),
    weight=flag("--weight", "The path of least length over the weights, as sssp has them."),
)
def path(source: str, target: str, weight: bool) -> Job:
    """Find a path with fewest edges, or of least length, between two vertices."""
    vertices = {"--source": source, "--target": target}

    def call(A: Matrix, *ends: int) -> tuple[float, list[int]]:
        route = algorithms.shortest_path(A, *ends, weight=True)
        return algorithms.path_weight(A, route), route

    def facts(found: tuple[float, list[int]], *_: int) -> dict[str, Any]:
        return {"length": found[0], "edges_of_path": len(found[1]) - 1, "path": found[1]}

    def prove(check: Any, A: Matrix, start: int, end: int, found: Any) -> None:
        check.check_route(A, start, end, found[1], weight=True)

    if weight:
        return Job("shortest_path", facts, {}, vertices, call, prove, dup_op=SHORTEST)
    return Job(
        "shortest_path", lambda found, *_: {"length": len(found) - 1, "path": found}, {}, vertices
    )


@_algorithm()
def bipartite() -> Job:
    """Find the two sides of a bipartite graph, or an odd cycle."""

    def facts(found: tuple[Any, Any]) -> dict[str, Any]:
        sides, cycle = found
        if sides is None:
            return {"bipartite": False, "odd_cycle": cycle}
        right = int(sides.to_dense().sum())
        return {"bipartite": True, "side_0": sides.size - right, "side_1": right}

    return Job("bipartite_sides", facts, vector=lambda found: found[0])


@_algorithm()
def cores() -> Job:
    """Find the core number of each vertex of a graph."""

    def facts(found: Vector) -> dict[str, Any]:
        numbers = found.to_dense()
        largest = int(numbers.max())
        return {"largest_core": largest, "vertices_in_it": int((numbers == largest).sum())}

    return Job("core_number", facts)


@_algorithm(share=flag("--clustering", "Clustering coefficients instead."))
def triangles(share: bool) -> Job:
    """Count the triangles of an undirected graph, and of each vertex."""

    def facts(found: Vector) -> dict[str, Any]:
        total = found.reduce("plus").new().value
        if share:
            return {"mean": total / found.size, "clustering": ranking(found)}
        return {"triangles": total // 3, "triangles_of_vertex": ranking(found)}

    return Job("clustering" if share else "triangles", facts)


@_algorithm()
def order() -> Job:
    """Find the topological levels of a directed acyclic graph."""

    def facts(found: Vector) -> dict[str, Any]:
        sizes = np.bincount(found.to_dense())
        return {"levels": len(sizes), "widest_level": int(sizes.max())}

    return Job("topological_levels", facts)


@_algorithm(seed=SEED)
def independent(seed: int | None) -> Job:
    """Find a maximal independent set of a graph."""
    return Job(
        "maximal_independent_set", lambda found: {"members": found.nvals}, {"seed": seed},
        seed_for="the order of the vertices",
    )  # fmt: skip


row("list", "graphs.list_algorithms", "List all algorithms of the library, with one line each.",
    "as_json")  # fmt: skip
