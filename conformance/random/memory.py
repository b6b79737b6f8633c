"""Memory of the evaluator: cells that know whether anything was written to them.

A cell holds a Python number (`int`, `float`, `bool`), or nothing yet (`UNWRITTEN`), or some value
that the program left open (`ARBITRARY`, the value of `T.undef()`).
"""


class Fault(Exception):
    """A program did what no program may do; `kind` is one of `KINDS`."""

    KINDS = (
        "out of range",  # an index outside of its buffer, or an axis outside of its domain
        "uninitialised",  # a read of a cell that nobody wrote
        "arbitrary",  # an index, a branch or an assumption depends on `T.undef()`
        "assumption",  # `T.assume` of what does not hold
        "assertion",  # `assert` of what does not hold
        "arithmetic",  # division by zero, a shift too far
        "order",  # iterations of a parallel or vectorised loop depend on each other
        "shape",  # arguments that do not fit the function
        "steps",  # the budget of steps is spent
    )

    def __init__(self, kind, message):
        assert kind in self.KINDS, kind
        super().__init__(f"{kind}: {message}")
        self.kind = kind


class Unsupported(Exception):
    """The evaluator does not know this construct: an error of the oracle, not of the program."""


class Arbitrary:
    """The value of `T.undef()`: every operation on it gives another arbitrary value.

    Zero times it is zero for integers. Nothing may be decided by it.
    """

    __slots__ = ()

    def same(self, *_):
        return self

    def product(self, other):
        return 0 if type(other) is int and other == 0 else self

    __add__ = __radd__ = __sub__ = __rsub__ = __and__ = __rand__ = __or__ = __ror__ = same
    __xor__ = __rxor__ = __lshift__ = __rshift__ = __rlshift__ = __rrshift__ = same
    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = same
    __neg__ = __invert__ = __abs__ = same
    __mul__ = __rmul__ = product
    __hash__ = None

    def __bool__(self):
        raise Fault("arbitrary", "a decision depends on an arbitrary value")

    def __repr__(self):
        return "arbitrary"


class Unwritten:
    """What a cell holds that nobody wrote: it may be copied where that is allowed, and no more."""

    __slots__ = ()

    def used(self, *_):
        raise Fault("uninitialised", "a value that nobody wrote is used")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __floordiv__ = __mod__ = used
    __truediv__ = __rtruediv__ = __rfloordiv__ = __rmod__ = used
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = used
    __lshift__ = __rshift__ = __rlshift__ = __rrshift__ = used
    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = used
    __neg__ = __invert__ = __abs__ = __bool__ = __int__ = __float__ = __index__ = used
    __hash__ = None

    def __repr__(self):
        return "unwritten"


ARBITRARY = Arbitrary()
UNWRITTEN = Unwritten()


class Memory:
    """Cells of one allocation.

    Where `given` is a set, it collects the cells that are read before they are written: what the
    program needs of its argument.
    """

    __slots__ = ("cells", "name", "serial", "constant", "given", "stored")

    def __init__(self, name, cells, serial=0, constant=False):
        self.name = name
        self.cells = cells
        self.serial = serial
        self.constant = constant
        self.given = None
        self.stored = set()


READ = object()


class Concurrent:
    """The iterations of one parallel, vectorised or thread loop, and the cells that each touched.

    Two iterations conflict if both touch a cell and one of them writes it, except that

    * both may write the same value, and read what they have written themselves;
    * in a vectorised loop, both may be updates of the cell by one operator (`b[i] = b[i] + x`).
    """

    __slots__ = ("kind", "name", "serial", "now", "writes", "reads", "own")

    def __init__(self, kind, name):
        self.kind = kind
        self.name = name
        self.writes = {}  # cell -> [(iteration, value, update)]
        self.reads = {}  # cell -> [(iteration, READ, update)]

    def begin(self, iteration, serial):
        """Starts an iteration; memory with a later serial number belongs to it alone."""
        self.now = iteration
        self.serial = serial
        self.own = set()

    def touch(self, memory, flat, value, update):
        """Notes that a cell is read, or that a value is written; `update` names the operator."""
        if memory.serial > self.serial:
            return
        cell = (memory.serial, memory.name, flat)
        update = update if self.kind == "vectorized" else None
        if value is READ:
            if cell in self.own and update is None:
                return
            others, seen = self.writes.get(cell, ()), self.reads
        else:
            others, seen = [*self.reads.get(cell, ()), *self.writes.get(cell, ())], self.writes
            self.own.add(cell)
        for iteration, there, by in others:
            if iteration == self.now or (update is not None and by == update):
                continue
            if update is None and by is None and value is not READ and equal(there, value):
                continue
            raise Fault(
                "order",
                f"iterations {iteration} and {self.now} of the {self.kind} loop {self.name} meet "
                f"at {memory.name}, cell {flat}",
            )
        entries = seen.setdefault(cell, [])
        # A third iteration conflicts with one of two if it conflicts with any; values may differ.
        if sum(e[0] != self.now for e in entries) < 2 and len(entries) < 8:
            entries.append((self.now, value, update))


def equal(x, y):
    """Whether two cells hold the same; arbitrary and unwritten ones are as they are."""
    if isinstance(x, (int, float)) and isinstance(y, (int, float)):
        return x == y or (x != x and y != y)
    return x is y


class Buffer:
    """A view of memory: extents, strides and an offset, all in elements."""

    __slots__ = ("rt", "name", "dtype", "memory", "shape", "strides", "offset", "low")

    def __init__(self, rt, name, dtype, memory, shape, strides=None, offset=0):
        self.rt = rt
        self.name = name
        self.dtype = dtype
        self.memory = memory
        self.shape = tuple(shape)
        if strides is None:
            strides, step = [], 1
            for extent in reversed(self.shape):
                strides.append(step)
                step *= extent
            strides.reverse()
        self.strides = tuple(strides)
        self.offset = offset

    def place(self, indices):
        flat = self.offset
        if len(indices) != len(self.shape):
            raise Fault("shape", f"{self.name} has {len(self.shape)} axes, not {len(indices)}")
        for index, extent, stride in zip(indices, self.shape, self.strides):
            if index is ARBITRARY:
                raise Fault("arbitrary", f"an index of {self.name} is arbitrary")
            if not 0 <= index < extent:
                raise Fault("out of range", f"{self.name}{list(indices)} of shape {self.shape}")
            flat += index * stride
        if not 0 <= flat < len(self.memory.cells):
            raise Fault("out of range", f"{self.name}{list(indices)} is not in its memory")
        return flat

    def load(self, *indices, update=None):
        flat = self.place(indices)
        memory = self.memory
        value = memory.cells[flat]
        if memory.given is not None and flat not in memory.stored:
            memory.given.add(flat)
        rt = self.rt
        if rt.concurrent:
            rt.touch(self.memory, flat, READ, update)
        if value is UNWRITTEN:
            if rt.permissive:
                return ARBITRARY
            if rt.copies:
                return UNWRITTEN
            raise Fault("uninitialised", f"read of {self.name}{list(indices)}")
        return value

    def store(self, indices, value, update=None):
        flat = self.place(indices)
        rt = self.rt
        if rt.concurrent:
            rt.touch(self.memory, flat, value, update)
        if self.memory.constant:
            raise Fault("shape", f"store to the constant {self.name}")
        self.memory.cells[flat] = value
        if self.memory.given is not None:
            self.memory.stored.add(flat)

    def permit(self, *indices):
        """`T.assume(b[...] == T.undef())`: the cell may be read, and holds anything."""
        flat = self.place(indices)
        if self.memory.cells[flat] is UNWRITTEN:
            self.memory.cells[flat] = ARBITRARY
        return True

    def region(self, name, dtype, origin, shape, strides=None):
        """`T.match_buffer(b[...], shape)`."""
        flat = self.offset + sum(i * s for i, s in zip(origin, self.strides))
        if strides is None:
            strides = self.strides[len(self.strides) - len(shape) :]
        return Buffer(self.rt, name, dtype, self.memory, shape, strides, flat)
