"""Commands that run one algorithm: own options and a job each, everything else shared."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, get_type_hints

import typer

from lagpu.cli.options import (
    AsJson,
    Backend,
    Check,
    Directed,
    Forms,
    Graph,
    Grid,
    Kernel,
    Orientation,
    Policy,
    Renumber,
    Save,
    Seed,
    Steps,
    placed,
)

if TYPE_CHECKING:
    from lagpu.cli.analysis import Job

#: Options of every such command, after its own; (type, default).
_SHARED: dict[str, tuple[Any, Any]] = {
    "backend": (Backend, "auto"),
    "grid": (Grid, None),
    "kernel": (Kernel, None),
    "policy": (Policy, None),
    "orientation": (Orientation, Forms.AUTO),
    "directed": (Directed, None),
    "renumber": (Renumber, False),
    "seed": (Seed, None),
    "save": (Save, None),
    "check": (Check, False),
    "step_file": (Steps, None),
    "as_json": (AsJson, False),
}


def analysis(
    app: typer.Typer, *, save: bool = True
) -> Callable[[Callable[..., Job]], Callable[..., Job]]:
    """Make a command of a function that maps its own options to a `Job`.

    Parameters
    ----------
    app : typer.Typer
        The application of the command.
    save : bool
        Whether the result can be saved as a vector.
    """

    def register(job_of: Callable[..., Job]) -> Callable[..., Job]:
        own = _options(job_of)

        def command(**given: Any) -> None:
            from lagpu.cli.analysis import Place, analyse

            given["backend"] = placed(given["backend"], given["grid"])
            job = job_of(**{name: given[name] for name in own})
            place = Place(**{field.name: given[field.name] for field in fields(Place)})
            how = {name: given[name] for name in ("check", "step_file", "as_json")}
            analyse(place, job, save=given.get("save"), **how)

        shared = {name: _parameter(name, *of) for name, of in _SHARED.items()}
        if not save:
            del shared["save"]
        options = {"graph": _parameter("graph", Graph)}
        options |= {name: own[name] for name in own if name not in shared}
        options |= shared | {name: own[name] for name in own if name in shared}
        command.__doc__ = job_of.__doc__
        command.__signature__ = inspect.Signature([*options.values()])  # type: ignore[attr-defined]
        command.__annotations__ = {name: option.annotation for name, option in options.items()}
        app.command(job_of.__name__)(command)
        return job_of

    return register


def _parameter(name: str, kind: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    how = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, how, default=default, annotation=kind)


def _options(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the parameters of a function with their types, which are annotated as text."""
    annotations = inspect.get_annotations(function)
    annotations.pop("return", None)  # a Job, whose module is imported when a command runs
    names = function.__globals__
    kinds = get_type_hints(SimpleNamespace(__annotations__=annotations), names, include_extras=True)
    found = inspect.signature(function).parameters
    return {name: _parameter(name, kinds[name], found[name].default) for name in found}
