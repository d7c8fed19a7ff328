"""The processes of mpirun or srun as the pieces of one grid."""

from lagpu.backends.grid.mpi.processes import Processes
from lagpu.backends.grid.mpi.start import MpiEngine, engine, require_same

__all__ = ["MpiEngine", "Processes", "engine", "require_same"]
