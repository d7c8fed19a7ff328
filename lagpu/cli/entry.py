"""Run a command and return its exit code: 0, 1 for a wrong result, 2 for wrong input.

An error is one line on stderr; ``--debug``, anywhere among the arguments, shows where it arose.
Of the processes of mpirun or srun the first one prints results and writes files, and one prints
the error.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import typer

from lagpu.cli.commands import Algorithms, app
from lagpu.errors import CheckFailed, LagpuError, plain
from lagpu.host import children, files
from lagpu.host.interrupt import INTERRUPTED, before_end, end, on_interrupt
from lagpu.host.job import first_reports, launched, owner, running, speaks

_REFUSED, _WRONG = 1, 2
_CLOSED_PIPE = 128 + signal.SIGPIPE  # the code by which a shell reports this signal
_GRACE_SECONDS = 0.7  # after Ctrl-C, for the running code to stop by itself
before_end(children.end_all)
before_end(files.discard)
# Phrases in messages of algorithms, with the options of commands that replace them.
_OPTIONS = {
    "as A.ewise_add(A.T, 'max').new()": "with --undirected",
    "or leave directed= out": "or leave it out",
    "max_iter=": "--max-iter",
    "tol=": "--tol",
    "weight=False": "--no-weight",
    "or pseudo_diameter": "or lagpu diameter --pseudo",
    "sources with k and seed": "sources with -k and --seed",
}
# In words, by pydantic's name of the error.
_WRONG_VALUES = {
    "int_parsing": "is not a whole number",
    "int_parsing_size": "is too large a number",
    "float_parsing": "is not a number",
    "greater_than_equal": "is below {ge}",
    "less_than_equal": "is above {le}",
    "value_error": "{error}",
}
# Options that may differ between the processes of a job: only the first process prints and writes,
# so the report and the names of files are its own. Whether there is a file must not differ, since
# a result that is saved or shown is collected from all.
_OF_ONE, _FILES = "--json", ("--save", "--trace", "--step")
# The error of typer for wrong arguments, which has no public name.
_UsageError: type[Exception] = typer.BadParameter.__bases__[0]


@first_reports()
def main(args: Sequence[str] | None = None) -> int:
    """Run one command with some arguments, by default those of the process; return its code."""
    words = list(sys.argv[1:] if args is None else args)
    debug = "--debug" in words
    try:
        with interruptible():
            given = [word for word in words if word != "--debug"]
            code = _command()(given, prog_name="lagpu", standalone_mode=False)  # errors propagate
        print(end="", flush=True)  # stdout may be closed
    except SystemExit as ended:  # completion
        code = ended.code
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except (LagpuError, _UsageError, MemoryError, OSError) as error:
        if isinstance(error, OSError) and not isinstance(error, LagpuError):  # of stdout: end it
            with contextlib.suppress(OSError, ValueError, AttributeError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):  # the reader has closed it, as in `lagpu ... | head`
            return _CLOSED_PIPE
        if debug:
            raise
        _print_error(_message(error, words), error)
        return _REFUSED if isinstance(error, CheckFailed) else _WRONG
    if code == INTERRUPTED:
        _print_error("interrupted.", KeyboardInterrupt())
    return code if isinstance(code, int) else 0  # a command that ends early has a code


@functools.cache
def _command() -> Any:
    """Return the commands; a grid that begins while one runs sees its options."""
    # In their help a flag, which takes no value, has no type.
    command: Any = typer.main.get_command(app)
    context = command.make_context("lagpu", [], resilient_parsing=True)

    def prepared(one: Any) -> Any:
        for option in one.get_params(context):
            if getattr(option, "is_flag", False):
                option.metavar = ""
        if isinstance(one, Algorithms):
            one.prepare = prepared
        elif one is not command:
            one.invoke = functools.partial(_invoke, one.invoke)
        return one

    for one in (command, *command.commands.values()):
        prepared(one)
    return command


def _invoke(invoke: Callable[[Any], Any], context: Any) -> Any:
    """Run a command; the processes of its grid see whether they were given the same."""
    # Several processes that each do the whole work are not an error, but usually a forgotten
    # option: the first one prints a warning.
    job, grid, backend = launched(), context.params.get("grid", ""), context.params.get("backend")
    if job is not None and not job.rank and grid is None and not str(backend).startswith("grid"):
        who = f"{job.size} processes each do all of this"
        print(f"lagpu: {who}; --grid all shares it out.", file=sys.stderr, flush=True)
    with running(_given(context)):
        return invoke(context)


def _given(context: Any) -> list[str]:
    """Return a command and what it was given, defaults included, in words that a user writes."""
    phrases = [f"the command {context.info_name}"]
    for parameter in context.command.params:
        value = context.params.get(parameter.name)
        name, no = parameter.opts[0], parameter.secondary_opts
        if name == _OF_ONE:
            continue
        if not name.startswith("-"):
            name = parameter.metavar or name.upper()
        if value is None or (value is False and not no) or value == ():
            phrases.append(f"no {name}")
        elif isinstance(value, bool):
            phrases.append(name if value else no[0])
        elif name in _FILES:
            phrases.append(name)
        else:
            values = value if isinstance(value, (list, tuple)) else [value]
            phrases.append(" ".join([name, *(" ".join(str(one).split()) for one in values)]))
    return phrases


def _message(error: BaseException, words: Sequence[str]) -> str:
    """Return the message of an error, in which options of a command replace arguments of Python."""
    if isinstance(error, LagpuError):
        message = str(error)
        for argument, option in _OPTIONS.items():
            message = message.replace(argument, option)
        return message
    if isinstance(error, OSError):
        return f"the system reports: {error}."
    if isinstance(error, MemoryError):
        return f"out of memory: {str(error) or 'an allocation failed'}. Use a smaller graph."
    return _usage(error, words)


def _usage(error: BaseException, words: Sequence[str]) -> str:
    """Return the message for wrong arguments, with the command that shows their help."""
    # An error of the parser itself, as for an option without its value, does not know its command;
    # the first of the words does.
    message = " ".join(error.format_message().split())  # type: ignore[attr-defined]
    found: list[Any] = getattr(error.__cause__, "errors", list)()
    if found:  # of pydantic, which keeps the value apart
        wrong, value = found[0], found[0]["input"]
        what = _WRONG_VALUES.get(wrong["type"], wrong["msg"]).format(**wrong.get("ctx", {}))
        what = what if repr(value) in what else f"{value!r} {what}"
        message = message.replace(wrong["msg"], what)
    context = getattr(error, "ctx", None)
    known = words and words[0] in _command().commands
    parsed = f"lagpu {words[0]}" if known else "lagpu"
    command = parsed if context is None else context.command_path
    if words and not known and Path(words[0]).is_file():
        message = f"{words[0]} is a file, not a command. Write `lagpu info {words[0]}`"
    end = "" if message.endswith(("?", "!")) else "."
    return f"{message.rstrip('.')}{end} See `{command} --help`."


def _print_error(message: str, error: BaseException) -> None:
    """Print the first line of a message, if this process reports the error of its job."""
    if not speaks(error):
        return
    interrupted = isinstance(error, KeyboardInterrupt)  # by the user, in any process
    message = message if interrupted else owner(error) + message
    first, *rest = plain(message).splitlines() or [""]
    more = f" ({len(rest)} more lines with --debug)" if rest else ""
    print(f"lagpu: {first}{more}", file=sys.stderr)


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """End the process soon after Ctrl-C, even from inside a long call of compiled code."""
    # Python handles an interrupt only between bytecodes, by `lagpu.host.interrupt`; a sort, a
    # kernel or a transfer of a large graph can take too long to wait. So a thread watches for the
    # signal, and ends the process if the interrupt is not handled soon. No file is half-written
    # then: files are renamed when complete, and incomplete ones are removed.
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    timer = threading.Timer(_GRACE_SECONDS, end)
    timer.daemon = True

    def start() -> None:
        if timer.ident is None:
            timer.start()

    try:
        with on_interrupt(start):
            yield
    finally:
        timer.cancel()
