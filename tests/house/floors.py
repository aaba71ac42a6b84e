"""The floors of the house, given once: what stands in each folder of rooms, lowest first.

A folder or module imports only what stands below it, never a neighbour on its floor and nothing above. The tests of
this folder hold the imports, and the drawing in docs/architecture.md, to it.
"""

from textwrap import TextWrapper

FLOORS: dict[str, list[list[str]]] = {
    ".": [["base"], ["screen"], ["tape"], ["runtime"], ["trace"]],
    "base": [
        ["arrays", "computing", "crc32", "errors", "interruption", "kernel_cache", "packages", "system"],
        ["atomic_file", "completed_step", "diagnosis", "keep", "run", "ulp"],
    ],
    "screen": [
        ["showing"],
        ["curves", "panels"],
        ["plotting"],
    ],
    "tape": [
        ["errors", "location"],
        ["numerics"],
        ["values"],
        ["var"],
        ["record"],
        ["graph", "ops"],
        ["inspect"],
        ["tape"],
        ["nn", "transforms"],
    ],
    "tape/nn": [
        ["context", "kinds", "parameters", "scope"],
        ["on_arrays"],
        ["layer"],
        ["checks", "initializers", "op_layer", "state_dict"],
        ["layers"],
        ["torch_weights"],
    ],
    "tape/nn/layers": [
        ["activation", "containers", "dropout", "embedding", "linear", "norm", "spatial", "tied"],
        ["batch_norm", "gated", "sequences"],
    ],
    "tape/numerics": [
        ["coefficients", "interrupts", "literals", "sizes"],
        ["engine", "exact_fma"],
        ["simd"],
        ["basic", "math", "prepared"],
        ["crc32", "xxh3"],
        ["cuda"],
    ],
    "tape/numerics/engine": [
        ["code_for", "sources", "compile_notice"],
        ["numba_internals"],
        ["disk_cache", "emit"],
        ["atomics", "intrinsics", "objects"],
        ["kernel", "machine"],
        ["threads"],
        ["launch", "side_by_side"],
        ["chain"],
    ],
    "tape/numerics/math": [
        ["elementary", "exact", "philox", "trigonometry"],
        ["inverse", "random"],
        ["reference", "rounding"],
    ],
    "tape/ops": [
        ["elementwise", "indices", "planar"],
        ["shape"],
        ["random", "reduce", "sorting"],
        ["conv", "linear", "losses", "norm", "pooling"],
        ["attention", "sampling"],
        ["cuda_forms"],
    ],
    "tape/ops/conv": [
        ["kernels", "sizes"],
        ["cuda", "lowering", "reference"],
        ["conv"],
    ],
    "tape/ops/elementwise": [
        ["kernels", "reference"],
        ["arithmetic", "integer", "select"],
        ["clamp", "exponential"],
        ["functions", "rounding"],
        ["activation", "inverse", "pow"],
    ],
    "tape/ops/indices": [
        ["kernels", "reference"],
        ["take"],
        ["along", "take_or_zero"],
    ],
    "tape/ops/linear": [
        ["kernels", "reference", "triangles"],
        ["cuda", "lowering"],
        ["matmul"],
        ["einsum", "triangular"],
        ["orthogonal", "systems"],
    ],
    "tape/ops/reduce": [
        ["cuda", "kernels", "reduce", "reference"],
        ["rows", "softmax"],
        ["extremes", "moments", "products"],
        ["norms", "running"],
    ],
    "tape/ops/losses": [
        ["kernels", "labels", "mean", "reduction", "reference"],
        ["loss", "nll_rows"],
        ["binary", "likelihoods", "margins", "nll", "regression"],
        ["cross_entropy", "ctc", "distances"],
    ],
    "tape/ops/norm": [
        ["kernels", "reference"],
        ["cuda", "form"],
        ["normalize"],
        ["inference", "norm"],
        ["groups"],
    ],
    "tape/ops/pooling": [
        ["kernels", "reference"],
        ["rules"],
        ["samples"],
        ["pool_op"],
        ["avg_pool", "interpolate", "max_pool", "smooth_max_pool", "unpool", "upsample"],
        ["lp_pool"],
    ],
    "tape/record": [
        ["kinds", "lowering", "samples", "types"],
        ["signature"],
        ["arguments", "derivative", "description", "refusals"],
        ["arguments_said", "composed", "op"],
        ["described", "pointwise_op"],
    ],
    "runtime": [
        ["data", "optim"],
        ["step"],
        ["ir"],
        ["lower"],
        ["cuda"],
        ["captured"],
        ["generating", "onnx", "ranks"],
        ["training"],
    ],
    "runtime/optim": [
        ["arrays", "kinds"],
        ["laws", "lbfgs"],
        ["kernels"],
        ["clip", "state_ops"],
        ["rates"],
        ["rules"],
        ["admission", "averages", "methods", "patterns"],
        ["groups"],
    ],
    "runtime/step": [
        ["batch", "loss_result", "memory", "state_digest", "tree"],
        ["accumulate", "loss_call", "recipe"],
        ["ensemble", "evaluate", "training_step"],
        ["completed", "eager", "forward"],
    ],
    "runtime/onnx": [
        ["package", "same"],
        ["export", "load"],
    ],
    "runtime/training": [
        ["batch_stream", "callback_list", "figures", "interrupt", "progress", "recorder_protocol", "step_runner"],
        ["evaluating", "history", "saving", "trace_session"],
        ["result", "watch"],
        ["pace", "trained_arrays"],
        ["trainer"],
        ["callbacks"],
    ],
    "runtime/captured": [
        ["buffers", "captured_update", "held", "kept", "profile", "reads"],
        ["purity"],
        ["plans"],
        ["captured_forward", "replayed_step"],
        ["verification"],
        ["captured_function", "captured_step"],
    ],
    "runtime/ranks": [
        ["exchange", "fold", "packets", "shards"],
        ["gathered", "mpi", "texts"],
        ["agreement", "rows", "share"],
        ["ranked_step", "same_run"],
    ],
    "runtime/captured/verification": [
        ["extents", "report"],
        ["bits"],
        ["subject"],
        ["checks"],
        ["verify"],
    ],
    "runtime/ir": [
        ["errors", "values"],
        ["attributes"],
        ["formats"],
        ["graph"],
        ["builder", "difference", "passes", "step_tape", "verify"],
        ["record"],
        ["forward"],
    ],
    "runtime/lower": [
        ["arena", "array_layout"],
        ["program"],
        ["lower", "passes", "plan"],
        ["bind", "compile"],
    ],
    "trace": [
        ["exit_codes"],
        ["file_version", "json_value", "progress"],
        ["v1", "v2"],
        ["diagnosed", "replaying"],
        ["comparing", "exporting", "watching"],
        ["auditing", "frameworks", "golden", "report", "showing"],
        ["cli"],
    ],
    "trace/cli": [
        ["answer", "arguments", "misread", "reference_step", "warm"],
        ["demo", "inspection", "loading", "v1"],
        ["v2"],
        ["formats"],
        ["commands"],
        ["main"],
    ],
    "trace/cli/commands": [["looking", "making", "proving"]],
    "trace/comparing": [
        ["losses", "ops", "policy", "settings"],
        ["tensors"],
        ["result", "steps"],
        ["causes", "search"],
        ["words"],
        ["compare"],
        ["computed"],
        ["bisect_model", "with_model"],
    ],
    "trace/golden": [
        ["marker", "claims", "errors", "names", "settings", "sidecar"],
        ["failure", "keeping", "places", "recording", "results"],
        ["commands", "runs"],
        ["traces"],
        ["plugin"],
    ],
    "trace/report": [
        ["chosen", "codes", "figures", "groups", "packing", "page", "walk"],
        ["graph", "tensors"],
        ["run"],
        ["differences"],
        ["charts"],
        ["write"],
    ],
    "trace/v1": [
        ["compiled", "layout", "report"],
        ["file_crc", "reader"],
        ["compare", "validation", "writer"],
        ["inspect", "train"],
    ],
    "trace/v2": [
        ["verdict"],
        ["errors"],
        ["format"],
        ["read"],
        ["check"],
        ["write"],
        ["repair"],
    ],
    "trace/v2/format": [
        ["constants", "limits"],
        ["digest", "frame", "schema"],
        ["header", "json_marks"],
        ["layout", "nodes", "schema_json"],
        ["fields"],
        ["frame_type"],
        ["step"],
        ["of_step"],
        ["frames"],
    ],
    "trace/v2/write": [
        ["environment", "file", "kept_values", "keyframe_schedule", "ops_schedule", "tensors"],
        ["repeated", "scalar_names", "writer"],
        ["prepared", "resume"],
        ["fronts"],
        ["recorder"],
        ["open_recorder"],
    ],
}
"""Folder -> the floors inside it, each with its folders and modules."""


def drawn() -> str:
    """The floors as docs/architecture.md shows them."""
    width = max(map(len, FLOORS)) + 2
    lines = []
    for folder, floors in FLOORS.items():
        wrap = TextWrapper(118, f"    {folder:<{width}}", " " * (width + 4), break_on_hyphens=False)
        lines.append(wrap.fill(" < ".join(", ".join(floor) for floor in floors)))
    return "\n".join(lines) + "\n"
