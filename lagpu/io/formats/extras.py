"""Libraries that some formats need, by the extra of lagpu that installs them."""

from __future__ import annotations

import importlib
from typing import Any

from lagpu.errors import BackendUnavailable

__all__ = ["needed"]

_MODULES = {
    "nx": "networkx",
    "parquet": "pyarrow.parquet",
    "hdf5": "h5py",
    "igraph": "igraph",
}


def needed(extra: str, what: str) -> Any:
    """Return the module of an extra.

    Parameters
    ----------
    extra : str
        The extra of lagpu that installs it.
    what : str
        The operation, with which the message begins.

    Raises
    ------
    BackendUnavailable
        If the module cannot be imported.
    """
    module = _MODULES[extra]
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise BackendUnavailable(
            f"{what} needs {package}, which is missing. "
            f'Install it with: pip install "lagpu[{extra}]"'
        ) from error
