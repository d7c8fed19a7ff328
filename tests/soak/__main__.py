"""Search for wrong answers for some minutes: ``python tests/soak --minutes 10 --backend sim``.

Random statements, loops, searches and calls of algorithms run on a backend; each is compared with
the plain reference, with cpu or by a checker. Hypothesis makes the first failing program small; it
is printed as a test. ``python -m soak`` does the same where ``tests`` is on the path.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import hypothesis
import typer
from hypothesis import strategies as st

if __name__ == "__main__":  # pytest has both folders on its path
    TESTS = Path(__file__).resolve().parents[1]
    sys.path[:0] = [str(TESTS), str(TESTS / "support")]

import drawn_loops
from strategies import Failed

from lagpu import backends, versions
from lagpu.backends.protocol import Backend, of_all
from lagpu.errors import LagpuError
from soak import algorithm_calls, python_loops, statements

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

_SAME_POOL = 20
#: What runs, and the number of programs of a round; the clock is looked at after each round.
_ROUND: dict[str, tuple[Callable[[Any, Backend, int], int], int]] = {
    "statements": (statements.run, 50),
    "waiting": (statements.waiting, 50),
    "python": (python_loops.run, 20),
    "loops": (drawn_loops.run, 5),
    "searches": (drawn_loops.searches, 5),
    "graphs": (algorithm_calls.run, 50),
}


@app.command()
def main(
    minutes: Annotated[float, typer.Option(min=0, help="How long to search.")] = 10,
    backend: Annotated[str, typer.Option(help="The backend to test.")] = "auto",
    seed: Annotated[int, typer.Option(min=0, help="Chooses the programs; leave gaps.")] = 0,
    pool: Annotated[
        int | None,
        typer.Option(min=0, help="Of operators and types; by default all in turn."),
    ] = None,
    only: Annotated[str, typer.Option(help=f"One of {', '.join(_ROUND)}; by default all.")] = "",
    output: Annotated[Path | None, typer.Option("--json", help="A file for the figures.")] = None,
) -> None:
    """Run random programs on a backend until the time is over or an answer is wrong.

    Exit code 1, and a test to paste, if a program gave a wrong answer.
    """
    if only and only not in _ROUND:
        known = ", ".join(_ROUND)
        typer.echo(f"soak: --only: {only!r} is none of {known}.", err=True)
        raise typer.Exit(2)
    try:
        place = backends.get(backend)
    except LagpuError as error:
        typer.echo(f"soak: {error}", err=True)
        raise typer.Exit(2) from error
    figures = soak(place, minutes * 60, seed, [only] if only else list(_ROUND), pool)
    for kind, row in figures["kinds"].items():
        typer.echo(f"{kind}: {row['count']:,} in {row['programs']:,} programs, {row['seconds']} s")
    if output is not None:
        output.write_text(json.dumps(figures, indent=1) + "\n", "utf-8")
    if figures["failure"]:
        typer.echo(figures["failure"])
        raise typer.Exit(1)
    typer.echo(f"{place.name}: no difference (seed {seed})")


def soak(
    place: Backend, seconds: float, seed: int, kinds: list[str], pool: int | None = None
) -> dict[str, Any]:
    """Run rounds of random programs until the time is over or an answer is wrong.

    Parameters
    ----------
    place : Backend
        The backend to test.
    seconds : float
        How long; the round that runs at the end is finished.
    seed : int
        Of the first round; every further round of a kind adds 1.
    kinds : list of str
        Some of ``statements waiting python loops searches graphs``; the rounds take turns.
    pool : int, optional
        Chooses operators and types on a backend that compiles, where each costs a compilation: runs
        with the same pool and cache share these. By default the pool changes every 20 rounds.

    Returns
    -------
    dict
        ``date backend device versions commit seed kinds failure``, ready for JSON; ``failure`` is a
        test to paste, or an empty string.
    """
    begin = time.monotonic()
    rows = {kind: {"count": 0, "programs": 0, "seconds": 0.0} for kind in kinds}
    failure, count = "", 0
    while max(s for (s,) in of_all(place, time.monotonic() - begin)) < seconds and not failure:
        kind = kinds[count % len(kinds)]
        start = time.perf_counter()
        failure = _round(kind, place, seed + count // len(kinds), pool, rows[kind])
        rows[kind]["seconds"] = round(rows[kind]["seconds"] + time.perf_counter() - start, 1)
        count += 1
    device = place.device
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "backend": place.name,
        "device": device.describe() if device is not None else {"device": "host"},
        "versions": versions.versions(),
        "commit": versions.commit(),
        "seed": seed,
        "kinds": rows,
        "failure": failure,
    }


def _round(kind: str, place: Backend, seed: int, pool: int | None, row: dict[str, Any]) -> str:
    """Run one round; return the smallest failing program, or an empty string."""
    program, count = _ROUND[kind]
    chosen = seed // _SAME_POOL if pool is None else pool

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count,
        deadline=None,
        database=None,
        report_multiple_bugs=False,
        suppress_health_check=list(hypothesis.HealthCheck),
        phases=(hypothesis.Phase.generate, hypothesis.Phase.shrink),
    )
    @hypothesis.given(st.data())
    def programs(data: Any) -> None:
        row["count"] += program(data.draw, place, chosen)
        row["programs"] += 1

    try:
        programs()
    except Failed as failed:
        return str(failed)
    return ""


if __name__ == "__main__":
    sys.exit(app())
