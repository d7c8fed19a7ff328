"""Writing what was measured."""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import Any

from lagpu.errors import InvalidValue

__all__ = ["write"]


def write(record: dict[str, Any], path: Path) -> None:
    """Write a record as JSON under a temporary name and rename it.

    Raises
    ------
    InvalidValue
        If the file cannot be written.
    """
    temporary = path.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        temporary.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        raise InvalidValue(f"bench: {path}: {error.strerror or error}.") from error
    finally:
        temporary.unlink(missing_ok=True)
