"""What ran: versions of the packages that decide a result, and the commit of the sources."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path

__all__ = ["__version__", "commit", "versions"]

__version__ = "0.1.0"

# Distributions in the order of a report; those of the GPU are there only where it is installed.
_PACKAGES = {
    "numpy": "numpy",
    "scipy": "scipy",
    "graphblas": "python-graphblas",
    "suitesparse": "suitesparse-graphblas",
}
_CUPY = ("cupy-cuda13x", "cupy-cuda12x", "cupy")


def versions() -> dict[str, str | None]:
    """Return the versions of lagpu, Python and the packages below; None for one that is missing."""
    found: dict[str, str | None] = {
        "lagpu": __version__,
        "python": platform.python_version(),
    }
    found |= {name: _version(package) for name, package in _PACKAGES.items()}
    found["cupy"] = next(filter(None, map(_version, _CUPY)), None)
    return found


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def commit() -> str | None:
    """Return the commit of the sources: ``LAGPU_COMMIT``, or that of the checkout they lie in.

    A commit that files have changed since ends in ``-dirty``.
    """
    given = os.environ.get("LAGPU_COMMIT")
    if given:
        return given
    root = Path(__file__).parent.parent
    if not (root / ".git").exists():
        return None
    try:
        return subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"],
            cwd=root,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
