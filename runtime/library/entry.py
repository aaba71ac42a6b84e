"""The entry of a library in LLVM's language: it looks at what it is given, and makes the calls one behind the other."""

from collections.abc import Mapping, Sequence
from itertools import chain

from ...tape.numerics.library.targets import Target
from ...tape.numerics.llvm.kernel_text import symbol_of
from ..step.memory import ALIGNMENT
from .calls import BUFFER, MESSAGES, STATE, EntryWriter, PlanBody, function
from .environment import ENVIRONMENTS
from .image import At, Image, PlacedArray


def entry_text(name: str, image: Image, target: Target, about: str) -> tuple[str, list[str]]:
    """The module with ``NAME_run`` and ``NAME_start``, and the messages of its codes."""
    writer = EntryWriter()
    regions = [*(["state"] if image.state else []), *_regions(image)]
    given = ", ".join(f"ptr %{region}" for region in (*regions, "arena"))
    plan = PlanBody(writer)
    for offset, nbytes in image.cleared:
        plan.add(
            f"call void @llvm.memset.p0.i32(ptr {plan.pointer(At('arena', offset))}, i8 0, i32 {nbytes}, i1 false)"
        )
    for call in image.calls:
        plan.call(call)
    for k, out in enumerate(image.outputs):
        pointer = plan.pointer(out.at)
        plan.add(f"call void @llvm.memcpy.p0.p0.i32(ptr %out{k}, ptr {pointer}, i32 {out.layout.nbytes}, i1 false)")
    writer.functions.append(function("calls", given, [*plan.head(), *plan.lines, "  ret i32 0"]))
    writer.functions.append(_run(name, image, target, regions))
    writer.globals.append(_data("const", image.const))  # of no bytes, too: arrays without elements lie there
    if image.state:
        writer.globals.append(_data("start", _magic(image).to_bytes(8, "little") + image.state[8:]))
        writer.functions.append(_start(name, image, target))
    told = _told(name, writer.messages, about)
    kernels = [f"declare i32 @{symbol_of(k, d)}(ptr, ptr, ptr, i64, i64, i64)" for _, k, d in image.versions]
    parts = [kernels, DECLARED, writer.globals, told, [ENVIRONMENTS[target.environment]], writer.functions]
    return "\n".join(chain(*parts)), writer.messages


DECLARED = [
    "declare void @llvm.memcpy.p0.p0.i32(ptr, ptr, i32, i1)",
    "declare void @llvm.memset.p0.i32(ptr, i8, i32, i1)",
]


def _magic(image: Image) -> int:
    """How a state begins that this library understands."""
    return int(image.digest[:15], 16)


def _regions(image: Image) -> list[str]:
    return [*(f"in{k}" for k in range(len(image.inputs))), *(f"out{k}" for k in range(len(image.outputs)))]


def _alignments(image: Image) -> Mapping[str, int]:
    """To how many bytes each buffer that is not empty must be aligned."""
    arrays: dict[str, PlacedArray] = dict(zip(_regions(image), (*image.inputs, *image.outputs), strict=True))
    found = {region: n.layout.dtype.itemsize for region, n in arrays.items() if n.layout.nbytes}
    return {**found, **({"state": ALIGNMENT} if image.state else {}), "arena": ALIGNMENT}


def _run(name: str, image: Image, target: Target, regions: Sequence[str]) -> str:
    """Look at the buffers and the state, then make the calls in the right environment."""
    size = f"i{target.pointer}"
    lines = [*_looked_at(_alignments(image)), f"  %small = icmp ult {size} %bytes, {image.arena}"]
    lines += ["  %unfit = or i1 %refused, %small", "  br i1 %unfit, label %buffer, label %fits"]
    lines += ["buffer:", f"  ret i32 {1 + MESSAGES.index(BUFFER)}", "fits:"]
    if image.state:
        lines += [
            "  %magic = load i64, ptr %state",
            f"  %known = icmp eq i64 %magic, {_magic(image)}",
            "  br i1 %known, label %begin, label %strange",
            "strange:",
            f"  ret i32 {1 + MESSAGES.index(STATE)}",
            "begin:",
        ]
    given = ", ".join(f"ptr %{region}" for region in (*regions, "arena"))
    lines += [
        "  %old = call i64 @environment.enter()",
        f"  %code = call i32 @calls({given})",
        "  call void @environment.leave(i64 %old)",
        "  ret i32 %code",
    ]
    return function(f"{name}_run", f"{given}, {size} %bytes", lines, kind="")


def _start(name: str, image: Image, target: Target) -> str:
    """Write the state in which the library was made."""
    size = f"i{target.pointer}"
    lines = [
        *_looked_at({"state": ALIGNMENT}),
        f"  %small = icmp ult {size} %bytes, {len(image.state)}",
        "  %unfit = or i1 %refused, %small",
        "  br i1 %unfit, label %buffer, label %fits",
        "buffer:",
        f"  ret i32 {1 + MESSAGES.index(BUFFER)}",
        "fits:",
        f"  call void @llvm.memcpy.p0.p0.i32(ptr %state, ptr @start, i32 {len(image.state)}, i1 false)",
        "  ret i32 0",
    ]
    return function(f"{name}_start", f"ptr %state, {size} %bytes", lines, kind="")


def _looked_at(alignments: Mapping[str, int]) -> list[str]:
    """``%refused``: whether any buffer is missing or misaligned."""
    lines, refused = list[str](), "false"
    for n, (region, alignment) in enumerate(alignments.items()):
        result = "%refused" if n == len(alignments) - 1 else f"%refused{n}"
        lines += [
            f"  %look{n} = ptrtoint ptr %{region} to i64",
            f"  %low{n} = and i64 %look{n}, {alignment - 1}",
            f"  %apart{n} = icmp ne i64 %low{n}, 0",
            f"  %missing{n} = icmp eq ptr %{region}, null",
            f"  %wrong{n} = or i1 %apart{n}, %missing{n}",
            f"  {result} = or i1 {refused}, %wrong{n}",
        ]
        refused = result
    return lines


def _told(name: str, messages: Sequence[str], about: str) -> list[str]:
    """The messages and what the library is, for C."""
    texts = [_data(f"message.{k}", message.encode() + b"\0", align=1) for k, message in enumerate(messages)]
    rows = ", ".join([*(f"ptr @message.{k}" for k in range(len(messages))), "ptr null"])
    table = f"@{name}_messages = constant [{len(messages) + 1} x ptr] [{rows}]"
    return [*texts, table, _data(f"{name}_about", about.encode() + b"\0", "", 1)]


def _data(name: str, data: bytes, kind: str = "internal ", align: int = ALIGNMENT) -> str:
    escaped = "".join(f"\\{byte:02X}" for byte in data)
    return f'@{name} = {kind}constant [{len(data)} x i8] c"{escaped}", align {align}'
