"""One shape of a command: check options, load, run, check the result, save it, and print it."""

from __future__ import annotations

import inspect
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from lagpu import algorithms, backends, io, versions
from lagpu import check as checkers
from lagpu.algorithms.betweenness import is_directed
from lagpu.backends.guard import overridden
from lagpu.backends.protocol import of_all
from lagpu.catalog import ALGORITHMS, PROOFS, Algorithm
from lagpu.cli import commands, console
from lagpu.cli.check import SEARCHES, read_result
from lagpu.cli.commands import REQUIRED, SHORTEST, TOP, Declared, Job, Options, groups, ranking
from lagpu.cli.graphs import Begin, Names, facts_of, load
from lagpu.core import Matrix, Vector
from lagpu.errors import CheckFailed, InvalidValue
from lagpu.generators.load import Facts
from lagpu.host.files import os_errors_named, replacing
from lagpu.host.fitting import FittingTable
from lagpu.observe.step import step
from lagpu.observe.step.drawing import page_of_runs, require_size
from lagpu.observe.trace import Row, Trace, trace

# The longest run that is repeated, to be timed without what only the first one does; and where
# that compiles kernels.
_AGAIN_MS, _AGAIN_COMPILED_MS = 1000.0, 10_000.0
_HEADINGS = {"farthest": "distance"}
_VERDICTS = {None: "not requested (--check)", True: "passed", False: "FAILED"}
# Options of several vertices, and facts whose values are vertices, or lists of these.
_LISTS = ("--sources", "--targets")
_VERTICES = ("source", "target", "begin", "end", "path", "odd_cycle", "cycle", "first_members")
_APART = ("algorithm", "edges_kind", "warm", "load_ms", "ms", "backend", "checked", "versions")


def run(options: Options, job: Job, **given: Any) -> None:
    Command(options, job).run(**given)


def bfs(
    options: Options, source: str | None, sources: str | None, each: bool, output: str, **given: Any
) -> None:
    Search(options, Begin(source, sources, each), str(output)).run(**given)


class Command:
    """A command that runs one algorithm; `run` is its shape, other methods are its steps."""

    by_names = "--renumber"  # what a result that is a matrix has no place for

    def __init__(self, options: Options, job: Job) -> None:
        self.options, self.job = options, job
        self.saved_as = (".npz", ".mtx") if job.is_matrix else console.SAVED  # suffixes

    def run(
        self, *, check: bool, as_json: bool, save: Path | None = None,
        step_file: Path | None = None, trace_file: Path | None = None,
    ) -> None:  # fmt: skip
        """Run the algorithm, prove and save the result if requested, and print it.

        Bad options are rejected before the graph is read. A wrong result is printed, not saved, and
        then raised.
        """
        options, job = self.options, self.job
        console.require_file("--trace", trace_file, (".html", ".json"))
        console.require_file("--step", step_file, (".html",))
        if trace_file and step_file and trace_file.resolve() == step_file.resolve():
            fact = f"{step_file} is also the file of --trace"
            raise InvalidValue(f"--step: {fact}. Give another one.")
        if options.renumber and step_file is not None:
            raise InvalidValue("--step: shows vertices by number. Leave --renumber out.")
        self.require(save, step_file)
        if not options.renumber:
            self.start(Names())
        console.require_file("--save", save, self.saved_as)
        place = overridden(backends.get(options.backend), options.kernel, options.policy)
        A, names, load_ms = load(options, place, dup_op=job.dup_op, seed_for=job.seed_for)
        start = self.start(names)
        if step_file is not None:
            require_size(A.nrows, "the graph", "--step")
        facts = facts_of(A)
        with console.busy(f"{job.algorithm} on {A.backend.name}"):
            result, ms, said = self.measure(A, start, facts)
        refusal = self.refusal(A, start, result) if check else None
        found = {
            "graph": options.graph, "vertices": facts.vertices, "edges": facts.edges,
            "edges_kind": facts.kind, **_named(said, names), "load_ms": load_ms,
            "ms": ms, "backend": A.backend.name,
            "checked": refusal is None if check else None, "versions": versions.versions(),
        }  # fmt: skip
        saved = save if refusal is None and self.write(result, save, names) else None
        if as_json:
            console.print_json(found)
        else:
            self.print(found)
        if trace_file is not None:
            with os_errors_named("--trace", trace_file):
                self.write_trace(found, trace_file)
        if step_file is not None:
            steps = step(lambda: self.call(A, *start))
            shown = {"graph": options.graph, "on": A.backend.name}
            html = page_of_runs({(): steps}, self.title(start), shown, what="--step")
            with os_errors_named("--step", step_file), replacing(step_file) as stream:
                stream.write(html.encode())
        files = {"--save": saved, "--trace": trace_file, "--step": step_file}
        console.print_written(files, as_json=as_json)
        if refusal is not None:
            raise refusal

    def require(self, save: Path | None, step_file: Path | None) -> None:
        """Raise for options that do not fit together."""
        if self.job.is_matrix and self.options.renumber and save is not None:
            fact = "--save: a matrix has no place for names"
            raise InvalidValue(f"{fact}. Leave {self.by_names} out.")

    def start(self, names: Names) -> tuple[Any, ...]:
        """Return the arguments of the algorithm after the graph."""
        given = self.job.vertices
        kinds = self.job.kinds or ["vertices" if x in _LISTS else "vertex" for x in given]
        texts = zip(given.items(), kinds, strict=True)
        return tuple(_read(names, *option, kind) for option, kind in texts)

    def measure(
        self, A: Matrix, start: tuple[Any, ...], facts: Facts
    ) -> tuple[Any, float, dict[str, Any]]:
        """Run the algorithm, twice if that takes little time; return result, time and facts."""
        result, ms = self.timed(A, start)
        slowest = max(its for (its,) in of_all(A.backend, ms))
        warm = slowest <= (_AGAIN_COMPILED_MS if A.backend.capabilities.sources_hash else _AGAIN_MS)
        if warm:
            result, ms = self.timed(A, start)
        said = {"algorithm": self.job.algorithm, **self.job.facts(result, *start), "warm": warm}
        return result, ms, said

    def timed(self, A: Matrix, start: tuple[Any, ...]) -> tuple[Any, float]:
        begin = time.perf_counter()
        result = self.call(A, *start)
        if isinstance(result, Vector):  # the loop has counted the entries of a matrix
            result.wait()
        return result, (time.perf_counter() - begin) * 1e3

    def call(self, A: Matrix, *start: Any) -> Any:
        return self.job.run(A, *start)

    def prove(self, A: Matrix, *found: Any) -> None:
        """Raise `CheckFailed` if the last one, the result, is wrong."""
        if self.job.prove is None:
            PROOFS[self.job.algorithm](A, *found)
        else:
            self.job.prove(checkers, A, *found)

    def refusal(self, A: Matrix, start: tuple[Any, ...], result: Any) -> CheckFailed | None:
        """Return why the result is wrong, or None."""
        with console.busy(f"checking {self.job.algorithm}"):
            try:
                self.prove(A, *start, result)
            except CheckFailed as error:
                return error
        return None

    def write(self, result: Any, save: Path | None, names: Names) -> bool:
        """Write a result to a file; return whether there are both."""
        if save is None:
            return False
        entries = self.job.vector(result)
        if entries is None:
            console.note("--save: there is no result to write.")
        elif isinstance(entries, Matrix):
            io.write(entries, save)
        else:
            indices, values = entries.to_coo()
            values = names.of(values) if self.job.of_vertices else values
            io.write_vector(names.of(indices), values, save)
        return entries is not None

    def title(self, start: tuple[Any, ...]) -> str:
        return self.job.algorithm

    def write_trace(self, found: dict[str, Any], file: Path) -> None:
        """Write the trace of a command that has one."""

    def print(self, found: dict[str, Any]) -> None:
        lines = {name: value for name, value in found.items() if name not in _APART}
        lines["edges"] = f"{found['edges']:,} {found['edges_kind']}"
        when = "after a warm-up" if found["warm"] else "the first run"
        lines |= _load_and_time(found, found["algorithm"], when)
        lines["check"] = _VERDICTS[found["checked"]]
        rankings = {name: lines.pop(name) for name in [*lines] if _is_ranking(lines[name])}
        console.print_lines({name.replace("_", " "): _shown(x) for name, x in lines.items()})
        tables: dict[str, dict[str, Any]] = {}  # of numbers of the same vertices
        for name, pairs in rankings.items():
            tables.setdefault(str([place for place, _ in pairs]), {})[name] = pairs
        for columns in tables.values():
            names = [_HEADINGS.get(name, name.replace("_", " ")) for name in columns]
            of_edges = any(isinstance(pairs[0][0], list) for pairs in columns.values())
            table = FittingTable("vertices" if of_edges else "vertex", *names)
            for pairs in zip(*columns.values(), strict=True):
                place = " ".join(map(str, pairs[0][0])) if of_edges else str(pairs[0][0])
                table.add_row(place, *(_shown(number) for _, number in pairs))
            if table.row_count == TOP:
                table.caption = f"the {TOP} largest"
            console.show(table)


def _load_and_time(found: dict[str, Any], what: str, when: str) -> dict[str, str]:
    """Return how long the graph and the algorithm took, in words."""
    place = found["backend"]
    return {
        "load": f"{found['load_ms']:,.3f} ms to make or read the graph and bring it to {place}",
        "time": f"{found['ms']:,.3f} ms for {what} on {place}, {when}",
    }


def _named(found: dict[str, Any], names: Names) -> dict[str, Any]:
    """Return facts with the user's names of the vertices."""

    def shown(name: str, value: Any) -> Any:
        if _is_ranking(value):
            return [[names.shown(pair[0]), *pair[1:]] for pair in value]
        is_list = f"--{name}" in _LISTS and isinstance(value, list)  # else it is a count
        return names.shown(value) if name in _VERTICES or is_list else value

    return {name: shown(name, value) for name, value in found.items()}


def _is_ranking(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], list)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.6g}"
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


# ---- ``lagpu bfs``: measure a search, and show the cost of each level

Level = dict[str, Any]
_FIRST, _LAST = 24, 8  # rows of a long table
_WORDS = ("direction", "kernel")
_PHASES = ("expand", "share", "expansion", "fold", "update")


class Search(Command):
    """A search from one vertex, from the nearest of several, or from each of several."""

    by_names = "--each or --renumber"

    def __init__(self, options: Options, begin: Begin, output: str) -> None:
        self.begin, self.output = begin, output
        name = SEARCHES[begin.kind].get(output, "")
        super().__init__(options, Job(name, of_vertices=output == "parents", is_matrix=begin.each))

    def require(self, save: Path | None, step_file: Path | None) -> None:
        begin = self.begin
        begin.require_one("bfs")
        super().require(save, step_file)
        if not self.job.algorithm:
            each = " or parents with --each" if begin.each else ", or add --each for parents"
            fact = f"{self.output} is for one source. From several, use levels{each}"
            raise InvalidValue(f"--output: {fact}.")
        if begin.kind and step_file is not None:
            raise InvalidValue("--step: shows one search. Give --source, or leave it out.")
        if begin.each and save is not None and save.suffix not in self.saved_as:
            raise InvalidValue(
                f"--save: {save.name} cannot have a row for each source. Use .npz or .mtx."
            )

    def start(self, names: Names) -> tuple[Any, ...]:
        return (self.begin.start("bfs", names),)

    def measure(
        self, A: Matrix, start: tuple[Any, ...], facts: Facts
    ) -> tuple[Any, float, dict[str, Any]]:
        """Search to warm up (kernels compile), to be timed, to warm up again, and to be traced.

        A traced search that is fused runs another variant of the timed one's kernel: one that logs;
        or the same one, if that has no such variant.
        """
        self.timed(A, start)
        result, ms = self.timed(A, start)
        with trace() as cold:
            self.job.run(A, *start)
        with trace() as traced:
            self.job.run(A, *start)
        self.traced, self.compile_ms = traced, cold.totals().compile_ms
        if traced.totals().unlogged:  # no rows by level; another search has the same depth
            depth = int(algorithms.bfs_levels_multi(A, start[0]).reduce("max").new().value)
        else:  # levels that did not fit the log included
            a_level = sum(row.level == 0 for row in traced.rows)
            depth = len(_products(traced)) + traced.totals().unrecorded // max(a_level, 1) - 1
        reached = _rows(result)
        traversed = sum(map(facts.edges_from, reached))
        each = {"sources": start[0], "each": self.begin.each}
        said = {
            **(each if self.begin.kind else {"source": start[0]}), "output": self.output,
            "reached": sum(map(len, reached)), "depth": depth,  # its product is empty
            "edges_traversed": traversed, "mteps": traversed / ms / 1e3,
            "levels": [_level(row) for row in _products(traced)],
        }  # fmt: skip
        return result, ms, said

    def title(self, start: tuple[Any, ...]) -> str:
        return f"{self.job.algorithm} from vertex {start[0]}"

    def write_trace(self, found: dict[str, Any], file: Path) -> None:
        if file.suffix == ".json":
            self.traced.to_json(file)
            return
        facts = {
            "graph": found["graph"],
            "vertices": f"{found['vertices']:,}",
            "edges": f"{found['edges']:,} {found['edges_kind']}",
            "search": f"{found['output']} from {_begin(found)}, {found['reached']:,} reached",
            "backend": f"{found['backend']}, lagpu {found['versions']['lagpu']}",
            "untraced": f"{found['ms']:.3f} ms, after a warm-up",
            "compiling": f"{self.compile_ms:.1f} ms in the traced run before this one",
        }
        self.traced.to_html(file, title=f"lagpu bfs {found['graph']}", facts=facts)

    def print(self, found: dict[str, Any]) -> None:
        searches = len(found["sources"]) if found.get("each") else 1
        share = found["reached"] / (found["vertices"] * searches)
        edges = found["edges_traversed"]
        lines = {
            "graph": found["graph"],
            "vertices": f"{found['vertices']:,}",
            "edges": f"{found['edges']:,} {found['edges_kind']}",
            "reached": f"{found['reached']:,} ({share:.1%}) from {_begin(found)}",
            "depth": f"{found['depth']:,}",
            **_load_and_time(found, found["output"], "untraced, after a warm-up"),
            "rate": f"{found['mteps']:,.1f} MTEPS: each of {edges:,} edges once",
            "check": _VERDICTS[found["checked"]],
        }
        console.print_lines(lines)
        console.show(*_tables(found["levels"]))


def _rows(result: Vector | Matrix) -> list[np.ndarray[Any, Any]]:
    """Return the vertices that each search has reached."""
    if isinstance(result, Vector):
        return [result.to_coo()[0]]
    start, vertices, _ = result.to_csr()
    return np.split(vertices, start[1:-1])


def _products(traced: Trace) -> list[Row]:
    return [row for row in traced.rows if row.method in ("mxv", "matrix_mxm")]


def _begin(found: dict[str, Any]) -> str:
    """Return the sources of the search in words."""
    if "source" in found:
        return f"vertex {found['source']}"
    return f"{'each of' if found['each'] else 'the nearest of'} {len(found['sources'])} vertices"


def _level(row: Row) -> dict[str, Any]:
    words = {name: getattr(row, name) or None for name in ("direction", "kernel", "reason")}
    found = {"level": row.level, "frontier": row.nvals_in, "edges": row.edges, **words}
    phases = {"phases": [asdict(phase) for phase in row.phases]} if row.phases else {}
    return found | {"ms": row.kernel_ms} | phases


def _tables(levels: list[Level]) -> Iterator[FittingTable]:
    """Yield the table of levels; of a grid's search also its ms by phase or piece, and messages."""
    by_level = all(level["level"] is not None for level in levels)
    what = "is for the product alone" if by_level else "is for the kernel, which keeps no log"
    rows = [{"edges examined": level["edges"], **level} for level in levels]
    columns = ["frontier", "edges examined", *_WORDS, "ms"]
    yield _by_level(rows, columns, f"from a second, traced run; ms {what}")
    phases = [level.get("phases", ()) for level in levels]
    names = list(dict.fromkeys(phase["name"] for of_level in phases for phase in of_level))
    names.sort(key=lambda name: _PHASES.index(name) if name in _PHASES else len(_PHASES))
    if names:
        rows = [
            level | _summed((phase["name"], phase["ms"]) for phase in of_level)
            for level, of_level in zip(levels, phases, strict=True)
        ]
        of = "phase" if names[0] in _PHASES else "piece"
        yield _by_level(rows, names, f"ms of this process, by {of}")
    sent = [[message for phase in of_level for message in phase["sent"]] for of_level in phases]
    forms = sorted({message["form"] for of_level in sent for message in of_level})
    if forms:
        rows = [
            level | _summed((m["form"], np.array([m["bytes"], m["messages"]])) for m in of_level)
            for level, of_level in zip(levels, sent, strict=True)
        ]
        yield _by_level(rows, forms, "bytes that this process sent, in messages, by form")


def _summed(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return the sum of the numbers of each name."""
    found: dict[str, Any] = {}
    for name, number in pairs:
        found[name] = found.get(name, 0) + number
    return found


def _by_level(rows: list[Level], columns: list[str], caption: str) -> FittingTable:
    """Return a table with a row for each level, and one row for the middle of a long one."""
    table = FittingTable(caption=caption, common=_WORDS)
    for name in ("level", *columns):
        table.add_column(name, justify="left" if name in _WORDS else "right")
    groups = [[row] for row in rows]
    if len(rows) > _FIRST + _LAST + 1:
        groups[_FIRST:-_LAST] = [rows[_FIRST:-_LAST]]
    for group in groups:
        level = "all" if group[0]["level"] is None else str(group[0]["level"])
        label = level if len(group) == 1 else f"{len(group)} more"
        table.add_row(label, *(_cell([row.get(name) for row in group]) for name in columns))
    return table


def _cell(values: list[Any]) -> str:
    """Return the cell of one level, or of several together."""
    known = [value for value in values if value is not None]
    if not known:
        return "-"
    if isinstance(known[0], str):
        return known[0] if values == [known[0]] * len(values) else "..."
    total = sum(known)
    if isinstance(total, np.ndarray):
        return f"{total[0]:,} in {total[1]:,}"
    return f"{total:.3f}" if isinstance(total, float) else f"{total:,}"


# ---- ``lagpu run``: any algorithm, with options by its signature, docstring and rows of the table
# Kinds of arguments that are texts, by their words in the help; by facts and names of parameters.
_METAVARS = {x: x.upper() for x in ("vertex", "vertices", "pairs")}
_METAVARS |= {"weights": "VERTICES|FILE", "number": "NUMBER|FILE", "vector": "FILE"}
_FACTS = {"source": "vertex", "target": "vertex", "sources": "vertices", "few": "vertices"}
_KINDS = _FACTS | dict.fromkeys(("targets", "nodes", "nbunch", "u", "v", "path"), "vertices")
_KINDS["pairs"] = "pairs"
_OF_GRAPH = ("directed", "undirected")  # set by options of the graph
# Right results are right with any of these.
_ANY = {
    *("seed", "nstart", "order", "method", "batch", "pieces", "one_degree", "delta"),
    *("max_level", "max_iter"),
}
_OF_VERTICES = (  # values of the results
    *("bfs_parents", "connected_components", "strongly_connected_components"),
    *("label_propagation", "louvain", "maximal_matching", "topological_order"),
)
_OF_LENGTHS = (  # beside those that the table calls weighted
    *("betweenness_centrality", "edge_betweenness_centrality", "ego_graph"),
    "minimum_spanning_forest",
)
_RANKED = ("edge_betweenness_centrality", "similarity")  # matrices whose largest entries matter
_TITLES = {"shortest_path": "path", "find_negative_cycle": "cycle"}


def described(doc: str, section: str) -> dict[str, str]:
    """Return the text of each name in a section of a docstring."""
    found: dict[str, str] = {}
    names: list[str] = []
    for line in doc.partition(f"{section}\n{'-' * len(section)}\n")[2].splitlines():
        if not line:
            break
        if line[0] != " ":
            names = [name.strip() for name in line.partition(" : ")[0].split(",")]
            found |= dict.fromkeys(names, "")
        else:
            found |= {name: f"{found[name]} {line.strip()}".strip() for name in names}
    return found


def _kind(name: str, annotation: str, given: str) -> Any:
    """Return the type of an argument, or the kind of its text."""
    words = annotation.split(" | ")
    kind = _KINDS.get(name) or _FACTS.get(given)
    if kind is None and "Weights" in words:
        kind = "number" if words[0] == "float" else "weights"
    if kind is None and "Vector" in words:
        kind = "vector"
    return kind or {"bool": bool, "int": int, "float": float}.get(words[0], str)


class Call:
    """An algorithm as a command: its parameters after the matrix, and what is known of them."""

    def __init__(self, name: str) -> None:
        self.name, function = name, getattr(algorithms, name)
        signature = inspect.signature(function)
        self.doc = inspect.getdoc(function) or ""
        self.result = str(signature.return_annotation).removeprefix("tuple[")
        self.parameters = [*signature.parameters.values()][1:]
        self.rows = [row for row in ALGORITHMS if row.name == name]
        facts = self.rows[0].given if self.rows[0].call is None else ()
        given = [*facts, *[""] * len(self.parameters)]
        self.kinds = {
            x.name: _kind(x.name, x.annotation, fact)
            for x, fact in zip(self.parameters, given, strict=False)
            if x.name not in _OF_GRAPH
        }

    def options(self) -> dict[str, Declared]:
        said = described(self.doc, "Parameters")
        found: dict[str, Declared] = {}
        for parameter in self.parameters:
            name, default = parameter.name, parameter.default
            kind = self.kinds.get(name)
            help = said.get(name, "").replace("`", "")
            if kind is None:
                continue
            how: dict[str, Any] = {"metavar": _METAVARS[kind]} if isinstance(kind, str) else {}
            if name == "seed":
                found[name] = commands.SEED
            elif kind is bool and not default:
                found[name] = commands.flag(f"--{name.replace('_', '-')}", help)
            elif default is None:
                found[name] = commands.option(str if how else kind, help, **how)
            else:
                default = REQUIRED if default is parameter.empty else default
                text = str(default) if how and default is not REQUIRED else default
                found[name] = commands.value(str if how else kind, text, help, **how)
        return found

    def job(self, **values: Any) -> Job:
        names = [x for x, y in values.items() if isinstance(self.kinds[x], str) and y is not None]
        row = self.checker(values)
        lengths = self.name in _OF_LENGTHS or any(x.graph == "weighted" for x in self.rows)

        def call(A: Matrix, *read: Any) -> Any:
            given = values | dict(zip(names, read, strict=True))
            return getattr(algorithms, self.name)(A, **self.arguments(A, given))

        def prove(_: Any, A: Matrix, *read: Any) -> None:
            assert row is not None and row.check is not None  # noqa: PT018
            *texts, result = read
            given = self.arguments(A, values | dict(zip(names, texts, strict=True)))
            first = [given.pop(x.name) for x in self.parameters[: len(row.given)]]
            own = inspect.signature(row.check).parameters
            more = {x: y for x, y in given.items() if x in own and y is not None}
            row.check(A, *first, result, **more)

        return Job(
            self.name, lambda found, *_: self.facts(found), call=call,
            vertices={f"--{x.replace('_', '-')}": values[x] for x in names},
            kinds=[self.kinds[x] for x in names], prove=None if row is None else prove,
            vector=lambda found: found[0] if isinstance(found, tuple) else found,
            of_vertices=self.name in _OF_VERTICES and values.get("colors") is None,
            is_matrix=self.result.startswith("Matrix"),
            dup_op=SHORTEST if lengths else None,
            seed_for="the algorithm" if "seed" in values else "",
        )  # fmt: skip

    def arguments(self, A: Matrix, found: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments by name for the values of options, whose texts were read."""
        for x, y in found.items():
            if isinstance(y, tuple):  # indices and values
                found[x] = Vector.from_coo(*y, size=A.nrows, like=A, name=x)
        if any(x.name == "directed" for x in self.parameters):
            found["directed"] = is_directed(A, bool(found.get("weight")))
        return found

    def checker(self, values: dict[str, Any]) -> Algorithm | None:
        """Return a row whose checker proves results with these values, or None."""
        defaults = {x.name: x.default for x in self.parameters}
        changed = {x for x, y in values.items() if y != defaults[x] and y != str(defaults[x])}
        for row in self.rows:
            if row.check is None or row.call is not None or "sampled" in row.given:
                continue
            first = {x.name for x in self.parameters[: len(row.given)]}
            own = inspect.signature(row.check).parameters
            more = [*own.values()][2 + len(row.given) :]
            if any(x.default is x.empty and values.get(x.name) is None for x in more):
                continue
            known = first | {*own} | _ANY
            same = {x for x, y in row.options.items() if values.get(x) == y}
            if (changed | {*row.options}) - {"directed"} <= known | same:
                return row
        return None

    def facts(self, found: Any) -> dict[str, Any]:
        """Return what to print of the result."""
        if not isinstance(found, tuple):
            return self._facts(self.name, found)
        said: dict[str, Any] = {}
        for name, part in zip(described(self.doc, "Returns"), found, strict=True):
            said |= self._facts(name, part)
        return said

    def _facts(self, name: str, found: Any) -> dict[str, Any]:
        if isinstance(found, Matrix):
            size: dict[str, Any] = {"rows": found.nrows, "entries": found.nvals}
            return size | ({name: ranking(found)} if self.name in _RANKED else {})
        if not isinstance(found, Vector):
            return {_TITLES.get(name, name): found}
        if found.dtype.name == "BOOL":
            return {"members": found.nvals, "first_members": found.to_coo()[0][:TOP].tolist()}
        if self.rows[0].topic in ("parts", "communities"):
            return groups(found)
        if name in (*_OF_VERTICES, "parents"):
            return {"entries": found.nvals}
        return {name: ranking(found)}


def add(name: str, to: Any) -> None:
    call = Call(name)
    save = call.result.startswith(("Vector", "Matrix"))
    help = call.doc.partition("\n")[0].replace("`", "")
    commands.add_job(name, help, call.options(), call.job, save=save, to=to, body="run.run_any")


def run_any(options: Options, job: Job, check: bool, **given: Any) -> None:
    if check and job.prove is None:
        raise InvalidValue(
            f"--check: there is no checker of {job.algorithm} with these options. "
            "Leave it out, or the options."
        )
    run(options, job, check=check, **given)


def _read(names: Names, option: str, text: str, kind: str) -> Any:
    """Return what an option gives: vertices, or the indices and values of a vector."""
    if kind == "vertex":
        return names.vertex(text, option)
    if kind == "vertices":
        return names.vertices(text, option)
    if kind == "pairs":
        pairs = [names.vertices(pair.replace(":", ","), option) for pair in text.split(",")]
        if any(len(pair) != 2 for pair in pairs):
            raise InvalidValue(f"{option}: {text!r} is not a list of pairs. Write 0:5,3:4.")
        return pairs
    if kind != "vector" and Path(text).suffix not in console.SAVED:
        if kind == "weights":
            return dict.fromkeys(names.vertices(text, option), 1.0)
        try:
            return float(text)
        except ValueError:
            raise InvalidValue(f"{option}: {text!r} is no number and no file.") from None
    return read_result(Path(text), False, names, option == "--labels")
