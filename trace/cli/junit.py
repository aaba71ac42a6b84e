"""Answers of comparisons as JUnit's XML, which servers of continuous integration show."""

from xml.etree.ElementTree import Element, SubElement, tostring

from ..comparing.result import Comparison
from ..v2.verdict import Verdict


def junit(found: Comparison) -> bytes:
    """A test for each rank, or one for two traces: drift passes and is told, what cannot be read is an error.

    >>> junit(Comparison("a.dgrr", "b.dgrr", Verdict.OK, "equal to the bit: 3 steps")).decode().splitlines()[1][:61]
    '<testsuite name="dgrr" tests="1" failures="0" errors="0"><tes'
    """
    answers = found.ranks or [found]
    if found.ranks and found.cause is not None and all(each.same for each in answers):  # replicas that differ
        answers = [found, *answers]
    failures = [each for each in answers if _fails(each)]
    counts = {"tests": len(answers), "failures": sum(each.compared for each in failures)}
    errors = len(failures) - counts["failures"]
    suite = Element("testsuite", {"name": "dgrr", **{k: str(n) for k, n in counts.items()}, "errors": str(errors)})
    for each in answers:
        case = SubElement(suite, "testcase", {"classname": "dgrr.compare", "name": each.b})
        if _fails(each):
            kind = "failure" if each.compared else "error"
            SubElement(case, kind, {"type": each.word, "message": each.sentence}).text = str(each)
        else:
            SubElement(case, "system-out").text = str(each)
    return b'<?xml version="1.0" encoding="utf-8"?>\n' + tostring(suite)


def _fails(found: Comparison) -> bool:
    return found.verdict not in (Verdict.OK, Verdict.DRIFT)
