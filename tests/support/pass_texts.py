"""The texts of generated loops, and what tests of passes count in them."""

import re


def written_texts(monkeypatch):
    """The texts of kernels that are written from now on."""
    return _written(monkeypatch, lambda text, kernel: text)


def written_kernels(monkeypatch):
    """The kernels of generated loops that are written from now on; none is kept from before."""
    return _written(monkeypatch, lambda text, kernel: kernel)


def _written(monkeypatch, chosen):
    from lagpu.backends.gpu.fused.program import run, text
    from lagpu.loops import loop

    found, inner = [], text.from_source

    def recorded(source, *args, **macros):
        kernel = inner(source, *args, **macros)
        found.append(chosen(source, kernel))
        return kernel

    monkeypatch.setattr(loop, "_known", {})
    monkeypatch.setattr(run, "_programs", {})
    monkeypatch.setattr(text, "from_source", recorded)
    return found


def shape_of(text):
    """(passes, barriers of their own in an iteration, held passes) of a kernel.

    The barrier of the rare look whether the host stops the loop does not count.
    """
    body = text[text.index("for (u64 depth") :]
    body = re.sub(r"if \(looks_alone\(turn\)\) \{.*?\n\}", "", body, flags=re.S)
    return (
        body.count("each_tile("),
        len(re.findall(r"^grid_sync", body, re.M)),
        body.count("here[1]"),
    )
