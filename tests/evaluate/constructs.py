"""Language constructs as small templates, for random programs.

Lines of a statement; `@i@` `@l@` `@d@` `@t@` `@b@` `@f@` `@m@` stand for random expressions (integer, list, dict, text, boolean, float,
model), `@k@` for a key, `@block@` for random statements, `$a` ... for fresh names. `SEE x` keeps a value where it is compared.
What a line `-> $a:int $b:list` names is at hand for what follows.
"""

from __future__ import annotations

TOPS = """
class $A:
    kind = @n@
    items = [1, 2]
    def __init__(self, size=@n@, *more, **named):
        self.size = size
        self.more = list(more)
        self.named = named
    def grow(self, by=1):
        self.size += by
        return self
    @property
    def twice(self):
        return self.size * 2
    @twice.setter
    def twice(self, value):
        self.size = value // 2
    @classmethod
    def make(cls, size):
        made = cls(size)
        cls.kind += 1
        return made
    @staticmethod
    def plus(a, b=@n@):
        return a + b
    def __len__(self): return abs(self.size) % 7
    def __getitem__(self, index): return [self.size, index]
    def __contains__(self, value): return value == self.size
    def __iter__(self): return iter([self.size, *self.more])
    def __eq__(self, other): return isinstance(other, $A) and self.size == other.size
    def __lt__(self, other): return self.size < other.size
    def __hash__(self): return hash(self.size)
    def __add__(self, other): return type(self)(self.size + (other.size if isinstance(other, $A) else other))
    def __radd__(self, other): return self + other
    def __call__(self, value): return self.size - value
    def __str__(self): return f"A{self.size}"
class $B($A):
    def __init__(self, size=2, **named):
        super().__init__(size + 1, size, **named)
        self.named["b"] = 1
    def grow(self, by=2):
        return super().grow(by * 2)
    def __bool__(self): return self.size > 2
class $C($A):
    kind = 9
    def grow(self, by=3):
        self.items = self.items + [by]
        return super().grow(by)
class $D($B, $C):
    @property
    def twice(self):
        return super().twice + 1
CLASSES = [$A, $B, $C, $D]
---
@dataclasses.dataclass
class $A:
    size: int = @n@
    names: list = dataclasses.field(default_factory=list)
    total: dataclasses.InitVar[int] = 3
    shared: typing.ClassVar[int] = 5
    hidden: int = dataclasses.field(default=1, repr=False, compare=False)
    def __post_init__(self, total):
        self.names.append(total)
        if self.size > 6:
            raise ValueError(f"size {self.size}")
@dataclasses.dataclass(order=True)
class $B($A):
    extra: dict = dataclasses.field(default_factory=dict, kw_only=True)
    size: int = @n@
@dataclasses.dataclass(frozen=True)
class $C:
    a: int
    b: tuple = (1, 2)
    _: dataclasses.KW_ONLY
    c: int = 3
    @property
    def both(self): return self.a + self.c
RECORDS = [$A, $B, $C]
---
class $A(enum.IntEnum):
    ONE = 1
    TWO = enum.auto()
    FIVE = @n@ + 5
    UNO = 1
    @property
    def double(self): return self.value * 2
class $B(enum.Enum):
    RED = "red"
    BLUE = "blue"
    @classmethod
    def parse(cls, text):
        for member in cls:
            if member.value == text.lower():
                return member
        return cls.RED
    def __str__(self): return "B:" + self.value
ENUMS = [$A, $B]
---
REGISTRY = {}
CALLS = []
def register(name=None, *, factor=@n@):
    def wrap(function):
        @functools.wraps(function)
        def inner(*args, **kwargs):
            CALLS.append(function.__name__)
            return function(*args, **kwargs) * factor
        REGISTRY[name or function.__name__] = inner
        return inner
    return wrap
def tagged(cls):
    cls.tag = cls.__name__.lower()
    return cls
@register()
def alpha(x=1): return x + 1
@register("beta", factor=2)
def second(x, *rest, y=@n@, **named): return x + y + len(rest) + sum(named.values())
@tagged
class Tagged:
    count = 0
    def __init_subclass__(cls, **named):
        super().__init_subclass__()
        Tagged.count += 1
        cls.order = Tagged.count
class $A(Tagged): pass
class $B(Tagged): pass
REGISTERED = [$A, $B]
---
COUNTER = @n@
HISTORY = []
def count(step=1, seen=[]):
    global COUNTER
    COUNTER += step
    seen.append(COUNTER)
    HISTORY.append(len(seen))
    return COUNTER
def remember(key, cache={}):
    if key in cache:
        return -1
    cache[key] = len(cache)
    return cache[key]
@functools.lru_cache(maxsize=None)
def memo(n):
    HISTORY.append(n)
    return n if n < 2 else memo(n - 1) + memo(n - 2)
COUNTED = [count, remember]
---
class Problem(ValueError):
    def __init__(self, code, text="problem"):
        super().__init__(f"{text} {code}")
        self.code = code
class Worse(Problem):
    pass
def risky(value):
    if value > 3:
        raise Worse(value, text="worse")
    if value < 0:
        raise Problem(value)
    return value
def guarded(value):
    try:
        return risky(value)
    except Worse as error:
        return error.code + 100
    finally:
        STATE["count"] += 1
def swallowed(value):
    for step in range(3):
        try:
            if step == value:
                return step
            risky(value - step)
        except Problem:
            continue
        finally:
            if step == 2:
                break
    else:
        return -5
    return -6
PROBLEMS = [risky, guarded]
---
class Suppressing:
    def __init__(self, log, quiet): self.log, self.quiet = log, quiet
    def __enter__(self):
        self.log.append("in")
        return self.log
    def __exit__(self, kind, error, trace):
        self.log.append(kind.__name__ if kind else "out")
        return self.quiet
@contextmanager
def noted(log, name):
    log.append(name)
    try:
        yield len(log)
    except KeyError as error:
        log.append(str(error))
    finally:
        log.append("end " + name)
CONTEXTS = [Suppressing]
---
def counting(limit):
    got = 0
    while got < limit:
        sent = yield got
        got += sent if sent is not None else 1
    return got * 10
def delegating(limit):
    result = yield from counting(limit)
    yield result
def cleaned(log):
    try:
        yield 1
        yield 2
    finally:
        log.append("closed")
class Tree:
    def __init__(self, value, *children): self.value, self.children = value, children
    def __iter__(self):
        yield self.value
        for child in self.children:
            yield from child
GENERATORS = [counting]
---
class Descriptor:
    def __set_name__(self, owner, name): self.name = "_" + name
    def __get__(self, instance, owner=None): return self if instance is None else getattr(instance, self.name, 7)
    def __set__(self, instance, value): setattr(instance, self.name, value + 1)
class $A:
    field = Descriptor()
    __slots__ = ("_field", "other")
class $B:
    made = 0
    def __new__(cls, *args):
        self = super().__new__(cls)
        cls.made += 1
        return self
    def __init__(self, value=1): self.value = value
    def __getattr__(self, name): return name.upper()
    @functools.cached_property
    def slow(self):
        STATE["count"] += 10
        return self.value * 3
class $C(typing.NamedTuple):
    x: int
    y: int = 4
    def area(self): return self.x * self.y
DESCRIBED = [$A, $B, $C]
---
@functools.total_ordering
class $A:
    def __init__(self, v): self.v = v
    def __eq__(self, o): return self.v == o.v
    def __lt__(self, o): return self.v < o.v
    def __repr__(self): return f"<{self.v}>"
@functools.singledispatch
def shape(x): return "other"
@shape.register
def _(x: int): return "int"
@shape.register(list)
def _(x): return f"list {len(x)}"
ORDERED = [$A]
"""

STATEMENTS = """
$a = @l@
$b = $a
$a += [@i@]
$a = $a + [@i@]
$a += (@i@,)
SEE [$a, $b, $a is $b]
-> $a:list $b:list
---
$a = @l@
$b = [$a, $a, list($a)]
$b[0].append(@i@)
$c = copy.copy($b); $d = copy.deepcopy($b)
$c[1].append(8); $c.append(9); $d[0].append(7)
SEE [$a, $b, $c, $d, $d[0] is $d[1]]
-> $a:list
---
$a = (1, [@i@])
try:
    $a[1].append(2)
    $a[1] += [3]
except TypeError as e:
    SEE str(e)
SEE $a
---
$a = @d@
$b = $a
$a |= {'Z': @i@}
$a = $a | {'Y': 1}
SEE [$a, $b, list($a), list(reversed($a))]
-> $a:dict $b:dict
---
$a = {'A': 1, 'B': 2, 'C': @i@}
$a[@k@] = $a.pop('A')
$b = $a.popitem()
$a.setdefault('A', 5)
$a.update(B=@i@)
SEE [list($a.items()), $b, dict(zip('xyz', $a.values())), dict.fromkeys('ab', 0)]
-> $a:dict
---
$a = @d@
$b = {v: k for k, v in $a.items()}
SEE [sorted($a.keys() & {'A', 'B'}), sorted($a.keys() - {'A'}), list($b), max($a, key=lambda k: ($a[k], k), default=None)]
---
$a = {}
for $n, $k in enumerate(@l@):
    $a.setdefault($k % 3, []).append($n)
SEE $a
---
$a = collections.defaultdict(list)
for $n in @l@:
    $a[$n % 2].append($n)
$b = collections.Counter('abracadabra')
$c = collections.OrderedDict(a=1, b=2); $c.move_to_end('a')
SEE [dict($a), $b['a'], $b.most_common(2), list($c), len($a[99])]
---
$a = collections.deque(@l@, maxlen=3)
$a.append(@i@); $a.appendleft(@i@); $a.rotate(1)
SEE [list($a), $a[-1]]
---
$a = list(range(10))
$a[::2] = [0] * 5
$a[1:3] = @l@
del $a[-2:]
$a[:0] = [@i@]
$a[len($a):] = [5]
SEE [$a, $a[::-1][1:4], $a[-3:-1], $a[5:2], $a[100:]]
-> $a:list
---
$a = @l@
del $a[0:1]
try:
    del $a[@s@]
    $a[@s@] = 4
    $a.remove(@i@)
    SEE $a.index(2)
except (IndexError, ValueError) as e:
    SEE type(e).__name__
SEE $a
-> $a:list
---
$a = @t@
SEE [$a.split('a'), $a.partition('_'), $a.rpartition('l'), $a.startswith(('l', 'x')), $a.find('a'), $a.title(), $a.center(9, '*'), $a.removeprefix('ll'), $a.strip('a8'), $a.isdigit()]
$x, $y, $z = @i@, @f@, @b@
SEE f'{$a!r:>12}|{$x:+d}|{$y:.3f}|{$x:<5}|{$y:e}|{$z!s:^8}|{$x=}'
---
$a = @i@; $w = 3 + @n@
SEE f'{$a:>{$w}}{$a:0{$w}d}{$a:x}{$a:,}{-$a:b}{$a / 3:{$w}.2f}'
SEE ['%05.1f|%-4s|%x|%%|%r' % (@f@, 'ab', abs(@i@), [1]), '%(a)s-%(b)03d' % {'a': @t@, 'b': @i@}, '{0}{1}{0}{k[0]}{m.tp}'.format(1, @i@, k=[3], m=@m@)]
---
SEE [' a  b '.split(), 'a,b,,c'.split(',', 2), 'a\\nb\\r\\n'.splitlines(), 'x'.join(map(str, @l@)), 'aXbX'.replace('X', '-', 1), 'abc'.upper()[::-1], ord('a'), chr(98), 'b' in 'abc', 'a' * @s@, 'a' < 'B', 'Abc'.swapcase(), 'a-b_c'.translate(str.maketrans('-_', '__'))]
---
SEE [divmod(@i@, 3), @i@ // -2, @i@ % -3, -7 // 2, -7 % 3, round(2.5), round(-1.5), round(2.675, 2), round(@i@, -1), 7.5 // 2, -7.5 % 2, int(-2.7), 10 ** -2, abs(@i@).bit_length(), 5 & 3 ^ 6 | 8, ~@i@, True + True, sum([True, False, True]), 3 == 3.0, int('-12'), float('1e3'), 0.1 + 0.2, 1e16 + 1, math.isclose(0.1 + 0.2, 0.3), math.gcd(12, @i@), math.log2(8), math.sqrt(16), min(3, 2.0), max('a', 'b'), pow(3, 4, 5), hex(255), bin(5)]
---
$a = []
$b = @i@ > 1 and $a.append(1) or $a.append(2) or @b@
$c = (lambda *p: len(p))($a.append(3), len($a), *$a)
$d = 0 < len($a) < 5 != 7
SEE [$a, bool($b), $c, $d, [] or {} or 0 or 'z', None and 1, not $a]
---
$a = [lambda: $n for $n in range(3)]
$b = [lambda $n=$n: $n for $n in range(3)]
SEE [[g() for g in $a], [g() for g in $b]]
---
def $f():
    $n = 0
    def up(by=@n@):
        nonlocal $n
        $n += by
        return $n
    def get(): return $n
    return up, get
$a, $b = $f(); $c, $d = $f()
$a(); $a(@i@); $c()
SEE [$b(), $d()]
$e = $b()
-> $e:int
---
def $f(a, /, b=@n@, *rest, c=@n@, **named):
    return [a, b, list(rest), c, sorted(named.items())]
SEE [$f(1), $f(1, 2, 3, c=4), $f(*@l@[:2] or [0], **{'c': 5, 'z': 1}), $f(@i@, c=@i@, a=3)]
try:
    SEE $f(*@l@, b=@i@)
except TypeError:
    SEE 'type error'
---
$a, ($b, *$c), *$d = @i@, 'xyz', *@l@
[$e, $g] = sorted([@i@, @i@])
for $h, [$p, $q] in [(1, [2, 3]), (@i@, (5, 6))]:
    $a += $h * $p - $q
SEE [$a, $b, $c, $d, $e, $g]
-> $a:int $e:int
---
$a = [[@i@, 2], [3, @i@], []]
SEE [x for y in $a for x in y if x > 1]
SEE [[x * y for x in range(3) if x != y] for y in range(3)]
SEE {x: [y for y in range(x)] for x in range(3)}
SEE sorted({x % 3 for x in @l@})
SEE sum(x * y for x, y in zip(@l@, range(9)))
SEE [$b := 5, $b ** 2, [$c := x for x in range(3)], $c]
---
$a = iter(@l@)
SEE [next($a, None), list($a), next($a, 'end')]
---
$a = [3, *@l@]
while ($b := $a.pop()) > 1 and $a:
    SEE $b
else:
    SEE 'none'
SEE [$a, $b]
---
for $a in range(6):
    if $a == @i@: continue
    for $b in range($a):
        if $b == @n@: break
        STATE['count'] += $b
    else:
        STATE['count'] += 100
    if $a * 2 > @i@: break
else:
    SEE 'all'
SEE $a
---
def $f(x):
    for y in range(4):
        try:
            if y == x: return 'r'
            if y == @n@: break
            if y == 1: continue
            1 // (y - @n@)
        except ZeroDivisionError:
            SEE 'zero'
            if x > 2: return 'e'
        else:
            SEE y
        finally:
            STATE['count'] += 1
            if x == -1: return 'f'
    return 'd'
SEE [$f(@i@), $f(-1), $f(9)]
---
try:
    try:
        @block@
        {}[@k@]
    except KeyError as $e:
        raise ValueError(@t@) from $e
    finally:
        STATE['count'] += 3
except ValueError as $e:
    SEE [str($e), type($e.__cause__).__name__, $e.args]
try:
    SEE str($e)
except (NameError, UnboundLocalError):
    SEE 'gone'
---
try:
    raise @x@
except (TypeError, KeyError) as $e:
    SEE ['a', type($e).__name__]
except ArithmeticError:
    SEE 'b'
except LookupError:
    SEE 'c'
except Exception as $e:
    SEE [type($e).__name__, str($e)]
    if @b@: raise
---
def $f():
    if @b@:
        $a = 1
    try:
        return $a
    except UnboundLocalError:
        return 'unbound'
SEE $f()
---
with contextlib.ExitStack() as $s:
    $l = []
    $s.callback($l.append, 'last')
    $s.enter_context(contextlib.suppress(KeyError))
    $l.append('body')
    if @b@: {}['x']
SEE $l
---
match @i@, @l@:
    case 0, _:
        SEE 'zero'
    case $a, [$b, *_] if $a > $b:
        SEE ['guard', $a, $b]
    case (1 | 2) as $c, []:
        SEE $c
    case $a, [] | [_]:
        SEE ['few', $a]
    case _:
        SEE 'rest'
---
match @d@:
    case {'A': int($a), **$r} if $a != 0:
        SEE [$a, sorted($r)]
    case {'B': 2 | 3}:
        SEE 'b'
    case {}:
        SEE 'mapping'
match @m@:
    case Mixed(experts=$a, tp=1 | 2): SEE $a
    case Model(tp=int() as $a, name='a'): SEE [$a]
    case Model(modules=[$b, *_]): SEE $b
    case _: SEE 'no'
match @v@:
    case None: SEE 'none'
    case True | False: SEE 'bool'
    case int() | float(): SEE 'number'
    case Kind.FLASH: SEE 'kind'
    case str($a): SEE $a
    case [1, *_] | [_, 2]: SEE 'seq'
    case dict(): SEE 'dict'
    case list() | tuple(): SEE 'list'
---
SEE sorted(@l@, key=lambda x: (x % 2, -x))
SEE [sorted(['b', 'A', 'c'], key=str.lower), sorted([(1, 'b'), (1, 'a'), (0, 'z')], key=operator.itemgetter(0)), max(@l@, default=-1), min([3, 1, 2], key=lambda x: abs(x - @i@)), sorted(@d@), sorted(@d@.items(), key=lambda p: p[1], reverse=True)]
---
SEE [[1, 2] < [1, @i@], (1, 'a') == (1, 'a'), [1] == (1,), {1: 2} == {1: 2.0}, {1, 2} <= {1, 2, @i@}, 'a' == 1, None == 0, 1 < 2 < @i@, [] is None]
try:
    SEE sorted([1, 'a', None])
except TypeError:
    SEE 'unorderable'
---
SEE [list(itertools.chain([1], @l@)), list(itertools.product([1, 2], 'ab')), list(itertools.accumulate(@l@)), [(k, len(list(g))) for k, g in itertools.groupby(sorted(@l@))], list(itertools.islice(itertools.count(@i@), 3)), list(itertools.zip_longest(@l@, [1])), list(itertools.combinations([1, 2, 3], 2)), list(itertools.takewhile(lambda x: x < 3, @l@)), list(itertools.dropwhile(lambda x: x < 3, @l@)), list(itertools.starmap(pow, [(2, 3), (@n@, 2)])), list(itertools.pairwise(@l@)), list(itertools.repeat(0, 2)), list(itertools.chain.from_iterable([[1], @l@]))]
---
SEE [list(enumerate(@l@, 1)), list(zip(@l@, 'abc')), list(reversed(@l@)), any(x > 2 for x in @l@), all(@l@), list(filter(None, @l@)), list(map(max, @l@, [1, 5])), sum(@l@, 10), functools.reduce(lambda a, b: a * 2 + b, @l@, 1), dict(a=1, **@d@) if 'a' not in @d@ else 0]
try:
    SEE list(zip(@l@, [1, 2], strict=True))
except ValueError:
    SEE 'lengths'
---
$p = functools.partial(Model, tp=@i@, name='p')
$q = functools.partial($p, tp=@i@)
SEE [$p().tp, $q(pp=2), $q.keywords, functools.partial(max, 3)(@i@)]
-> $p:partial
---
SEE [isinstance(@v@, int | str), isinstance(True, int), issubclass(Mixed, Model), type(@v@).__name__, type(@m@) is Model, callable(len), hasattr(@m@, 'nope'), getattr(@m@, 'tp', 0), isinstance(@v@, (list, dict)), Model.__name__, Mixed.__mro__[1].__name__, vars(@m@) is not None, sorted(vars(@m@)), 'tp' in @m@.__dict__]
---
$m = @m@
$n = copy.copy($m)
$n.tp = @i@
$n.modules.append('x')
$n.extra = dict($n.extra, y=1)
SEE [$m.tp, $m.modules, $m.extra, $n, $m == $n, $m is $n]
SEE [dataclasses.asdict($m), [g.name for g in dataclasses.fields($m)], dataclasses.is_dataclass($n), dataclasses.replace($n, pp=@i@)]
-> $m:model $n:model
---
for $n in ('tp', 'pp'):
    setattr(@m@, $n, getattr(@m@, $n) + @i@)
$m = @m@
$m.added = @v@
if hasattr($m, 'added'): del $m.added
SEE hasattr($m, 'added')
$m.__dict__['late'] = 3
SEE $m.late
---
$m = types.SimpleNamespace(a=@i@, b=@l@)
$m.c = $m
SEE [$m.a, vars($m)['b'], hasattr($m, 'd'), $m.c.c.a]
---
SEE [list(Kind), Kind('flash') is Kind.FLASH, Kind['FUSED'].value, Level.LOW.name, Level(2), Level.HIGH in Level, Kind.FLASH == 'flash', len(Level), [m.value for m in Level], str(Level.LOW), isinstance(Kind.FLASH, str), {Level.LOW: 1}[Level.LOW]]
try:
    SEE Level(@i@)
except ValueError as $e:
    SEE 'no level'
---
SEE [json.dumps({'a': [1, None, True, 1.5], 'b': @d@}), json.loads('{"x": [1, 2.5, null]}'), os.path.join('a', 'b', '/c', 'd'), os.path.basename('/x/y.z'), os.path.splitext('a.b.c'), str(Path('a') / 'b' / '..'), Path('/x/y.tar').stem, re.sub('[0-9]+', '#', 'a12b3'), bool(re.match('ll', @t@)), [m.group() for m in re.finditer('a', 'banana')]]
---
$s = {1, 2, 3} | {@i@}
$s.discard(@i@); $s.add(4)
SEE [sorted($s), sorted($s & {1, 4}), sorted($s ^ {1, 9}), len($s), $s >= {4}, frozenset([1, 1]) == {1}, {1, 2}.isdisjoint({3}), sorted($s.difference([1]))]
---
$x = @i@
$x += 1; $x -= @i@; $x *= 2; $x //= 2; $x %= 7; $x **= 2; $x |= 8; $x ^= 3; $x <<= 1; $x >>= 1; $x &= 255
$y = 'a'; $y *= 2; $y += @t@; $z = 7; $z /= 2
SEE [$x, $y, $z]
-> $x:int
---
$a = [0] * 3; $b = [[0]] * 2; $c = $a
$b[0].append(@i@); $a[@n@ % 3] = 9; $a, $c = $c[:1], $a
SEE [$a, $b, $c]
-> $a:list
---
$a = [1, 2, 3]; $i = 0
$i, $a[$i] = 1, 9
$a[$i], $i = $i, 2
for $a[0] in range(3): pass
SEE [$a, $i]
---
$a = [x for x in @l@]
for $x in $a[:]:
    if $x > 1: $a.remove($x)
$x = len($a)
SEE [$a, $x]
---
class $K:
    $x = @i@
    $y = [$x] * 2
    if @b@:
        $z = 1
    else:
        $z = 2
    def get(self): return [self.$x, self.$y, self.$z, type(self).__name__]
    for $w in range(2): pass
    class Inner:
        v = 4
$k = $K(); $k.$x = 5; $K.$z = 7; $k.$y.append(1)
SEE [$k.get(), $K().get(), $K.Inner.v, $K.$w, sorted(n for n in vars($k))]
---
def $f(n): return n if n < 2 else $f(n - 1) + $f(n - 2)
def $g(n, acc=()): return list(acc) if n <= 0 else $g(n - 1, (*acc, n))
SEE [$f(7), $g(3), $f(@n@)]
---
try:
    $a = @l@
    $a.extend($a); $a.insert(@s@, 1); $a.sort(key=lambda v: -v); $b = $a.pop(@s@); $a.reverse()
    SEE [$a, $b, $a.count(1), $a.copy() is $a]
except IndexError:
    SEE 'index'
---
if ($a := @i@) > 2 and ($b := $a * 2) < 20:
    SEE $b
elif $a:
    SEE $a
$c = [y for x in @l@ if (y := x + 1) > 2]
SEE [$c, $a]
---
$a = @o@
$b = $a if $a is not None else @i@
$c = $a or 5
if $a is None:
    cfg.model.vp = 1
elif $a == 0 or not $a:
    cfg.model.vp = None
else:
    cfg.model.vp = $a
SEE [$b, $c]
-> $b:int $c:int
---
for $a in [0, 1, None, '', 'x', [], [0], {}, 0.0, 1.5, False, True]:
    if not $a: STATE['count'] += 1
SEE STATE['count']
---
$o = OmegaLike(a=@i@)
$o.b = 2; $o['c'] = @i@
SEE [$o.a, $o.get('z', 1), sorted($o), $o]
---
print('', file=sys.stderr, end='')
assert True, 'never'
$a: int = @i@
$b: 'list[int]'
pass; ...; 'text'
SEE $a
-> $a:int
"""

USES = {
    "CLASSES": """
$a = @C@(@i@); $b = @C@(@i@)
$a.grow(); $b.grow(@i@)
SEE [$a.size, $a.twice, len($a), $a[1], @i@ in $a, list($b), $a == $b, $a < $b, ($a + $b).size, (1 + $a).size, $a(2), str($a), bool($b), $a.named, f'{$b}']
$a.twice = @i@; $c = @C@.make(@i@)
SEE [$a.size, $c.kind, @C@.kind, @C@.plus(2), $a.plus(1, 2), [k.kind for k in CLASSES], sorted([$a, $b, $c], key=lambda q: q.size)[0].size, sum([$a.size, $b.size]), isinstance($a, CLASSES[1])]
@C@.items.append(3); $b.items = $b.items + [4]
SEE [$a.items, $b.items, [k.items for k in CLASSES], {$a: 1}.get($b), $a in [$b], type($a).__mro__[0].__name__, hasattr($a, 'kind')]
""",
    "RECORDS": """
try:
    $a = RECORDS[@n@ % 2](@i@, total=@i@); $b = RECORDS[1](size=@i@, extra={'k': 1})
    SEE [$a, $b, $a == $b, RECORDS[1](1) < RECORDS[1](2), dataclasses.asdict($b), dataclasses.replace($b, size=1, total=2), repr($a), $a.shared, $b.hidden]
except ValueError as $e:
    SEE str($e)
$c = RECORDS[2](@i@, c=@i@)
try:
    $c.a = 4
except dataclasses.FrozenInstanceError:
    SEE 'frozen'
except AttributeError:
    SEE 'attribute'
SEE [$c, $c.both, dataclasses.astuple($c), $c == RECORDS[2]($c.a, c=$c.c), hash($c) == hash(RECORDS[2]($c.a, c=$c.c)), [g.name for g in dataclasses.fields(RECORDS[1])]]
try:
    RECORDS[2](1, 2, 3)
except TypeError:
    SEE 'positional'
""",
    "ENUMS": """
$a = ENUMS[0]
SEE [$a.ONE + 1, $a.UNO is $a.ONE, [m.name for m in $a], $a.TWO.value, $a.FIVE > @i@, $a(2).double, $a['ONE'].name, int($a.TWO), max($a).name, sorted([$a.TWO, $a.ONE])[0].name, len($a), $a.ONE == 1, f'{$a.ONE.value}', list($a.__members__)]
$b = ENUMS[1]
SEE [$b.parse(@t@), str($b.BLUE), $b('red'), f'{$b.RED}', $b.RED == 'red', repr($b.RED.value), {m: m.value for m in $b}[$b.BLUE], $b.RED in list($b), hasattr($b, 'GREEN')]
try:
    SEE $a(@i@).name
except ValueError:
    SEE 'value'
""",
    "REGISTERED": """
SEE [alpha(@i@), alpha.__name__, REGISTRY['beta'](@i@, 2, 3, y=@i@, z=1), sorted(REGISTRY), second(1), list(CALLS), Tagged.tag, REGISTERED[0].order, REGISTERED[1].order, REGISTERED[1].tag, Tagged.count]
for $n, $f in REGISTRY.items():
    SEE [$n, $f(@i@)]
""",
    "COUNTED": """
$a = count(); count(@i@); count(step=2, seen=[])
SEE [$a, COUNTER, list(HISTORY), remember(@k@), remember(@k@), count()]
SEE [memo(6), memo(5), len(HISTORY)]
""",
    "PROBLEMS": """
for $a in [@i@, 9, -2]:
    try:
        SEE guarded($a)
        SEE swallowed($a)
        SEE risky($a)
    except Worse as $e:
        SEE ['worse', $e.code, str($e)]
    except Problem as $e:
        SEE ['problem', $e.code, $e.args]
        if @b@:
            break
    else:
        SEE 'fine'
""",
    "CONTEXTS": """
$l = []
try:
    with Suppressing($l, @b@) as $q, noted($l, 'n') as $n:
        $q.append($n)
        @block@
        if @b@: raise KeyError('k')
        if @b@: raise ValueError('v')
        $l.append('after')
except ValueError as $e:
    $l.append('caught')
SEE $l
def $f():
    with Suppressing($l, True):
        return 1
    return 2
def $g():
    with Suppressing($l, True):
        raise ValueError
    return 2
SEE [$f(), $g(), $l]
""",
    "GENERATORS": """
$g = counting(@i@)
$a = [next($g, None)]
try:
    $a.append($g.send(2))
    $a.append(next($g))
except (StopIteration, TypeError) as $e:
    $a.append(type($e).__name__)
SEE [$a, list(delegating(@n@)), [v for v in delegating(2) if v], list(Tree(1, Tree(2), Tree(3, Tree(@i@))))]
$l = []
for $v in cleaned($l):
    if $v == @n@: break
SEE sum(Tree(1, Tree(@i@)))
$h = (v * 2 for v in @l@)
SEE [next($h, -1), list($h), list($h)]
""",
    "DESCRIBED": """
$a = DESCRIBED[0](); $b = DESCRIBED[1](@i@); $c = DESCRIBED[2](@i@)
SEE [$a.field, $b.missing, $b.slow, $b.slow, STATE['count'], DESCRIBED[1].made, $c.area(), $c._replace(y=@i@), $c == ($c.x, 4), $c._asdict(), $c[0], len($c)]
$a.field = @i@
SEE $a.field
try:
    $a.unheard = 1
    SEE 'set'
except AttributeError:
    SEE 'slots'
$x, $y = $c
SEE [$x, $y]
""",
    "ORDERED": """
$a = [ORDERED[0](@i@), ORDERED[0](@i@), ORDERED[0](2)]
SEE [sorted($a)[0].v, max($a).v, $a[0] >= $a[1], $a[0] <= $a[2], $a[0] != $a[1], repr($a)]
SEE [shape(@i@), shape(@l@), shape('x')]
""",
}
"""Statements that need one of the definitions of TOPS, by the name that the definition leaves behind."""


def parts(text: str) -> list[list[str]]:
    """Templates as lists of lines."""
    return [[line for line in part.strip("\n").split("\n") if line] for part in text.split("\n---\n")]
