"""What a program must know of a library: facts, and the header for C that says them."""

from collections.abc import Sequence
from typing import Any

from ..step.memory import ALIGNMENT
from .image import Image, PlacedArray
from .source import identifier

ABI = 1
"""Of how libraries are called; another number where a caller has to be changed."""

C_TYPES = {"float32": "float", "float64": "double", "int64": "int64_t", "bool": "uint8_t"}


def facts_of(name: str, image: Image, messages: Sequence[str], about: dict[str, Any]) -> dict[str, Any]:
    """All that is to be known, in plain types: sizes in bytes, places from the start of the state."""
    return {
        "name": name,
        **about,
        "abi": ABI,
        "digest": image.digest,
        "inputs": [_array(n) for n in image.inputs],
        "outputs": [_array(n) for n in image.outputs],
        "arena": image.arena,
        "state": len(image.state),
        "held": [{**_array(n), "at": n.at.offset} for n in image.held],
        "codes": list(messages),
    }


def _array(n: PlacedArray) -> dict[str, Any]:
    return {"name": n.name, "dtype": str(n.layout.dtype), "shape": list(n.layout.shape), "bytes": n.layout.nbytes}


def header(facts: dict[str, Any]) -> str:
    """The header of a library for C and C++."""
    name, state = facts["name"], facts["state"]
    big = name.upper()
    arrays = [_parameter(a, "const ") for a in facts["inputs"]] + [_parameter(a, "") for a in facts["outputs"]]
    given = ", ".join([*(["void *state"] if state else []), *arrays, "void *arena", "size_t bytes"])
    sizes = [f"#define {big}_ARENA {facts['arena']} /* bytes to work in, whose content means nothing */"]
    if state:
        sizes += [f"#define {big}_STATE {state} /* bytes that outlive a call, from {name}_start */"]
        sizes += [_place(big, a) for a in facts["held"]]
    start = [
        "",
        "/* Write the state in which the library was made. 0, or a code. */",
        f"int {name}_start(void *state, size_t bytes);",
    ]
    return _HEADER.format(
        name=name,
        big=big,
        about=f"{facts['target']}, dgrr {facts['dgrr']}, numerics {facts['numerics']}, {facts['digest'][:16]}",
        abi=facts["abi"],
        numerics=facts["numerics"],
        digest=facts["digest"],
        sizes="\n".join(sizes),
        start="\n".join(start if state else []),
        given=given,
        alignment=ALIGNMENT,
        codes="\n".join(f" * {code}: {_comment(text)}" for code, text in enumerate(facts["codes"], 1)),
    )


def _parameter(array: dict[str, Any], const: str) -> str:
    shape = "".join(f"[{n}]" for n in array["shape"]) or "[1]"
    return f"{const}{C_TYPES[array['dtype']]} *{array['name']} /* {shape} */"


def _place(big: str, array: dict[str, Any]) -> str:
    shape = "".join(f"[{n}]" for n in array["shape"])
    return f"#define {big}_AT_{identifier(array['name']).upper()} {array['at']} /* {array['dtype']}{shape} */"


def _comment(text: str) -> str:
    return text.replace("*/", "* /")


_HEADER = """/* {name}: {about} */
#ifndef {big}_H
#define {big}_H
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {{
#endif

#define {big}_ABI {abi}
#define {big}_NUMERICS {numerics}
#define {big}_DIGEST "{digest}"
{sizes}
{start}
/* 0, or a code, and then the state is as it was. State and arena begin at multiples of {alignment}, arrays at those of
 * their elements; none that is written may overlap another. Of codes above 2 the place of what is wrong stands in the
 * first 8 bytes of the arena, an int64_t. Any number of threads may run it at once, each with its state and arena.
{codes}
 */
int {name}_run({given});

extern const char *const {name}_messages[]; /* that of code n is [n - 1] */
extern const char {name}_about[];

#ifdef __cplusplus
}}
#endif
#endif
"""
