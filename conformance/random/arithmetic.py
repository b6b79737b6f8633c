"""Arithmetic of scalars: integers that wrap at a width, floats that round to their type.

Values are Python's `int`, `float` and `bool`, or `ARBITRARY`.
"""

import ctypes
import math
import re

import numpy

from memory import ARBITRARY, Fault

INTEGER = re.compile(r"(u?)int(\d+)$")


def is_float(dtype):
    return dtype.startswith(("float", "bfloat"))


def is_integer(dtype):
    return INTEGER.match(dtype) is not None


def limits(dtype):
    unsigned, bits = INTEGER.match(dtype).groups()
    bits = int(bits)
    return (0, (1 << bits) - 1) if unsigned else (-(1 << bits - 1), (1 << bits - 1) - 1)


def wrapper(dtype):
    """The function that brings a number to the range or precision of a type."""
    return WRAPPERS[dtype]


def _integer(dtype):
    low, high = limits(dtype)
    mask = high - low

    def wrap(x):
        return ((x - low) & mask) + low

    return wrap


def _float32(x):
    return ARBITRARY if x is ARBITRARY else ctypes.c_float(x).value


def _float16(x):
    with numpy.errstate(all="ignore"):
        return ARBITRARY if x is ARBITRARY else float(numpy.float16(x))


def _same(x):
    return x


WRAPPERS = {
    f"{u}int{bits}": _integer(f"{u}int{bits}") for u in ("", "u") for bits in (8, 16, 32, 64)
}
WRAPPERS |= {"float64": _same, "float32": _float32, "float16": _float16, "bool": _same}


def cast(x, source, target):
    if x is ARBITRARY or source == target:
        return x
    if target == "bool":
        return x != 0
    if is_integer(target):
        if is_float(source):
            if math.isnan(x):
                return 0
            low, high = limits(target)
            return high if x >= high else low if x <= low else int(x)
        return wrapper(target)(int(x))
    if target == "float32" and isinstance(x, int) and abs(x) >= 1 << 53:
        return float(numpy.float32(x) if abs(x) < 1 << 63 else numpy.float32(numpy.uint64(x)))
    return wrapper(target)(float(x))


def divide(a, b):
    if a is ARBITRARY or b is ARBITRARY:
        return ARBITRARY
    if b == 0:
        if a == 0 or math.isnan(a):
            return math.nan
        return math.copysign(math.inf, a) * math.copysign(1.0, b)
    return a / b


def _divisor(b):
    if b == 0:
        raise Fault("arithmetic", "division by zero")


def _divided(operation):
    def divided(a, b):
        if b is ARBITRARY:
            raise Fault("arbitrary", "a divisor is arbitrary")
        _divisor(b)
        return ARBITRARY if a is ARBITRARY else operation(a, b)

    return divided


def _truncdiv(a, b):
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


floordiv = _divided(lambda a, b: a // b)
floormod = _divided(lambda a, b: a % b)
truncdiv = _divided(_truncdiv)
truncmod = _divided(lambda a, b: a - b * _truncdiv(a, b))


def _extreme(better):
    def extreme(a, b):
        if a is ARBITRARY or b is ARBITRARY:
            return ARBITRARY
        if a != a or b != b:
            return math.nan
        if a == b and isinstance(a, float):
            first = math.copysign(1.0, a) < 0
            return (a if first else b) if better(0, 1) else (b if first else a)
        return a if better(a, b) else b

    return extreme


minimum = _extreme(lambda a, b: a <= b)
maximum = _extreme(lambda a, b: a >= b)


def both(a, b):
    """`and`; `b` is a function, so that it is evaluated only if it is needed."""
    if a is ARBITRARY:
        return False if b() is False else ARBITRARY
    return a and b()


def either(a, b):
    """`or`, likewise."""
    if a is ARBITRARY:
        return True if b() is True else ARBITRARY
    return a or b()


def negation(a):
    return ARBITRARY if a is ARBITRARY else not a


def select(c, a, b):
    if c is ARBITRARY:
        return a if a is b else ARBITRARY
    return a if c else b


def _total(f):
    """A function of floats with IEEE's answers where Python raises."""

    def total(*args):
        if any(a is ARBITRARY for a in args):
            return ARBITRARY
        try:
            return f(*args)
        except OverflowError:
            return math.inf
        except ValueError:
            return math.nan

    return total


def _log(f):
    def log(x):
        return -math.inf if x == 0 else f(x)

    return log


def _round_away(x):
    return x if not math.isfinite(x) else math.copysign(math.floor(abs(x) + 0.5), x)


def _keep(f):
    """Rounding to whole numbers, which leaves what is not finite."""
    return lambda x: x if not math.isfinite(x) else math.copysign(float(f(x)), x)


def _sigmoid(x):
    return 1.0 / (1.0 + _exp(-x))


def _exp(x):
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def _power(a, b):
    with numpy.errstate(all="ignore"):
        return float(numpy.power(numpy.float64(a), numpy.float64(b)))


FLOAT_FUNCTIONS = {
    name: _total(f)
    for name, f in {
        "exp": math.exp,
        "exp2": lambda x: 2.0**x,
        "exp10": lambda x: 10.0**x,
        "log": _log(math.log),
        "log2": _log(math.log2),
        "log10": _log(math.log10),
        "log1p": lambda x: -math.inf if x == -1 else math.log1p(x),
        "sqrt": math.sqrt,
        "rsqrt": lambda x: divide(1.0, math.sqrt(x)),
        "sigmoid": _sigmoid,
        "erf": math.erf,
        "sin": math.sin,
        "cos": math.cos,
        "tan": math.tan,
        "sinh": lambda x: math.copysign(math.inf, x) if abs(x) > 710.5 else math.sinh(x),
        "cosh": math.cosh,
        "tanh": math.tanh,
        "asin": math.asin,
        "acos": math.acos,
        "atan": math.atan,
        "asinh": math.asinh,
        "acosh": math.acosh,
        "atanh": lambda x: math.copysign(math.inf, x) if abs(x) == 1 else math.atanh(x),
        "atan2": math.atan2,
        "pow": _power,
        "fmod": math.fmod,
        "abs": abs,
        "floor": _keep(math.floor),
        "ceil": _keep(math.ceil),
        "trunc": _keep(math.trunc),
        "round": _round_away,
        "nearbyint": _keep(round),
    }.items()
}

TESTS = {
    name: (lambda f: lambda x: ARBITRARY if x is ARBITRARY else f(x))(f)
    for name, f in {"isnan": math.isnan, "isinf": math.isinf, "isfinite": math.isfinite}.items()
}


def _shift(f, bits):
    def shift(a, b):
        if b is ARBITRARY or not 0 <= b < bits:
            raise Fault("arithmetic", "a shift by the width of the type or more")
        return f(a, b)

    return shift


def _integer_power(a, b):
    if b < 0:
        raise Fault("arithmetic", "an integer to a negative power")
    return pow(a, b, 1 << 64) if a >= 0 else pow(-a, b, 1 << 64) * (-1 if b % 2 else 1)


def integer_function(name, dtype):
    """An intrinsic of integers, before its result is wrapped; `None` if there is none."""
    unsigned, bits = INTEGER.match(dtype).groups() if dtype != "bool" else ("u", "1")
    bits = int(bits)
    return {
        "abs": abs,
        "pow": _integer_power,
        "bitwise_and": lambda a, b: a & b,
        "bitwise_or": lambda a, b: a | b,
        "bitwise_xor": lambda a, b: a ^ b,
        "bitwise_not": (lambda a: not a) if dtype == "bool" else (lambda a: ~a),
        "shift_left": _shift(lambda a, b: a << b, bits),
        "shift_right": _shift(lambda a, b: a >> b, bits),
        "popcount": lambda a: ARBITRARY if a is ARBITRARY else (a & (1 << bits) - 1).bit_count(),
    }.get(name)
