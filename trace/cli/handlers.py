"""What every command runs, and which version of the format answers.

The modules that do the work are imported in the handlers, because they load numba and machine code: so
`dgrr --help` and a usage error come at once.
"""

import argparse
import os
import time

from ..comparing.policy import Policy
from ..exit_codes import Exit
from ..file_version import TraceFileError, version_of
from ..replaying.expected import Expected
from ..v2.errors import InvalidTraceError
from ..v2.verdict import Verdict
from .answer import Answer


def demo(args: argparse.Namespace) -> Answer:
    """``dgrr demo``."""
    from . import demo as command

    return command.run(args)


def train(args: argparse.Namespace) -> Answer:
    """``dgrr train``."""
    from . import v1

    created_at = int(time.time()) if args.created_at is None else args.created_at
    return v1.train(args.steps, args.lr, args.seed, args.out, created_at)


def validate(args: argparse.Namespace) -> Answer:
    """``dgrr validate``."""
    path: str = args.paths[0]
    if _known_version(path) == 2:
        from . import v2

        return v2.validate(path, args.expect_root, _expected(args))
    _require_nothing_expected(args)
    from . import v1

    return v1.validate(path)


def replay(args: argparse.Namespace) -> Answer:
    """``dgrr replay``."""
    path: str = args.paths[0]
    if _known_version(path) == 2:
        from . import v2

        options = {"model": args.model, "rules": args.rule, "seed": args.seed, "numerics": args.numerics}
        options |= {"expect_root": args.expect_root, "expected": _expected(args), "mode": args.mode or "replay"}
        return v2.replay(path, step=args.step, ulp_tol=args.ulp_tol, **options)
    _require_nothing_expected(args)
    _require_step(args)
    for option in ("model", "mode", "rule", "numerics"):
        if getattr(args, option) not in (None, []):
            args.parser.error(f"argument --{option}: {path} is of version 1, whose {option} is fixed")
    from . import v1

    return v1.replay(path, args.step, args.ulp_tol, args.seed)


def _expected(args: argparse.Namespace) -> Expected:
    """What a run is known to have but its seed and numerics version."""
    return Expected(steps=args.steps, start=args.expect_start, rules=tuple(args.expect_rule))


def _require_nothing_expected(args: argparse.Namespace) -> None:
    if args.expect_root is not None:
        args.parser.error(f"argument --expect-root: {args.paths[0]} is of version 1, which has no root")
    for option in ("steps", "expect_start", "expect_rule"):
        if getattr(args, option) not in (None, []):
            named = f"--{option.replace('_', '-')}"
            args.parser.error(f"argument {named}: it is not for {args.paths[0]}, which is of version 1")


def inspect(args: argparse.Namespace) -> Answer:
    """``dgrr inspect``."""
    path: str = args.paths[0]
    if _known_version(path) == 2:
        from . import v2

        return v2.inspect(path, args.step)
    _require_step(args)
    from . import v1

    return v1.inspect(path, args.step)


def show(args: argparse.Namespace) -> Answer:
    """``dgrr show``."""
    path: str = args.paths[0]
    partial = f"{path}.partial"
    if _known_version(partial if os.path.exists(partial) and not os.path.exists(path) else path) == 1:
        args.parser.error(f"argument PATH: {path} is of version 1, whose steps dgrr inspect shows")
    from . import show as command

    return command.show(path, following=args.follow)


def ls(args: argparse.Namespace) -> Answer:
    """``dgrr ls``."""
    from . import show as command

    return command.ls(args.folder, recursive=args.recursive)


def rollback(args: argparse.Namespace) -> Answer:
    """``dgrr rollback``."""
    path: str = args.paths[0]
    if _known_version(path) == 2:
        from . import v2

        return v2.rollback(path, args.step, args.out)
    from . import v1

    return v1.rollback(path, args.step, args.out)


def recover(args: argparse.Namespace) -> Answer:
    """``dgrr recover``."""
    from . import v2

    return v2.recover(args.paths, args.out)


def compare(args: argparse.Namespace) -> Answer:
    """``dgrr compare``."""
    if args.policy is not None and args.ulp_tol:
        args.parser.error("argument --policy: it says what --ulp-tol says; give one of them")
    policy: str = args.policy or (f"ulp={args.ulp_tol}" if args.ulp_tol else "bitwise")
    if args.model is not None:
        return _compare_model(args, policy)
    _require_model(args)
    return _compare_traces(args, policy)


def bisect(args: argparse.Namespace) -> Answer:
    """``dgrr bisect``."""
    if args.model is None:
        _require_model(args)
        return _compare_traces(args, "bitwise")
    _require_model_version(args)
    from . import v2

    return v2.bisect_model(args.paths[0], args.model, args.rule, args.mode, proven=args.proven)


def _require_model(args: argparse.Namespace) -> None:
    """Refuse what says of a model how it is run, without one."""
    for option in ("rule", "mode"):
        if getattr(args, option):
            args.parser.error(f"argument --{option}: it goes with --model")


def _compare_traces(args: argparse.Namespace, policy: str) -> Answer:
    a, b = args.paths
    versions = _known_version(a), _known_version(b)
    if versions[0] != versions[1]:
        text = f"{a} is of version {versions[0]} and {b} of version {versions[1]}: they cannot be compared"
        raise TraceFileError(text, Exit.VALIDATION)
    if versions[0] == 2:
        from . import v2

        return v2.compare(a, b, policy, proven=args.proven)
    tolerance = Policy.parse(policy).of("")
    if not tolerance.bitwise and tolerance.ulp is None:
        args.parser.error(f"argument --policy: {a} is of version 1: expected bitwise or ulp=N, got {policy!r}")
    from . import v1

    return v1.compare(a, b, tolerance.ulp or 0)


def _compare_model(args: argparse.Namespace, policy: str) -> Answer:
    _require_model_version(args)
    from . import v2

    return v2.compare_model(args.paths[0], policy, args.model, args.rule, args.mode, proven=args.proven)


def _require_model_version(args: argparse.Namespace) -> None:
    path: str = args.paths[0]
    if _known_version(path) == 1:
        args.parser.error(f"argument --model: {path} is of version 1, whose model is fixed")


def at(args: argparse.Namespace) -> Answer:
    """``dgrr at``."""
    path: str = args.paths[0]
    if _known_version(path) == 1:
        args.parser.error(f"argument PATH: {path} is of version 1, whose steps dgrr inspect shows")
    from . import travel

    return travel.run(path, args)


def fork(args: argparse.Namespace) -> Answer:
    """``dgrr fork``."""
    path: str = args.paths[0]
    if _known_version(path) == 1:
        args.parser.error(f"argument PATH: {path} is of version 1, whose model is fixed")
    from . import fork as command

    return command.run(path, args)


def export(args: argparse.Namespace) -> Answer:
    """``dgrr export``."""
    path: str = args.paths[0]
    if _known_version(path) == 1:
        args.parser.error(f"argument PATH: {path} is of version 1, whose steps dgrr inspect shows")
    weights = args.format == "safetensors"
    for option in ("form",) if weights else ("step", "model", "mode", "rule"):
        if getattr(args, option) not in (None, []):
            wrong = "it is not for" if weights else "it goes with"
            args.parser.error(f"argument --{option}: {wrong} --format safetensors")
    if weights:
        from . import weights as command_of_weights

        return command_of_weights.run(path, args)
    from . import export as command

    return command.run(path, args)


def audit(args: argparse.Namespace) -> Answer:
    """``dgrr audit``."""
    path: str = args.paths[0]
    if _known_version(path) == 1:
        args.parser.error(f"argument PATH: {path} is of version 1, all of which dgrr validate computes again")
    if args.check is not None:
        for option in ("rule", "mode", "sample", "nonce", "out", "resume", "seed", "numerics"):
            if getattr(args, option) is not args.parser.get_default(option):
                args.parser.error(f"argument --{option}: not allowed with argument --check")
    if args.resume and args.out is None:
        args.parser.error("argument --resume: it goes on with the certificate of --out")
    from . import auditing

    return auditing.run(path, args)


def report(args: argparse.Namespace) -> Answer:
    """``dgrr report``."""
    from . import report as command

    return command.run(args)


def test(args: argparse.Namespace) -> Answer:
    """``dgrr test``."""
    from . import golden

    return golden.run(args.action, args.path, args.model, args.policy)


def verify_step(args: argparse.Namespace) -> Answer:
    """``dgrr verify-step``."""
    from . import verify_step as command

    return command.run(args.function, args.replays)


def cache(args: argparse.Namespace) -> Answer:
    """``dgrr cache``."""
    if args.action == "warm":
        from . import warm

        return warm.run(args.model)
    if args.model is not None:
        args.parser.error(f"argument --model: it goes with warm, not with {args.action}")
    from . import cache as command

    return command.run(args.action)


def _known_version(path: str) -> int:
    version = version_of(path)
    if version not in (1, 2):
        raise InvalidTraceError(Verdict.UNSUPPORTED, f"{path}: unsupported version {version}, expected 1 or 2")
    return version


def _require_step(args: argparse.Namespace) -> None:
    if args.step is None:
        args.parser.error(f"argument --step is required: {args.paths[0]} is of version 1")
