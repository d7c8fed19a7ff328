"""Commands among the processes of mpirun: the first one prints and writes for all."""

import pytest

from lagpu.host import job


@pytest.fixture
def rank(monkeypatch):
    def become(number, size=3):
        monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", str(size))
        monkeypatch.setenv("OMPI_COMM_WORLD_RANK", str(number))
        monkeypatch.setattr(job, "_FIRST_SPEAKS_SECONDS", 0.0)

    return become


@pytest.mark.parametrize("suffix", ["npz", "txt"])
def test_the_first_process_prints_and_writes(run, rank, tmp_path, suffix):
    command = ["bfs", "kron:5", "--source", "1", "-b", "cpu", "--check"]
    for number in (1, 2, 0):
        rank(number)
        file = tmp_path / f"{number}.{suffix}"
        page = tmp_path / f"{number}.html"
        code, out, err = run(*command, "--save", file, "--trace", page)
        assert (code, err) == (0, "")
        assert bool(out) == file.exists() == page.exists() == (number == 0)
    assert not list(tmp_path.glob(".*"))


def test_the_first_process_writes_reports(run, rank, tmp_path):
    for number in (1, 0):
        rank(number)
        file = tmp_path / f"{number}.json"
        code, _, err = run("graph500", "--scale", 4, "-b", "cpu", "--roots", 2, "--json", file)
        assert (code, err) == (0, "")
        assert file.exists() == (number == 0)


def test_every_process_ends_with_the_code_of_an_error(run, rank):
    for number in (0, 1):
        rank(number)
        assert run("bfs", "kron:5", "--source", "99", "-b", "cpu")[0] == 2
        assert run("bfs", "kron:5", "--nothing")[0] == 2
