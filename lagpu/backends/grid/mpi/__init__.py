"""The processes of mpirun or srun as the pieces of one grid."""

from lagpu.backends.grid.mpi.engine import MpiEngine, engine, require_same
from lagpu.backends.grid.mpi.processes import Processes

__all__ = ["MpiEngine", "Processes", "engine", "require_same"]
