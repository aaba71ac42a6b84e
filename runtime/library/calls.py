"""The calls of a plan in LLVM's language: chains and loops are functions, with direct calls of kernels."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

from ...tape.numerics.engine.chain import BLOCK, LOCAL
from ...tape.numerics.llvm.kernel_text import symbol_of
from ...tape.numerics.prepared.loop import LoopCopy, LoopPointer
from .image import At, Call, ChainLink, ChoiceCalls, LoopCalls, Operand

BUFFER = "a buffer is missing, misaligned or too small: see what the header says of each"
STATE = "the state was not made by this library's start"
MESSAGES: tuple[str, ...] = (BUFFER, STATE)
"""What the first codes stand for; behind them come the words of ops."""


class EntryWriter:
    """Functions, constants and messages in the making."""

    def __init__(self) -> None:
        self.globals, self.functions, self.messages = list[str](), list[str](), list(MESSAGES)
        self._count = 0

    def fresh(self) -> int:
        """A number that nothing else has."""
        self._count += 1
        return self._count

    def code(self, message: str) -> int:
        """The code that stands for a message."""
        if message not in self.messages:
            self.messages.append(message)
        return 1 + self.messages.index(message)

    def words(self, words: Sequence[int]) -> str:
        """The address of constant words."""
        name = f"words.{self.fresh()}"
        rows = ", ".join(f"i64 {word}" for word in words) or "i64 0"
        self.globals.append(f"@{name} = internal constant [{max(1, len(words))} x i64] [{rows}]")
        return f"ptrtoint (ptr @{name} to i64)"


class CallBody(ABC):
    """The lines of a function that makes calls."""

    def __init__(self, writer: EntryWriter) -> None:
        self.writer, self.lines, self.width = writer, list[str](), 1

    def add(self, *lines: str) -> None:
        """More lines."""
        self.lines += [f"  {line}" for line in lines]

    @abstractmethod
    def address(self, operand: Operand) -> str:
        """The address of an operand, as an i64."""

    def call(self, call: Call) -> None:
        """One call; it ends the function where it fails."""
        n = self.writer.fresh()
        self.width = max(self.width, len(call.operands))
        for k, operand in enumerate(call.operands):
            place, address = f"%slot{n}.{k}", self.address(operand)
            self.add(f"{place} = getelementptr i64, ptr %table, i32 {k}", f"store i64 {address}, ptr {place}")
        if call.links:
            self.add(f"call void @{_chain(self.writer, call.links, call.size, len(call.operands) - 1)}(ptr %table)")
        elif call.inner:
            inner, writer = call.inner, self.writer
            made = _loop(writer, inner) if isinstance(inner, LoopCalls) else _choice(writer, inner)
            self.add(f"%code{n} = call i32 @{made}(ptr %table, ptr %arena)")
            self.ends(n, f"icmp ne i32 %code{n}, 0", [], f"%code{n}")
        else:
            self.kernel(n, call)

    def kernel(self, n: int, call: Call) -> None:
        """The call of a kernel, whose status is looked at if it may fail."""
        words = self.writer.words(call.words)
        self.add("store i64 0, ptr %result", _kernel_call(f"%done{n}", call.version, words, "0", "1"))
        if call.message:
            self.add(f"%status{n} = load i64, ptr %result")
            told = [f"%position{n} = sub i64 %status{n}, 1", f"store i64 %position{n}, ptr %arena"]
            self.ends(n, f"icmp ne i64 %status{n}, 0", told, str(self.writer.code(call.message)))

    def ends(self, n: int, condition: str, told: Sequence[str], code: str) -> None:
        """Return a code where a condition holds."""
        self.add(f"%bad{n} = {condition}", f"br i1 %bad{n}, label %fault{n}, label %next{n}")
        self.lines.append(f"fault{n}:")
        self.add(*told, f"ret i32 {code}")
        self.lines.append(f"next{n}:")

    def head(self) -> list[str]:
        """Room for what kernels are handed."""
        return [f"  %table = alloca [{self.width} x i64]", "  %result = alloca i64", "  %error = alloca ptr"]


class PlanBody(CallBody):
    """The calls of a plan."""

    def pointer(self, at: At) -> str:
        """The pointer to a place in a region."""
        base = "@const" if at.region == "const" else f"%{at.region}"
        if not at.offset:
            return base
        n = self.writer.fresh()
        self.add(f"%pointer{n} = getelementptr i8, ptr {base}, i32 {at.offset}")
        return f"%pointer{n}"

    def address(self, operand: Operand) -> str:
        """As of `CallBody`."""
        assert isinstance(operand, At), "loops have bodies of their own"
        n, pointer = self.writer.fresh(), self.pointer(operand)
        self.add(f"%address{n} = ptrtoint ptr {pointer} to i64")
        return f"%address{n}"


class LoopBody(CallBody):
    """The calls of a loop, whose arrays stand in the table ``outer``; ``%place`` is that of the turn."""

    def address(self, operand: Operand) -> str:
        """As of `CallBody`."""
        assert isinstance(operand, LoopPointer), "a plan has bodies of its own"
        n = self.writer.fresh()
        self.add(
            f"%outer{n} = getelementptr i64, ptr %outer, i32 {operand.base}",
            f"%base{n} = load i64, ptr %outer{n}",
            f"%moved{n} = mul i64 %place, {operand.stride}",
            f"%start{n} = add i64 %base{n}, {operand.offset}",
            f"%address{n} = add i64 %start{n}, %moved{n}",
        )
        return f"%address{n}"

    def truth(self, address: str) -> None:
        """``%truth``: what stands at an address."""
        self.add(f"%truth.at = inttoptr i64 {address} to ptr", "%truth.byte = load i8, ptr %truth.at")
        self.add("%truth = icmp ne i8 %truth.byte, 0")

    def copy(self, copy: LoopCopy) -> None:
        """A copy between arrays of the loop."""
        n, to, source = self.writer.fresh(), self.address(copy.to), self.address(copy.source)
        self.add(f"%to{n} = inttoptr i64 {to} to ptr", f"%from{n} = inttoptr i64 {source} to ptr")
        self.add(f"call void @llvm.memcpy.p0.p0.i32(ptr %to{n}, ptr %from{n}, i32 {copy.nbytes}, i1 false)")


def _kernel_call(result: str, version: tuple[str, str, str], words: str, part: str, parts: str) -> str:
    _, name, dtype = version
    return (
        f"{result} = call i32 @{symbol_of(name, dtype)}"
        f"(ptr %result, ptr %error, ptr %table, i64 {words}, i64 {part}, i64 {parts})"
    )


def _loop(writer: EntryWriter, loop: LoopCalls) -> str:
    """The name of a function that runs a loop; it gives the code of what failed, or 0."""
    name, first, turn, test = f"loop.{writer.fresh()}", LoopBody(writer), LoopBody(writer), LoopBody(writer)
    if loop.truth:
        test.truth(test.address(loop.truth))
    test.add(f"br i1 {'%truth' if loop.truth else 'true'}, label %turn, label %end")
    first.add(f"%place = add i64 0, {loop.places.start}")
    for copy in loop.before:
        first.copy(copy)
    for call in loop.calls:
        turn.call(call)
    for copy in loop.after:
        turn.copy(copy)
    before = function(f"{name}.before", "ptr %outer", [*first.lines, "  ret i32 0"])
    body = function(f"{name}.turn", "ptr %outer, i64 %place, ptr %arena", [*turn.head(), *turn.lines, "  ret i32 0"])
    end = loop.places.start + len(loop.places) * loop.places.step
    lines = [
        f"  %started = call i32 @{name}.before(ptr %outer)",
        f"  %any = icmp ne i64 {len(loop.places)}, 0",
        "  br i1 %any, label %test, label %end",
        "test:",
        f"  %place = phi i64 [ {loop.places.start}, %0 ], [ %next, %done ]",
        *test.lines,
        "turn:",
        f"  %code = call i32 @{name}.turn(ptr %outer, i64 %place, ptr %arena)",
        "  %bad = icmp ne i32 %code, 0",
        "  br i1 %bad, label %fault, label %done",
        "fault:",
        "  ret i32 %code",
        "done:",
        f"  %next = add i64 %place, {loop.places.step}",
        f"  %more = icmp ne i64 %next, {end}",
        "  br i1 %more, label %test, label %end",
        "end:",
        "  ret i32 0",
    ]
    writer.functions += [before, body, function(name, "ptr %outer, ptr %arena", lines)]
    return name


def _choice(writer: EntryWriter, choice: ChoiceCalls) -> str:
    """The name of a function that runs one of two loops; it gives the code of what failed, or 0."""
    name, body = f"choice.{writer.fresh()}", LoopBody(writer)
    on_true, on_false = _loop(writer, choice.on_true), _loop(writer, choice.on_false)
    body.add("%place = add i64 0, 0")
    body.truth(body.address(LoopPointer(choice.truth, 0)))
    body.add("br i1 %truth, label %so, label %else")
    for label, side in (("so", on_true), ("else", on_false)):
        body.lines.append(f"{label}:")
        body.add(f"%code.{label} = call i32 @{side}(ptr %outer, ptr %arena)", f"ret i32 %code.{label}")
    writer.functions.append(function(name, "ptr %outer, ptr %arena", body.lines))
    return name


def _chain(writer: EntryWriter, links: Sequence[ChainLink], size: int, scratch: int) -> str:
    """The name of a function that runs the links of a chain block by block."""
    name, blocks = f"chain.{writer.fresh()}", -(-size // BLOCK)
    lines = [
        f"  %table = alloca [{max(len(link.operands) for link in links)} x i64]",
        "  %result = alloca i64",
        "  %error = alloca ptr",
        f"  %scratch.at = getelementptr i64, ptr %outer, i32 {scratch}",
        "  %scratch = load i64, ptr %scratch.at",
        "  br label %block",
        "block:",
        "  %b = phi i64 [ 0, %0 ], [ %b.next, %block ]",
        f"  %done = mul i64 %b, {size}",
        f"  %first = udiv i64 %done, {blocks}",
    ]
    for c, link in enumerate(links):
        lines += [
            f"  {line}" for k, operand in enumerate(link.operands) for line in _link_operand(f"{c}.{k}", k, *operand)
        ]
        lines.append("  " + _kernel_call(f"%call{c}", link.version, writer.words(link.words), "%b", str(blocks)))
    lines += [
        "  %b.next = add i64 %b, 1",
        f"  %more = icmp ult i64 %b.next, {blocks}",
        "  br i1 %more, label %block, label %end",
        "end:",
        "  ret void",
    ]
    writer.functions.append(function(name, "ptr %outer", lines, "void"))
    return name


def _link_operand(n: str, k: int, place: int, itemsize: int) -> list[str]:
    """The address of a link's operand: that of an array outside, or a local block, moved so that its part is it."""
    if place >= 0:
        found = [f"%from{n} = getelementptr i64, ptr %outer, i32 {place}", f"%value{n} = load i64, ptr %from{n}"]
    else:
        found = [
            f"%moved{n} = mul i64 %first, {itemsize}",
            f"%local{n} = add i64 %scratch, {(-1 - place) * LOCAL}",
            f"%value{n} = sub i64 %local{n}, %moved{n}",
        ]
    return [*found, f"%slot{n} = getelementptr i64, ptr %table, i32 {k}", f"store i64 %value{n}, ptr %slot{n}"]


def function(name: str, parameters: str, lines: Iterable[str], result: str = "i32", kind: str = "internal ") -> str:
    """The text of a function of some lines."""
    noinline = " noinline" if kind else ""
    return "\n".join([f"define {kind}{result} @{name}({parameters}){noinline} {{", *lines, "}"])
