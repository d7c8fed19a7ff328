"""Two traces compared, and the kernels that keep a log."""

import re
import subprocess

from lagpu.backends.gpu.device import sim

SAME = ("level", "method", "formula", "where", "shapes", "nvals_in", "nvals_out")


def same(fused, eager):
    """Whether two traces say the same of each statement, in the same order."""
    left, right = (
        [[getattr(row, name) for name in SAME] for row in t.rows] for t in (fused, eager)
    )
    assert left == right
    return True


def preprocessed(kernel):
    """The text that the compiler sees, without what headers of the standard library add."""
    command, _ = sim.compiler()
    flags = [*kernel.flags, "-DLAGPU_SIM", f"-I{sim.SIM_FOLDER}", "-E", "-P", "-x", "c++", "-"]
    done = subprocess.run([*command, *flags], input=kernel.source, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


LOGS = re.compile(r"LoopLog|Record|kLooked|count_new|->clock_ns\(\)\);|now\.ns")
