"""Checks of functions that are to be stages, at their declaration; otherwise they would only fail in a job.

A worker imports the application and takes the function from there, so lambdas (with a name), nested functions and
methods of an object that the module creates all work."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

from spinney.model.errors import BadName, UsageError


def require_function(where: str, function: object) -> None:
    """Raise UsageError for an object that is no function, or for a function that a job cannot run."""
    name = getattr(function, "__qualname__", None) or repr(function)
    if isinstance(function, staticmethod | classmethod):
        kind = type(function).__name__
        raise UsageError(f"{where}: {name} is declared above @{kind}; declare it outside of its class")
    if not callable(function) or not _is_function(function):
        raise UsageError(
            f"{where} is a function, not {function!r:.200}; write a function with annotated parameters that calls it"
        )
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise UsageError(
            f"{where}: {name} is a generator function, of which nothing would run: a stage is called once, and what it "
            f"returns is kept. Return a list where it yields, or make a subjob of each value with job.spawn"
        )
    if _lacks_its_object(function):
        raise UsageError(
            f"{where}: {name} is a method without its object, which no job can pass; declare the method of an object "
            f"that the module makes, or a function that makes the object and calls it"
        )


def name_of(function: Callable[..., Any]) -> str:
    """Return the name of a function for its job type or stage. Raises BadName when it has none."""
    name: str = function.__name__
    if name == "<lambda>":
        raise BadName(
            "a lambda has no name of its own; give it one with name='…', or write a function with 'def'"
        )
    return name


def _is_function(function: object) -> bool:
    """Return whether an object is a function, a method or a decorated one of these; classes and callable objects are
    not."""
    if isinstance(function, type | functools.partial):
        return False
    return inspect.isroutine(function) or (hasattr(function, "__wrapped__") and hasattr(function, "__name__"))


def _lacks_its_object(function: Callable[..., Any]) -> bool:
    """Return whether a function is defined in the body of a class, and its first parameter is the object or the
    class."""
    place = getattr(function, "__qualname__", "").rpartition(".")[0]
    if not inspect.isfunction(function) or not place or place.endswith("<locals>"):
        return False
    return next(iter(inspect.signature(function).parameters), None) in ("self", "cls")
