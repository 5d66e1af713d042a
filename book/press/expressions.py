"""Expressions over records, and texts that show them.

An expression such as ``median(cur.errors.stsb) > 1`` reads names, keys after a point
or in brackets, numbers, arithmetic, comparisons, comprehensions and a few functions.
There is nothing in it that could write, import or reach an attribute of an object. In
a text it stands between ``@{`` and ``}``, with a format behind a colon.
"""

from __future__ import annotations

import ast
import math
import operator
import re
import statistics
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

__all__ = ["evaluate", "fill"]

_SHOWN = re.compile(r"@\{(.+?):([^:{}]*)\}", re.DOTALL)
_NOT_SHOWN = re.compile(r"@\{[^}]+\}?")
_BITS = 10_000  # of a power


def _power(base: Any, exponent: Any) -> Any:
    """Return a power, unless it has so many digits that it would never end."""
    whole = isinstance(base, int) and isinstance(exponent, int)
    if whole and base.bit_length() * exponent > _BITS:
        raise ValueError("a power is too large")
    return base**exponent


_OPERATORS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: _power,
    ast.USub: operator.neg,
    ast.Not: operator.not_,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}


def _median(values: Iterable[float | None]) -> float:
    """Return the median; None, a run that came to nothing, counts as infinite."""
    return statistics.median(math.inf if v is None else v for v in values)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "all": all,
    "any": any,
    "len": len,
    "log": math.log,
    "max": max,
    "mean": statistics.fmean,
    "median": _median,
    "min": min,
    "range": range,
    "sqrt": math.sqrt,
    "sum": sum,
    "values": lambda mapping: [*mapping.values()],
    "zip": zip,
}


def evaluate(expression: str, names: Mapping[str, Any]) -> Any:
    """Return the value of an expression over records.

    Parameters
    ----------
    expression : str
        As the module describes.
    names : mapping
        What the names stand for: mappings, lists, numbers, strings, functions.

    Raises
    ------
    ValueError
        Something that does not belong into an expression, or has no value.
    LookupError
        A name or a key that there is not.

    Examples
    --------
    >>> from press.expressions import evaluate
    >>> cur = {"errors": {"stsb": [0.3, 0.2]}}
    >>> evaluate("max(cur.errors.stsb) < 2 * cur.errors['stsb'][1]", {"cur": cur})
    True
    """
    try:
        tree = ast.parse(" ".join(expression.split()), mode="eval")
    except SyntaxError as error:
        raise ValueError(f"{expression!r} is no expression: {error.msg}") from None
    try:
        return _value(tree.body, names)
    except (ArithmeticError, AttributeError, TypeError, ValueError) as error:
        raise ValueError(f"{expression!r} has no value: {error}") from error


def fill(text: str, names: Mapping[str, Any]) -> str:
    """Return a text with its expressions replaced by formatted values.

    Raises
    ------
    ValueError
        As `evaluate`; or an expression with no format, or one that is not of its kind.
    LookupError
        As `evaluate`.

    Examples
    --------
    >>> from press.expressions import fill
    >>> fill("$W_{S}$ has @{n:d} rows, error @{mean(e):.2f}", {"n": 3, "e": [0.1, 0.2]})
    '$W_{S}$ has 3 rows, error 0.15'
    """

    def shown(found: re.Match[str]) -> str:
        expression, kind = found.groups()
        value = evaluate(expression, names)
        try:
            return format(value, kind)
        except (TypeError, ValueError) as error:
            told = f"{expression!r} cannot be shown as {kind!r}: {error}"
            raise ValueError(told) from error

    bare = _NOT_SHOWN.search(_SHOWN.sub("", text))
    if bare:
        raise ValueError(f"{bare[0]!r} wants a format, as in @{{n:d}}")
    return _SHOWN.sub(shown, text)


def _value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    def value(part: ast.expr) -> Any:
        return _value(part, names)

    match node:
        case ast.Constant(value=int() | float() | str() | None as constant):
            return constant
        case ast.Name(id=name):
            return names[name]
        case ast.Attribute(value=of, attr=key):
            return _item(of, value(of), key)
        case ast.Subscript(value=of, slice=key):
            return _item(of, value(of), value(key))
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return [*map(value, parts)]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](value(left), value(right))
        case ast.UnaryOp(op=op, operand=part) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](value(part))
        case ast.BoolOp(op=op, values=parts):
            *firsts, last = parts
            for part in firsts:
                found = value(part)
                if bool(found) is isinstance(op, ast.Or):
                    return found
            return value(last)
        case ast.Compare(left=left, ops=ops, comparators=others) if {
            *map(type, ops)
        } <= _OPERATORS.keys():
            row = [value(left), *map(value, others)]
            sides = zip(ops, row, row[1:], strict=False)
            return all(_OPERATORS[type(op)](a, b) for op, a, b in sides)
        case ast.Call(func=ast.Name(id=name), args=parts, keywords=[]):
            function = _FUNCTIONS[name] if name in _FUNCTIONS else names.get(name)
            if callable(function):
                return function(*map(value, parts))
        case (
            ast.ListComp(elt=body, generators=loops)
            | ast.GeneratorExp(elt=body, generators=loops)
        ):
            return [_value(body, inner) for inner in _bindings(loops, names)]
    raise ValueError(f"{ast.unparse(node)!r} does not belong into an expression")


def _item(of: ast.expr, container: Any, key: Any) -> Any:
    """Return what a mapping or a list has under a key; objects have nothing."""
    try:
        if isinstance(container, Mapping):
            return container[key if key in container else str(key)]
        if isinstance(container, list) and isinstance(key, int):
            return container[key]
    except LookupError:
        pass
    raise LookupError(f"{key!r} in {ast.unparse(of)}")


def _bindings(
    loops: list[ast.comprehension], names: Mapping[str, Any]
) -> Iterator[Mapping[str, Any]]:
    """Yield the names, with those of a comprehension bound."""
    if not loops:
        yield names
        return
    first, *rest = loops
    target = first.target
    targets = target.elts if isinstance(target, ast.Tuple) else [target]
    bound = [part.id for part in targets if isinstance(part, ast.Name)]
    if len(bound) < len(targets):
        raise ValueError(f"{ast.unparse(target)!r} cannot be bound")
    for item in _value(first.iter, names):
        parts = item if isinstance(target, ast.Tuple) else [item]
        inner = ChainMap(dict(zip(bound, parts, strict=True)), names)  # type: ignore[arg-type]
        if all(_value(condition, inner) for condition in first.ifs):
            yield from _bindings(rest, inner)
