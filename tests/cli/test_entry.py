"""What every command has: help, completion, messages, and one voice among processes of mpirun."""

import contextlib
import json
import re
from pathlib import Path

import pytest

from lagpu.cli import entry
from lagpu.host import job


@pytest.fixture
def rank(monkeypatch):
    def become(number, size=3):
        monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", str(size))
        monkeypatch.setenv("OMPI_COMM_WORLD_RANK", str(number))
        for waits in ("_FIRST_SPEAKS_SECONDS", "_OTHERS_JOIN_SECONDS"):
            monkeypatch.setattr(job, waits, 0.0)

    return become


ALL_OF_IT = "lagpu: 3 processes each do all of this; --grid all shares it out.\n"


@pytest.mark.parametrize("suffix", ["npz", "txt"])
def test_the_first_process_prints_and_writes(run, rank, tmp_path, suffix):
    command = ["bfs", "kron:5", "--source", "1", "-b", "cpu", "--check"]
    for number in (1, 2, 0):
        rank(number)
        file = tmp_path / f"{number}.{suffix}"
        page = tmp_path / f"{number}.html"
        code, out, err = run(*command, "--save", file, "--trace", page)
        assert (code, err) == (0, "" if number else ALL_OF_IT)
        assert bool(out) == file.exists() == page.exists() == (number == 0)
    assert not list(tmp_path.glob(".*"))


def test_the_first_process_writes_reports(run, rank, tmp_path):
    for number in (1, 0):
        rank(number)
        file = tmp_path / f"{number}.json"
        code, _, err = run("graph500", "--scale", 4, "-b", "cpu", "--roots", 2, "--json", file)
        assert (code, err) == (0, "" if number else ALL_OF_IT)
        assert file.exists() == (number == 0)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("bfs path:4 --source 1 -b cpu --json", ALL_OF_IT),
        ("pagerank path:4 -b cpu --json", ALL_OF_IT),
        ("bfs path:4 --source 1 --grid 1:cpu --json", ""),
        ("bfs path:4 --source 1 -b grid:1:cpu --json", ""),
        ("backends --json", ""),  # takes no --grid
        ("bfs --help", ""),
    ],
)
def test_the_first_process_says_that_each_does_all(run, rank, monkeypatch, words, said):
    """On stderr, so that JSON is only JSON; a process alone, and other commands, say nothing."""
    monkeypatch.setattr("lagpu.backends.launched", lambda: None)  # a grid of this process alone
    assert run(*words.split())[2] == ""
    rank(1)
    assert run(*words.split())[2] == ""
    rank(0)
    code, out, err = run(*words.split())
    assert (code, err) == (0, said)
    if "--json" in words:
        json.loads(out)


def test_every_process_ends_with_the_code_of_an_error(run, rank):
    for number in (0, 1):
        rank(number)
        assert run("bfs", "kron:5", "--source", "99", "-b", "cpu")[0] == 2
        assert run("bfs", "kron:5", "--nothing")[0] == 2


COMMAND = "bfs kron:5 --source 1 -b cpu"


@pytest.mark.parametrize(
    ("one", "other", "differ"),
    [
        (COMMAND, "bfs --backend=cpu -s 1 kron:5 --output levels", []),
        (COMMAND + " --json", "--debug " + COMMAND, []),
        (COMMAND + " --save a/b.npz", COMMAND + " --save c.txt", []),
        (COMMAND, "bfs kron:5 -s 2 -b cpu", [("--source 1", "--source 2")]),
        (COMMAND, COMMAND.replace("5", "6"), [("GRAPH kron:5", "GRAPH kron:6")]),
        (
            COMMAND,
            COMMAND + " --check --seed 3",
            [("no --seed", "--seed 3"), ("no --check", "--check")],
        ),
        (COMMAND, COMMAND + " --save c.txt", [("no --save", "--save")]),
        (COMMAND + " --directed", COMMAND + " --undirected", [("--directed", "--undirected")]),
        (COMMAND, COMMAND + " --undirected", [("no --directed", "--undirected")]),
        ("pagerank kron:5 --alpha .5", "pagerank kron:5 --alpha 0.5", []),
        ("pagerank kron:5", "pagerank kron:5 --alpha 0.5", [("--alpha 0.85", "--alpha 0.5")]),
        (
            "bench kron:5 kron:6 -b cpu",
            "bench kron:5 -b cpu -b sim",
            [
                ("[GRAPH]... kron:5 kron:6", "[GRAPH]... kron:5"),
                ("--backend cpu", "--backend cpu sim"),
            ],
        ),
    ],
)
def test_what_processes_compare(monkeypatch, run, one, other, differ):
    """The values, defaults included; not the words, nor what only the first process writes."""
    given = []

    @contextlib.contextmanager
    def instead(phrases):
        given.append(phrases)
        raise SystemExit(2)
        yield

    monkeypatch.setattr(entry, "running", instead)
    assert [run(*words.split())[0] for words in (one, other)] == [2, 2]
    assert [pair for pair in zip(*given, strict=True) if len(set(pair)) > 1] == differ


def test_a_grid_sees_the_command_while_it_runs(monkeypatch, run):
    seen = []
    monkeypatch.setattr("lagpu.cli.graphs.list_backends", lambda **_: seen.append(job.command()))
    assert run("backends")[0] == 0
    assert (seen, job.command()) == ([["the command backends"]], ("no command",))


# ------------------------------------------------------------------------------ first contact


def test_help_and_version_have_short_names(run):
    assert run("-h") == run("--help")
    assert run("bfs", "-h") == run("bfs", "--help")
    assert run("-V") == run("--version")


COMMANDS = [[], *([name] for name in sorted(entry._command().commands))]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_flag_has_no_type_and_no_word_is_torn(run, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "80")
    text = run(*command, "--help")[1]
    assert "<bool>" not in text
    assert "…" not in text  # a word that is wider than its column is cut
    assert set(re.findall(r"<[a-z|]+\s", text)) <= {"<int ", "<float "}  # "<int range>"


def test_completion(run, monkeypatch):
    assert "No such option" not in run("--show-completion")[2]  # the rest is up to the shell
    for words, found in {"lagpu b": "bfs", "lagpu bfs kron:5 --sou": "--source"}.items():
        monkeypatch.setenv("_LAGPU_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
        assert found in run()[1].split()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            "bfs path:3 --source a",
            "'a' is no vertex. Give a number, or --renumber if",
        ),
        ("sssp path:3 -s 0 --delta x", "'x' is not a number. See"),
        ("bfs path:3 -s 0 --seed -1", "'-1' is below 0. See"),
        ("pagerank path:3 --max-iter 9999999", "'9999999' is above 1000000. See"),
        ("bfs path:3 -s 0 --output x", ": 'x' is not one of 'levels', 'parents', 'paths'. See"),
        ("bfs path:3 --source", "'--source' requires an argument. See `lagpu bfs --help`."),
        ("--version=3", "does not take a value. See `lagpu --help`."),
        ("bsf", "No such command 'bsf'. Did you mean 'bfs'? See `lagpu --help`."),
        ("info kron:abc", "'kron:abc' does not have the form kron:S or kron:S:E. Write kron:16."),
    ],
)
def test_what_is_wrong_in_words(refused, words, message):
    assert message in refused(*words.split())


def test_the_files_that_a_command_wrote(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = {"--save": "a.npz", "--trace": "b.html", "--step": "c.html"}
    wrote = [f"{option}: wrote {file}\n" for option, file in files.items()]
    words = [word for pair in files.items() for word in pair]
    code, out, err = run("bfs", "path:3", "-s", 0, "-b", "cpu", *words)
    assert (code, err) == (0, "")
    assert out.endswith("".join(wrote))
    code, out, err = run("bfs", "path:3", "-s", 0, "-b", "cpu", *words, "--json")
    assert json.loads(out)["reached"] == 3
    assert err == "".join(f"lagpu: {line}" for line in wrote)
    assert "--save: wrote a.npz" in run("cores", "path:3", "-b", "cpu", "--save", "a.npz")[1]
    assert "wrote" not in run("bipartite", "cycle:3", "-b", "cpu", "--save", "d.npz")[1]
    assert not Path("d.npz").exists()


@pytest.mark.parametrize("command", ["bfs path:3 -s 0", "cores path:3"])
def test_the_time_of_loading(run, command):
    assert (
        "ms to make or read the graph and bring it to cpu" in run(*command.split(), "-b", "cpu")[1]
    )
    assert json.loads(run(*command.split(), "-b", "cpu", "--json")[1])["load_ms"] > 0


def test_a_file_in_place_of_a_command(run, tmp_path):
    file = tmp_path / "g.txt"
    file.write_text("0 1\n")
    code, _, err = run(file)
    assert code == 2
    assert f"{file} is a file, not a command. Write `lagpu info {file}`. See" in err
