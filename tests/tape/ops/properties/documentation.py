"""What a docstring must have: a sentence, where the formula is from, shapes, dtypes, errors, an example."""

import doctest
from typing import Any

from dgrr.tape.record.description import FACTS, described
from dgrr.tape.record.op import Op

from .cases import Record


def lacking(doc: str) -> list[str]:
    """What a docstring does not have."""
    parts, examples = described(doc), doctest.DocTestParser().get_examples(doc)
    missing = [] if parts.text.split("\n\n")[0].endswith((".", "::")) else ["a first sentence"]
    missing += [f"{name}:" for name in FACTS if not "".join(parts.facts.get(name, ()))]
    return missing if any(example.want for example in examples) else [*missing, "an example with a result"]


def misplaced(op: Record) -> list[str]:
    """Facts that annotations leave open and nobody wrote, and facts that were written although annotations say them."""
    cases = [t for types, _ in op.signature.cases for t in types.values()]
    left_open = {"Shapes": not all(t.pattern.exact for t in cases), "Dtypes": any(t.dtype is Any for t in cases)}
    written = described(op.doc).facts
    return [name for name, wanted in left_open.items() if wanted != (name in written)]


def check_docstring(op: Record) -> None:
    """A public record has a whole docstring, and derives of it what it can; a private one has a sentence."""
    if isinstance(op, Op) and op.private:
        assert op.description.text.endswith("."), f"{op.name}: the docstring must be a sentence, got {op.doc!r}"
        return
    missing = lacking(str(op.description))
    assert not missing, f"{op.name}: the docstring lacks {', '.join(missing)}"
    assert not misplaced(op), f"{op.name}: write these facts only where annotations do not say them: {misplaced(op)}"
    unclear = [entry for entry in op.description.facts["Raises"] if "an argument does not fit" in entry]
    assert not unclear, f"{op.name}: the texts of errors must name the argument: {unclear}"
