"""A graph as JSON: every key in its place, so that equal graphs are equal texts."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from ....tape.values.spec import Spec
from ..attributes import decoded, encoded
from ..errors import IRError, IRSyntaxError
from ..values import GraphContent, IRNode, Role, Value, dtype_named

G = TypeVar("G", bound=GraphContent)

SCHEMA = "dgrr-ir@1"
"""The form of the JSON; another number is another form."""

GRAPH: Mapping[str, type] = {
    "name": str, "nodes": list, "outputs": dict, "schema": str, "updates": list, "values": list
}  # fmt: skip
VALUE: Mapping[str, type] = {"content": str, "dtype": str, "id": int, "name": str, "role": str, "shape": list}
NODE: Mapping[str, type] = {"attrs": list, "id": int, "inputs": list, "op": str, "outputs": list}
"""Keys and types of each object."""


def write(graph: GraphContent) -> str:
    """The canonical JSON: ASCII, without blanks, keys sorted, values and updates by id.

    Attributes are lists of a name and a value, in the order of the op's signature; floats are texts. Raises
    IRError for an attribute that no graph can hold.
    """
    data = {
        "schema": SCHEMA,
        "name": graph.name,
        "values": [_value(value) for _, value in sorted(graph.values.items())],
        "nodes": [_node(node) for node in graph.nodes],
        "outputs": dict(graph.outputs),
        "updates": sorted(graph.updates.items()),
    }
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _value(value: Value) -> dict[str, Any]:
    return {
        "id": value.id,
        "shape": value.shape,
        "dtype": str(value.dtype),
        "role": value.role,
        "name": value.name,
        "content": value.content,
    }


def _node(node: IRNode) -> dict[str, Any]:
    attrs = [[name, _attribute(node, name, value)] for name, value in node.attrs.items()]
    return {"id": node.id, "op": node.op, "inputs": node.inputs, "outputs": node.outputs, "attrs": attrs}


def _attribute(node: IRNode, name: str, value: Any) -> Any:
    try:
        return encoded(value)
    except IRError as error:
        raise IRError(f"IRGraph.to_json: node {node.id} ({node.op}): attribute {name!r}: {error}") from None


def read(make: type[G], text: str) -> G:
    """The graph of a JSON text. Raises IRSyntaxError, which names the place, what was expected and what was given."""
    try:
        data = json.loads(text, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        raise _error(f"line {error.lineno}", f"JSON ({error.msg})", text[error.pos : error.pos + 20]) from None
    graph = _object("the graph", GRAPH, data)
    if graph["schema"] != SCHEMA:
        raise _error("schema", repr(SCHEMA), graph["schema"])
    values = [_read_value(f"values[{i}]", item) for i, item in enumerate(graph["values"])]
    return make(
        graph["name"],
        _table("values", [(value.id, value) for value in values]),
        tuple([_read_node(f"nodes[{i}]", item) for i, item in enumerate(graph["nodes"])]),
        {name: _id(f"outputs[{name!r}]", id) for name, id in graph["outputs"].items()},
        _table("updates", [_pair(f"updates[{i}]", item) for i, item in enumerate(graph["updates"])]),
    )


def _error(where: str, expected: str, given: object) -> IRSyntaxError:
    return IRSyntaxError.at(f"IRGraph.from_json: {where}", expected, given)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return _table("an object", pairs)


def _table(where: str, pairs: Sequence[tuple[Any, Any]]) -> dict[Any, Any]:
    """A dict of pairs whose keys all differ."""
    table: dict[Any, Any] = {}
    for key, item in pairs:
        if key in table:
            raise _error(where, "each key once", key)
        table[key] = item
    return table


def _object(where: str, types: Mapping[str, type], data: Any) -> dict[str, Any]:
    """An object with exactly the keys of ``types``, and items of these types."""
    if data.__class__ is not dict or set(data) != set(types):
        raise _error(where, f"an object of {', '.join(types)}", data)
    for key, kind in types.items():
        if type(data[key]) is not kind:
            raise _error(f"{where}.{key}", f"a JSON {kind.__name__}", data[key])
    return dict[str, Any](data)


def _id(where: str, data: Any) -> int:
    if type(data) is not int:
        raise _error(where, "a whole number", data)
    return data


def _ids(where: str, data: list[Any]) -> tuple[int, ...]:
    return tuple([_id(f"{where}[{i}]", item) for i, item in enumerate(data)])


def _pair(where: str, data: Any) -> tuple[int, int]:
    match data:
        case [first, second]:
            return _id(f"{where}[0]", first), _id(f"{where}[1]", second)
        case _:
            raise _error(where, "a pair of ids", data)


def _read_value(where: str, data: Any) -> Value:
    value = _object(where, VALUE, data)
    dtype = dtype_named(value["dtype"])
    if dtype is None:
        raise _error(f"{where}.dtype", "an element type such as 'float32'", value["dtype"])
    if value["role"] not in [*Role]:
        raise _error(f"{where}.role", f"one of {', '.join(Role)}", value["role"])
    shape = _ids(f"{where}.shape", value["shape"])
    return Value(value["id"], Spec(shape, dtype), Role(value["role"]), value["name"], value["content"])


def _read_node(where: str, data: Any) -> IRNode:
    node = _object(where, NODE, data)
    inputs = tuple([None if id is None else _id(f"{where}.inputs[{i}]", id) for i, id in enumerate(node["inputs"])])
    attrs = _table(f"{where}.attrs", [_read_attribute(f"{where}.attrs[{i}]", a) for i, a in enumerate(node["attrs"])])
    return IRNode(node["id"], node["op"], inputs, _ids(f"{where}.outputs", node["outputs"]), attrs)


def _read_attribute(where: str, data: Any) -> tuple[str, Any]:
    match data:
        case [str(name), item]:
            pass
        case _:
            raise _error(where, "a name and an attribute", data)
    try:
        return name, decoded(item)
    except ValueError:
        raise _error(f"{where} ({name})", "an attribute", item) from None
