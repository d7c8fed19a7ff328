"""Versions of the packages that decide a result, and the commit of the sources."""

from __future__ import annotations

import os
from pathlib import Path

__version__ = "0.1.0"

# Distributions in the order of a report.
_PACKAGES = {
    "numpy": "numpy",
    "scipy": "scipy",
    "graphblas": "python-graphblas",
    "suitesparse": "suitesparse-graphblas",
}
_CUPY = ("cupy-cuda13x", "cupy-cuda12x", "cupy")


def versions() -> dict[str, str | None]:
    """Return the versions of lagpu, Python and its packages; None for a missing package."""
    import platform  # for reports only, and slow to import

    found: dict[str, str | None] = {"lagpu": __version__, "python": platform.python_version()}
    found |= {name: version(package) for name, package in _PACKAGES.items()}
    found["cupy"] = next(filter(None, map(version, _CUPY)), None)
    return found


def version(package: str) -> str | None:
    """Return the version of a package, None if it is missing."""
    from importlib import metadata  # slow to import

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def commit() -> str | None:
    """Return the commit of the sources: ``LAGPU_COMMIT``, or the commit of their checkout.

    It ends in ``-dirty`` if files have changed since that commit.
    """
    given = os.environ.get("LAGPU_COMMIT")
    if given:
        return given
    root = Path(__file__).parent.parent
    if not (root / ".git").exists():
        return None
    import subprocess

    try:
        words = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
        found = subprocess.run(words, cwd=root, capture_output=True, text=True, check=True)
        return found.stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
