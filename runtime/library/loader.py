"""What loads a library of WebAssembly in a page or in node: a module of JavaScript, and its types."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...tape.numerics.library.wasm import module_of_functions

SOURCE = Path(__file__).with_name("loader.js")

KINDS = {"float32": "Float32Array", "float64": "Float64Array", "int64": "BigInt64Array", "bool": "Uint8Array"}


def probe() -> bytes:
    """A module with two functions of b and c, ``single`` and ``double``: b * b + c by relaxed_madd.

    An engine without relaxed SIMD does not take it; for one that rounds twice see docs/deploying.md.
    """
    single = b"\x20\0\xfd\x13\x20\0\xfd\x13\x20\1\xfd\x13\xfd\x85\x02\xfd\x1f\0"
    double = b"\x20\0\xfd\x14\x20\0\xfd\x14\x20\1\xfd\x14\xfd\x87\x02\xfd\x21\0"
    return module_of_functions({"single": (0x7D, single), "double": (0x7C, double)})


def loader(facts: dict[str, Any]) -> str:
    """The module of JavaScript."""
    told, marks = json.dumps(facts, ensure_ascii=True), ", ".join(map(str, probe()))
    text = SOURCE.read_text().replace("// HEAD", f"// {head(facts)}").replace("[BYTES]", f"[{marks}]")
    return text.replace("FACTS;", f"{told};")


def head(facts: dict[str, Any]) -> str:
    """What it is."""
    return f"{facts['name']}: dgrr {facts['dgrr']}, numerics {facts['numerics']}, {facts['digest'][:16]}"


def types(facts: dict[str, Any]) -> str:
    """The types of `loader`, for TypeScript and for editors."""
    parts = {
        "inputs": _fields(facts["inputs"]),
        "outputs": _fields(facts["outputs"]),
        "state": _fields(facts["held"], "readonly "),
    }
    return _TYPES.format(head=head(facts), **parts)


def _fields(arrays: Sequence[dict[str, Any]], readonly: str = "") -> str:
    lines = [f"  {readonly}{json.dumps(a['name'])}: {KINDS[a['dtype']]}; // {a['shape']}\n" for a in arrays]
    return "".join(lines)


_TYPES = """// {head}

/** What a call is given: arrays in row-major order; elements of bool are 0 or 1. */
export interface Inputs {{
{inputs}}}

/** What a call gives: arrays of the caller's own. */
export interface Outputs {{
{outputs}}}

/** What outlives a call, in place: it may be read, saved, and filled otherwise. */
export interface State {{
{state}}}

/** A module: its bytes, or what fetch gives. */
export type Source = ArrayBuffer | ArrayBufferView | {{ arrayBuffer(): Promise<ArrayBuffer> }};

export interface Library {{
  /** Whether the module of wasm32-relaxed runs, by this engine's fused instructions. */
  readonly relaxed: boolean;
  readonly state: State;
  /** Set the state to what it was when the library was made. */
  start(): void;
  /** One call. Throws TypeError for an array that does not fit, LibraryError for what the library refuses. */
  run(inputs: Inputs): Outputs;
}}

/** A call that failed: the state is as it was. */
export class LibraryError extends Error {{
  readonly code: number;
  /** The place of what is wrong, in the order of the elements; null for codes 1 and 2. */
  readonly position: bigint | null;
}}

/** Sizes, places, names, numerics and digest, as in the JSON file. */
export const facts: {{
  readonly name: string;
  readonly digest: string;
  readonly numerics: number;
  readonly held: readonly {{ name: string; dtype: string; shape: number[]; bytes: number; at: number }}[];
  readonly [name: string]: unknown;
}};

/** Whether this engine's relaxed SIMD rounds a product with a sum once, as training does. */
export function fuses(): Promise<boolean>;

/** Load the module of target wasm32, or of wasm32-relaxed where it has the same bits. */
export function load(software: Source | Promise<Source>, relaxed?: Source | Promise<Source>): Promise<Library>;
"""
