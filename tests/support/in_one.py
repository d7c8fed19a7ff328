"""`in_one`, which runs cases of microseconds in one test: tests of their own take far longer."""

import functools
import inspect

import pytest


def in_one(name, cases):
    """Run a test once with each case as its argument `name`, and name all that fail.

    For cases that share what other arguments give, such as a folder, without harm.
    """
    cases = list(cases)
    if not cases:
        raise ValueError(f"in_one: {name} has no case.")

    def decorate(test):
        @functools.wraps(test)
        def run(**given):
            failed = []
            for case in cases:
                try:
                    test(**given, **{name: case})
                except pytest.skip.Exception:
                    continue
                except Exception as error:
                    error.add_note(f"{name} = {case}")
                    failed.append(error)
            if failed:
                raise ExceptionGroup(f"{name}: {len(failed)} of {len(cases)} cases fail", failed)

        left = [p for p in inspect.signature(test).parameters.values() if p.name != name]
        run.__signature__ = inspect.Signature(left)
        return run

    return decorate
