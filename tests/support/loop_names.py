"""How the last loop of a backend ran: the names that `last_loop` begins with."""

GRID = "grid search"
BITS = "bit-parallel search"
PER_SOURCE = "per-source search"
GENERATED = "generated loop"
RELAXATION = "relaxation"
SWEEP = "sweep"
PER_SOURCE_SWEEP = "per-source sweep"
# Why a loop over matrices is eager where the device has no memory for it.
NO_ROOM = "eager: the workspace of a generated loop over matrices does not fit"

ALL = (GRID, BITS, PER_SOURCE, GENERATED, RELAXATION, SWEEP, PER_SOURCE_SWEEP)


def loop_name(backend):
    """The name in ``name: why``; "no iteration" and "" are whole texts."""
    return backend.last_loop.partition(":")[0]


def is_fused(text):
    """Whether a text of `last_loop` is that of a loop that ran as one program."""
    return text.partition(":")[0] in ALL


def how_it_ran(backend):
    """The name if it ran as one program, else the whole text, which says why not."""
    return loop_name(backend) if is_fused(backend.last_loop) else backend.last_loop
