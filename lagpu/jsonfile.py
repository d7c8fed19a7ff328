"""A report written as JSON, so that no reader ever finds half of one."""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import Any

from lagpu.errors import InvalidValue

__all__ = ["write"]


def write(report: dict[str, Any], path: Path, what: str) -> None:
    """Write a report under a temporary name and rename it.

    Parameters
    ----------
    report : dict
        Ready for JSON.
    path : Path
        The file.
    what : str
        Who writes, as the message of an error begins.

    Raises
    ------
    InvalidValue
        If the file cannot be written.
    """
    temporary = path.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        temporary.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        raise InvalidValue(f"{what}: {path}: {error.strerror or error}.") from error
    finally:
        temporary.unlink(missing_ok=True)
