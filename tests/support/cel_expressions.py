# SPDX-License-Identifier: Apache-2.0
"""Random selectors, mostly well typed: the same seed gives the same ones. What cel-go itself leaves open
(the order of a map's keys) and what docs/design/012-cel.md lists as not supported is left out."""
import random

STRINGS = ["", "a", "gpu", "rdma0", "gpu2rdma0", "H100", "NVIDIA B200", "pci0000:8c", "1.2.3", "80Gi", "true", "12",
           "-7", "1.5", "a,b,,c", "ß", "Größe", "✓", " x ", "A-b_C.d", "aXaXa"]
DOMAINS = ["gpu.nvidia.com", "dra.net", "resource.kubernetes.io", "none.example.com"]
PATTERNS = ["", "a", "^gpu[0-9]+rdma[0-9]$", "gpu|nic", "(?i)nvidia", "B2?00", "^.*0$", "[^a-z]+", r"\\d{2,3}", r"\\bB", "(a|b)*c",
            r"^\\S+\\s\\S+$", "(", "a**", "[z-a]", "x{2}", "a{,2}", "[[:alpha:]]+", "(?P<x>y)?", r"\\.", "^(?:a|)$", "ö", "."]
QUANTITIES = ["0", "1", "80Gi", "1.5Gi", "100m", "1e3", "-2k", "148", "400G", "1.5Ki", "0.1", "183359Mi", "1n", "12E", "1E", "5Ei",
              "9223372036854775807", "9223372036854775808", "0.00000000001", "+3", "-0", ".5", "5.", "1e-3", "1E2", "200K", "Mi", "x",
              "1,3", "1.2.3", "--1", "999999999999G", "010", "1ki", " 1", "16Ei", "0x1", "1e", "1e+3", "00.10M", ".", "+", "-.", "Ei", "0Ei", "-Pi", ".Gi", "m", "1e-30"]
VERSIONS = ["1.2.3", "0.0.0", "570.86.15", "10.0.0", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-rc.1+b.2", "v1.2", "1.2", "01.2.3",
            "1.2.3-01", "6.6.1", "", "1", "v01.02.03-x", "1.0.0-", "1.0.0+", "99999999999999999999.0.0", "v1", "1.2.3.4", "1.0.0-1"]
INTS = ["0", "1", "2", "3", "7", "-1", "42", "8896", "9223372036854775807", "-9223372036854775808", "0x1F", "4294967296"]
UINTS = ["0u", "1u", "3u", "42u", "18446744073709551615u", "0xFFu"]
DOUBLES = ["0.0", "1.5", "-2.5", "3.0", "1e3", "1e21", "1e-7", "0.1", "123456789.0", "9.3e18", "1e308", "-0.0", ".5", "4.0"]
ATTRIBUTES = {
    "string": ["productName", "architecture", "uuid", "type", "ifName", "pcieRoot", "pciBusID", "ipv4"],
    "int": ["index", "numaNode", "mtu"], "bool": ["healthy", "rdma", "virtual"],
    "semver": ["cudaComputeCapability", "driverVersion", "kernel"], "list": ["partitions", "lanes"],
}
CAPACITIES = ["memory", "cores", "half", "large", "fraction", "bandwidth", "absent"]
SCALARS = ["bool", "int", "uint", "double", "string"]


def quote(text):
    return '"' + text.replace('"', '\\"') + '"'


class Expressions:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.variables = []  # (name, type)
        self.names = 0

    def pick(self, items):
        return self.random.choice(items)

    def chance(self, share):
        return self.random.random() < share

    def attribute(self, kind):
        domain = self.pick(DOMAINS) if self.chance(.5) else "gpu.nvidia.com"
        name = self.pick(ATTRIBUTES.get(kind) or sum(ATTRIBUTES.values(), []))
        if self.chance(.5) and name in ("ifName", "mtu", "ipv4", "rdma", "virtual", "kernel"):
            domain = "dra.net"
        if name.startswith("pci") and self.chance(.8):
            domain = "resource.kubernetes.io"
        return f"device.attributes[{quote(domain)}]", name

    def variable(self, kind):
        names = [name for name, type_ in self.variables if type_ == kind]
        return self.pick(names) if names and self.chance(.6) else None

    def typed(self, kind, depth):
        """An expression of the kind: bool int uint double string bytes quantity semver, [kind], ("map", kind), ("opt", kind)."""
        if self.chance(.02):
            kind = self.pick(SCALARS)
        found = self.variable(kind)
        if found:
            return found
        if depth > 0 and self.chance(.06):
            return self.bind(kind, depth)
        if depth > 0 and self.chance(.05):
            return f"({self.typed('bool', depth - 1)} ? {self.typed(kind, depth - 1)} : {self.typed(kind, depth - 1)})"
        if isinstance(kind, list):
            return self.list(kind[0], depth)
        if kind[0] == "map":
            return self.map(kind[1], depth)
        if kind[0] == "opt":
            return self.optional(kind[1], depth)
        return getattr(self, kind)(depth)

    def bind(self, kind, depth):
        self.names += 1
        name, type_ = f"v{self.names}", self.pick(SCALARS + [["int"], ["string"]])
        value = self.typed(type_, depth - 1)
        self.variables.append((name, type_))
        body = self.typed(kind, depth - 1)
        self.variables.pop()
        return f"cel.bind({name}, {value}, {body})"

    def in_macro(self, kind, item, depth):
        """(name of the variable, expression of the kind in which it may stand)"""
        self.names += 1
        name = f"i{self.names}"
        self.variables.append((name, item))
        body = self.typed(kind, depth)
        self.variables.pop()
        return name, body

    def bool(self, depth):
        if depth <= 0:
            domain, name = self.attribute("bool")
            return self.pick(["true", "false", f"{domain}.{name}", "device.allowMultipleAllocations", f"has({domain}.{name})"])
        d = depth - 1
        return self.pick([
            self.logic, self.logic, self.comparison, self.comparison, self.equality, self.membership, self.text_test, self.macro,
            self.presence, self.quantity_test, self.semver_test, self.list_test, self.conversion_test, self.attribute_test,
            lambda d: f"!{self.typed('bool', d)}", lambda d: f"bool({self.typed(self.pick(['string', 'bool']), d)})",
        ])(d)

    def logic(self, depth):
        operator = self.pick([" && ", " || "])
        return "(" + operator.join(self.typed("bool", depth) for _ in range(self.random.randint(2, 3))) + ")"

    def comparison(self, depth):
        kind = self.pick(SCALARS)
        other = kind if self.chance(.7) else self.pick(["int", "uint", "double"])
        return f"({self.typed(kind, depth)} {self.pick(['<', '<=', '>', '>='])} {self.typed(other, depth)})"

    def equality(self, depth):
        kind = self.pick(SCALARS + ["bytes", "quantity", "semver", ["int"], ["string"], ("map", "int"), ("opt", "int")])
        right = self.typed(kind, depth) if self.chance(.9) else self.pick(["null", "dyn(1)", 'dyn("a")', "type(1)"])
        return f"({self.typed(kind, depth)} {self.pick(['==', '!='])} {right})"

    def attribute_test(self, depth):
        kind = self.pick(list(ATTRIBUTES))
        domain, name = self.attribute(kind)
        simple = {"list": ["string"], "semver": "semver"}.get(kind, kind)
        return f"({domain}{self.pick(['.' + name, '[' + quote(name) + ']'])} {self.pick(['==', '!=', '<', '>='])} {self.typed(simple, depth)})"

    def membership(self, depth):
        kind = self.pick(["int", "string", "double", "bool"])
        if self.chance(.2):
            return f"({self.typed('string', depth)} in {self.pick(['device.attributes', 'device.capacity', self.attribute('bool')[0]])})"
        container = [kind] if self.chance(.8) else ("map", "int")
        item = self.typed("string" if container == ("map", "int") else kind, depth)
        if self.chance(.2):
            domain, name = self.attribute(kind)
            item = f"{domain}.{name}"
        return f"({item} in {self.typed(container, depth)})"

    def text_test(self, depth):
        text = self.typed("string", depth)
        if self.chance(.3):
            return f"{text}.matches({quote(self.pick(PATTERNS)) if self.chance(.95) else self.typed('string', depth)})"
        return f"{text}.{self.pick(['contains', 'startsWith', 'endsWith'])}({self.typed('string', depth)})"

    def macro(self, depth):
        kind = self.pick(["int", "string", "double"])
        name, body = self.in_macro("bool", kind, depth)
        range_ = self.typed([kind], depth)
        if self.chance(.2):
            range_ = self.pick(["device.attributes", "device.capacity", 'device.attributes["gpu.nvidia.com"].partitions',
                                'device.attributes["gpu.nvidia.com"].lanes', 'device.attributes["dra.net"]'])
        return f"{range_}.{self.pick(['all', 'exists', 'exists_one', 'existsOne'])}({name}, {body})"

    def presence(self, depth):
        domain, name = self.attribute(None)
        return self.pick([f"has({domain}.{name})", f"{domain}.?{name}.hasValue()", f"{domain}[?{quote(name)}].hasValue()",
                          f"device.attributes[?{quote(self.pick(DOMAINS))}].{name}.hasValue()", f"has(device.attributes.{name})",
                          f"(has({domain}.{name}) && {domain}.{name} == {self.typed(self.pick(SCALARS), depth)})",
                          f"has({self.typed(('map', 'int'), depth)}.a)"])

    def quantity_test(self, depth):
        q = self.typed("quantity", depth)
        return self.pick([f"{q}.{self.pick(['isGreaterThan', 'isLessThan'])}({self.typed('quantity', depth)})", f"{q}.isInteger()",
                          f"({q}.compareTo({self.typed('quantity', depth)}) == {self.pick(['-1', '0', '1'])})",
                          f"isQuantity({quote(self.pick(QUANTITIES))})", f"isQuantity({self.typed('string', depth)})"])

    def semver_test(self, depth):
        v = self.typed("semver", depth)
        return self.pick([f"{v}.{self.pick(['isGreaterThan', 'isLessThan'])}({self.typed('semver', depth)})",
                          f"({v}.compareTo({self.typed('semver', depth)}) == {self.pick(['-1', '0', '1'])})",
                          f"isSemver({quote(self.pick(VERSIONS))}{self.pick(['', ', true', ', false'])})",
                          f"isSemver({self.typed('string', depth)})"])

    def list_test(self, depth):
        kind = self.pick(["int", "string", "double", "bool"])
        a, b = self.typed([kind], depth), self.typed([kind], depth)
        return self.pick([f"{a}.isSorted()", f"{a}.includes({self.typed(kind, depth)})",
                          f"sets.{self.pick(['contains', 'intersects', 'equivalent'])}({a}, {b})"])

    def conversion_test(self, depth):
        kind = self.pick(SCALARS)
        return f"(type({self.typed(kind, depth)}) == {self.pick(SCALARS + ['list', 'map', 'bytes', 'type', 'null_type'])})"

    def number(self, kind, literals, operators, depth):
        if depth <= 0 or self.chance(.25):
            return self.pick(literals)
        d = depth - 1
        if self.chance(.5):
            return f"({self.typed(kind, d)} {self.pick(operators)} {self.typed(kind, d)})"
        other = self.pick(["int", "uint", "double", "string"])
        return f"{kind}({self.typed(other, d)})"

    def int(self, depth):
        if depth > 0 and self.chance(.5):
            d, kind = depth - 1, self.pick(["int", "string"])
            text = self.typed("string", d)
            return self.pick([
                f"size({self.typed(self.pick(['string', 'bytes', ['int'], ('map', 'int')]), d)})", f"{text}.size()",
                f"{text}.{self.pick(['indexOf', 'lastIndexOf'])}({self.typed('string', d)})",
                f"{text}.{self.pick(['indexOf', 'lastIndexOf'])}({self.typed('string', d)}, {self.typed('int', 0)})",
                f"{self.typed([kind], d)}.{self.pick(['indexOf', 'lastIndexOf'])}({self.typed(kind, d)})",
                f"{self.typed(['int'], d)}.{self.pick(['sum', 'min', 'max'])}()", f"{self.typed('quantity', d)}.asInteger()",
                f"sign({self.typed('quantity', d)})", f"{self.typed('semver', d)}.{self.pick(['major', 'minor', 'patch'])}()",
                f"{self.typed(['int'], d)}[{self.pick(['0', '1', '2', '9', '1u', 'dyn(1)'])}]",
                f"{self.typed(('map', 'int'), d)}{self.pick(['.a', '[' + quote('b') + ']'])}",
                f"{self.typed(('opt', 'int'), d)}.{self.pick(['value()', 'orValue(3)'])}", f"(-{self.typed('int', d)})",
                "{}.{}".format(*self.attribute("int")),
            ])
        return self.number("int", INTS, ["+", "-", "*", "/", "%"], depth)

    def uint(self, depth):
        return self.number("uint", UINTS, ["+", "-", "*", "/", "%"], depth)

    def double(self, depth):
        if depth > 0 and self.chance(.15):
            return f"{self.typed('quantity', depth - 1)}.asApproximateFloat()"
        return self.number("double", DOUBLES, ["+", "-", "*", "/"], depth)

    def string(self, depth):
        if depth <= 0 or self.chance(.3):
            return self.pick([quote(self.pick(STRINGS)), quote(self.pick(STRINGS)), "device.driver", "{}.{}".format(*self.attribute("string"))])
        d = depth - 1
        text, other = self.typed("string", d), self.typed("string", d)
        return self.pick([
            f"({text} + {other})", f"{text}.{self.pick(['lowerAscii', 'upperAscii', 'trim'])}()", f"{text}.charAt({self.typed('int', 0)})",
            f"{text}.substring({self.pick(['0', '1', '2', '3', '20'])})",
            f"{text}.substring({self.pick(['0', '1', '2'])}, {self.pick(['1', '3', '4', '-1'])})",
            f"{text}.replace({other}, {quote(self.pick(STRINGS))})", f"{text}.replace({other}, {quote(self.pick(STRINGS))}, {self.pick(['0', '1', '2', '-1'])})",
            f"{self.typed(['string'], d)}.join({self.pick(['', quote('-')])})", f"string({self.typed(self.pick(SCALARS + ['bytes']), d)})",
            f"strings.quote({text})", f"{self.typed(('opt', 'string'), d)}.orValue({other})", f"{self.typed(['string'], d)}[0]",
            f"dyn({text})", f"{self.typed(['string'], d)}.{self.pick(['min', 'max'])}()",
        ])

    def bytes(self, depth):
        if depth <= 0 or self.chance(.5):
            return self.pick(['b"abc"', "b''", r'b"\xff\001"', 'bytes("ß")'])
        return self.pick([f"bytes({self.typed('string', depth - 1)})", f"({self.typed('bytes', depth - 1)} + {self.typed('bytes', depth - 1)})"])

    def quantity(self, depth):
        if depth <= 0 or self.chance(.5):
            capacity = f"device.capacity[{quote(self.pick(DOMAINS[:2]))}].{self.pick(CAPACITIES)}"
            return self.pick([capacity, f"quantity({quote(self.pick(QUANTITIES))})"])
        other = self.typed(self.pick(["quantity", "int"]), depth - 1)
        return f"{self.typed('quantity', depth - 1)}.{self.pick(['add', 'sub'])}({other})"

    def semver(self, depth):
        if self.chance(.4):
            return "{}.{}".format(*self.attribute("semver"))
        return f"semver({quote(self.pick(VERSIONS))}{self.pick(['', ', true', ', false'])})"

    def list(self, kind, depth):
        if depth <= 0 or self.chance(.5):
            count = self.random.randint(0, 4)
            items = [self.typed(kind, 0 if self.chance(.7) else depth - 1) for _ in range(count)]
            if items and self.chance(.05):
                items[0] = "?" + self.typed(("opt", kind), depth - 1)
            return "[" + ", ".join(items) + "]"
        d = depth - 1
        if kind == "string" and self.chance(.3):
            return f"{self.typed('string', d)}.split({quote(self.pick(['', ',', 'a', 'X']))}{self.pick(['', ', 0', ', 1', ', 2', ', -1'])})"
        if self.chance(.2):
            return f"({self.typed([kind], d)} + {self.typed([kind], d)})"
        if self.chance(.2):
            return self.rearranged(kind, d)
        item = self.pick(["int", "string", "double"])
        if self.chance(.5):
            name, body = self.in_macro("bool", kind, d)
            return f"{self.typed([kind], d)}.filter({name}, {body})"
        name, body = self.in_macro(kind, item, d)
        test = self.in_macro("bool", item, 0)[1].join([", ", ""]) if self.chance(.2) else ""
        return f"{self.typed([item], d)}.map({name}{test}, {body})"

    def rearranged(self, kind, depth):
        if kind == "int" and self.chance(.3):
            return f"lists.range({self.pick(['0', '1', '3', '7', '40', '-1', '1000001', self.typed('int', depth)])})"
        start, end = (self.pick(["0", "1", "2", "-1", self.typed("int", 0)]) for _ in range(2))
        return self.typed([kind], depth) + self.pick([".reverse()", ".distinct()", f".slice({start}, {end})"])

    def map(self, kind, depth):
        keys = self.random.sample(["a", "b", "c", "gpu"], self.random.randint(0, 3))
        mark = "?" if self.chance(.05) else ""
        return "{" + ", ".join(f"{mark}{quote(key)}: {self.typed(('opt', kind) if mark else kind, depth - 1)}" for key in keys) + "}"

    def optional(self, kind, depth):
        d = depth - 1
        domain, name = self.attribute(kind if isinstance(kind, str) else None)
        choices = ["optional.none()", f"optional.of({self.typed(kind, d)})", f"optional.ofNonZeroValue({self.typed(kind, d)})",
                   f"{self.typed([kind], d)}[?{self.pick(['0', '1', '5'])}]", f"{self.typed(('map', kind), d)}.?a",
                   f"{self.typed([kind], d)}.{self.pick(['first', 'last'])}()", f"{domain}.?{name}"]
        if depth > 0:
            choices.append(f"{self.typed(('opt', kind), d)}.or({self.typed(('opt', kind), d)})")
            item, body = self.in_macro(kind, kind, d)
            choices.append(f"{self.typed(('opt', kind), d)}.optMap({item}, {body})")
        return self.pick(choices)

    def damaged(self, text):
        """One character less, another, or twice: what the parser must refuse as the API server does, or take."""
        at = self.random.randrange(len(text))
        return self.pick([text[:at] + text[at + 1:], text[:at] + text[at] + text[at:], text[:at] + self.pick("()[]{}.,?:!&|=<>+-*/%\"'1ax_ ") + text[at + 1:]])

    def costly(self):
        """Around the limit of a million."""
        sizes = [self.random.randint(3, 14) for _ in range(self.random.randint(4, 6))]
        text = self.pick(["i0 < 100", "device.driver != string(i0)", 'size(device.driver + "a") > 0', 'device.driver.matches("x|.*y")'])
        for level, size in enumerate(sizes):
            macro = self.pick(["all", "all", "exists", "filter"])
            items = ", ".join(str(number) for number in range(size))
            text = f"[{items}].{macro}(i{level}, {'!' if macro == 'exists' else ''}({text}))"
            text = {"exists": f"!{text}", "filter": f"{text}.size() > 0"}.get(macro, text)
        return text

    def one(self):
        if self.chance(.01):
            return self.costly()
        text = self.typed("bool", self.random.choice([1, 2, 2, 3, 3, 4]))
        while len(text) > 4000:
            text = self.typed("bool", 2)
        return self.damaged(text) if self.chance(.1) else text


def expressions(seed, count):
    source = Expressions(seed)
    return [source.one() for _ in range(count)]
