"""Data sets by name and by URL: checked, written whole or not at all, downloaded once."""

import hashlib
import http.server
import threading
from pathlib import Path

import pytest
from readback import edges, read_cpu

from lagpu.errors import FileFormatError, FileMissing, InvalidValue, LagpuError
from lagpu.io import fetch

TEXT = b"0 1\n1 2\n"
SUM = hashlib.sha256(TEXT).hexdigest()


class Answers(http.server.BaseHTTPRequestHandler):
    """A server that counts, and says of ``short`` that it is longer."""

    count = 0

    def do_GET(self):
        type(self).count += 1
        if self.path.startswith("/missing"):
            self.send_error(404 if self.path.endswith("txt") else 500)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(TEXT) + 5 * ("short" in self.path)))
        self.end_headers()
        self.wfile.write(TEXT)

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    Answers.count = 0
    with http.server.HTTPServer(("127.0.0.1", 0), Answers) as found:
        thread = threading.Thread(target=found.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{found.server_port}"
        found.shutdown()
        thread.join()


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "made" / "graphs"


def content(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_url_is_downloaded_once(server, folder):
    path = fetch(f"{server}/some/two%20.txt?key=1#part", folder=folder, sha256=SUM.upper())
    assert path == folder / "two .txt"
    assert edges(read_cpu(path)) == [(0, 1), (1, 2)]
    assert (folder / "SHA256SUMS").read_text() == f"{SUM}  two .txt\n"
    assert fetch(f"{server}/some/two%20.txt", folder=str(folder)) == path
    assert Answers.count == 1
    fetch(f"{server}/other.txt", folder=folder)
    assert (folder / "SHA256SUMS").read_text() == f"{SUM}  two .txt\n{SUM}  other.txt\n"
    assert fetch("other", folder=folder) == folder / "other.txt"
    assert Answers.count == 2


def test_a_file_of_this_machine(tmp_path, folder, monkeypatch):
    source = tmp_path / "x.tsv.gz"
    source.write_bytes(TEXT)
    monkeypatch.setenv("LAGPU_DATA", str(folder))
    assert fetch(source.as_uri()).read_bytes() == TEXT
    for name in ("x.tsv.gz", "x"):
        assert fetch(name, sha256=SUM) == folder / "x.tsv.gz"


def test_what_is_downloaded_is_kept_only_if_it_is_right(server, folder):
    with pytest.raises(FileFormatError, match=rf"fetch: a\.txt has the SHA-256 {SUM}, not 0000"):
        fetch(f"{server}/a.txt", folder=folder, sha256="0" * 64)
    with pytest.raises(LagpuError, match=r"short\.txt.* 8 |IncompleteRead|8 bytes read"):
        fetch(f"{server}/short.txt", folder=folder)
    assert content(folder) == []
    fetch(f"{server}/a.txt", folder=folder)
    (folder / "a.txt").write_bytes(TEXT + b"2 3\n")
    for name in ("a", "a.txt", f"{server}/a.txt"):
        with pytest.raises(FileFormatError, match=rf"not {SUM}\. Remove it if it is damaged"):
            fetch(name, folder=folder)


def test_a_download_that_is_interrupted_leaves_nothing(server, folder, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("lagpu.host.progress.Task.__call__", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fetch(f"{server}/a.txt", folder=folder)
    assert content(folder) == []


def test_names(folder):
    folder.mkdir(parents=True)
    for name in ("a.mtx", "a.txt", "b.tar.gz", "c"):
        (folder / name).write_bytes(TEXT)
    assert fetch("b", folder=folder) == folder / "b.tar.gz"
    assert fetch("c", folder=folder) == folder / "c"  # no checksum is known
    assert fetch("a.txt", folder=folder) == folder / "a.txt"
    with pytest.raises(InvalidValue, match=r"fetch: a is a\.mtx, a\.txt in .*whole name of one"):
        fetch("a", folder=folder)
    with pytest.raises(FileMissing, match=r"fetch: there is no d in .*\. Give a URL to download"):
        fetch("d", folder=folder)
    with pytest.raises(FileFormatError, match=r"c has the SHA-256"):
        fetch("c", folder=folder, sha256="0" * 64)


@pytest.mark.parametrize("name", ["../c", "/etc/passwd", "sub/c", "..", "", "SHA256SUMS", "a\nb"])
def test_names_do_not_lead_elsewhere(folder, name):
    folder.mkdir(parents=True)
    (folder.parent / "c").write_bytes(TEXT)
    with pytest.raises(InvalidValue, match=r"fetch: .* (no name of a file|is a path, not a name)"):
        fetch(name, folder=folder)


@pytest.mark.parametrize("end", ["/", "/..", "/%2e%2e", "/SHA256SUMS", "/a%0ab", "/x%5Cy", ""])
def test_urls_do_not_lead_elsewhere(server, folder, end):
    with pytest.raises(InvalidValue, match=r"has no name of a file at its end"):
        fetch(f"{server}{end}", folder=folder)
    path = fetch(f"{server}/..%2F..%2Fa.txt", folder=folder)
    assert path == folder / "a.txt"


def test_what_cannot_be_fetched(server, folder, monkeypatch, tmp_path):
    monkeypatch.delenv("LAGPU_DATA", raising=False)
    with pytest.raises(
        InvalidValue, match=r"there is no folder\. Give folder=\.\.\., or set LAGPU_"
    ):
        fetch("a")
    with pytest.raises(FileMissing, match=r"there is no folder .*Create it"):
        fetch("a", folder=folder)
    with pytest.raises(InvalidValue, match=r"sha256 'abc' is not 64 hexadecimal digits"):
        fetch("a", folder=tmp_path, sha256="abc")
    with pytest.raises(InvalidValue, match=r"sftp:// is not supported"):
        fetch("sftp://host/a.txt", folder=folder)
    with pytest.raises(FileMissing, match=r"missing\.txt: the server answers 404"):
        fetch(f"{server}/missing.txt", folder=folder)
    with pytest.raises(InvalidValue, match=r"missing: the server answers 500"):
        fetch(f"{server}/missing", folder=folder)
    with pytest.raises(LagpuError, match=r"fetch: file://.*: "):
        fetch((tmp_path / "none.txt").as_uri(), folder=folder)
    with pytest.raises(InvalidValue, match=r"fetch: http://127\.0\.0\.1:9/a\.txt: "):
        fetch("http://127.0.0.1:9/a.txt", folder=folder)
    assert not folder.exists() or content(folder) == []
    assert isinstance(folder, Path)
