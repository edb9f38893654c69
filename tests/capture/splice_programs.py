"""Functions that the splice is entered into at every instruction. Each takes positional arguments."""

LOG = []


def note(value):
    LOG.append(value)
    return value


def maybe(value, limit):
    LOG.append(value)
    if value > limit:
        raise KeyError(value)
    return value * 10


class Manager:
    def __init__(self, name, swallow):
        self.name, self.swallow = name, swallow

    def __enter__(self):
        LOG.append(("enter", self.name))
        return self

    def __exit__(self, kind, error, trace):
        LOG.append(("exit", self.name, repr(error)))
        return self.swallow and kind is not None


def loops(x, n):
    total = 0
    for i in range(n):
        if x > 2:
            total += x * i
        elif i == 3:
            continue
        else:
            total -= i
        while total > 40:
            total //= 3
            if total == 7:
                break
    else:
        total += 1000
    return total, x


def nested_loops(n, _):
    found = []
    for i in range(n):
        for j in range(i):
            if (i + j) % 3 == 0:
                found.append((i, j))
    return found


def calls(a, b):
    pair = note(maybe(a, 100)) + note(b)  # a NULL pending below an inner call
    text = "x".join([str(note(a)), str(b)]).upper().replace("X", "-")
    table = dict(first=note(a), second=max(a, b, key=lambda v: -v))
    return pair, text, table, sorted([3, 1, 2], reverse=note(True))


def tries(a, limit):
    done = []
    try:
        done.append(maybe(a, limit))
        done.append(note(maybe(a + 1, limit)))
    except KeyError as error:
        done.append(("caught", error.args))
        try:
            maybe(a + 2, 0)
        except KeyError:
            done.append(note("inner"))
    except ValueError:
        done.append("never")
    else:
        done.append("else")
    finally:
        done.append(note("finally"))
    return done


def reraises(a, limit):
    try:
        try:
            maybe(a, limit)
        except KeyError:
            note("seen")
            raise
        finally:
            note("inner finally")
    except LookupError as error:
        return "outer", type(error).__name__, type(error.__context__).__name__
    return "none"


def withs(a, limit):
    result = []
    with Manager("outer", True) as outer, Manager("inner", False):
        result.append(outer.name)
        result.append(note(maybe(a, limit)))
    with Manager("second", a > 3):
        result.append(maybe(a, 3))
    return result


def cells(a, b):
    count = a

    def bump(by=b, *, twice=False):
        nonlocal count
        count += by * (2 if twice else 1)
        return count

    first = note(bump())
    second = note(bump(3, twice=True))
    return first, second, count, [v + count for v in (1, 2)]


def free(start):
    factor = start

    def inner(x, y):
        nonlocal factor
        factor += note(x)
        return [factor * v for v in range(y)], factor

    return inner


def containers(a, b):
    first, *middle, last = [a, b, a + b, a * b]
    merged = {**{"k": a}, "m": middle, **dict(z=last)}
    spread = [*middle, *range(2)]
    words = (*"ab", first)
    spread[0:1] = [7, 8]
    part = spread[1:3]
    del merged["k"]
    keep = {v for v in spread if v}
    return merged, spread, words, part, keep, {k: v for k, v in zip("xy", words)}


def texts(a, b):
    return f"{a!r:>5}|{b:03d}|{a + b}|{note(a)!s}", a if a and b else b, not a, -b, a is None


def conditions(a, b):
    c = a or b and note(3)
    if a is not None and b not in (1, 2) and (a < b <= 9 or a == 5):
        return "one", c
    return "two", c if c is not None else note("x")


class Base:
    def area(self, k):
        return note(k) * 2


class Child(Base):
    def area(self, k):
        return super().area(k) + 1 + super().area(note(k + 1))


def unwinds(a, limit):
    """Leave loops out of try and with blocks."""
    for i in range(a):
        try:
            with Manager(i, False):
                if i == limit:
                    return ("returned", i)
                if i == 1:
                    continue
                note(i)
        finally:
            note(("left", i))
    return "end"


PROGRAMS = [
    (loops, (1, 6)), (loops, (3, 6)), (nested_loops, (4, 0)), (calls, (2, 3)),
    (tries, (1, 100)), (tries, (1, 0)), (tries, (1, 1)), (reraises, (5, 2)), (reraises, (1, 2)),
    (withs, (1, 2)), (withs, (5, 2)), (withs, (5, 50)), (cells, (1, 2)), (free(4), (2, 3)),
    (containers, (1, 2)), (texts, (4, 5)), (conditions, (5, 8)), (conditions, (0, 0)),
    (Child.area, (Child(), 3)), (unwinds, (4, 2)), (unwinds, (2, 5)),
]  # fmt: skip
