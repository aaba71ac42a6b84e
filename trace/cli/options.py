"""The arguments of each command, and the files that it is about."""

import argparse

from .arguments import integer, learning_rate, nonce_bytes, path, policy, setting, sha256, state_root

_TRACE = "trace.dgrr"
_DEMO = "demo.dgrr"
_DEFAULT = "default: %(default)s"
_POLICY = "how close values must be: bitwise, ulp=N, or rtol=X,atol=Y; default: bitwise"
_RULE = "the class of an optimizer rule that is not built in; may be given several times"
# The format's limits; the trace modules that own them load numba.
_UINT32 = 2**32 - 1
_UINT64 = 2**64 - 1
_INT64 = 2**63 - 1
_MAX_SAMPLE = 10_000
_MAX_JOBS = 1024
_MAX_STEPS = (_INT64 - 64) // 72


def no_paths(args: argparse.Namespace) -> list[str]:
    """The command is about no trace."""
    return []


def one_path(args: argparse.Namespace) -> list[str]:
    """The trace, by its place or by the option of version 1."""
    if args.path is not None and args.trace is not None:
        args.parser.error(f"argument --trace: the trace is named already, {args.path!r}")
    return [args.path or args.trace or _TRACE]


def folder_of(args: argparse.Namespace) -> list[str]:
    """The folder by its place."""
    return [args.folder]


def two_paths(args: argparse.Namespace) -> list[str]:
    """Both traces, by their places or by the options of version 1; one where the other is computed."""
    given = {"--a": args.a, "--b": args.b}
    if not args.paths and any(given.values()):
        missing = [option for option, value in given.items() if value is None]
        if missing:
            args.parser.error(f"the following arguments are required: {', '.join(missing)}")
        return [args.a, args.b]
    expected = "two traces, PATH_A and PATH_B" if args.model is None else "one trace beside --model"
    if any(given.values()) or len(args.paths) != (2 if args.model is None else 1):
        count = len(args.paths) + sum(value is not None for value in given.values())
        args.parser.error(f"expected {expected}, got {count}")
    return list(args.paths)


def path_of(args: argparse.Namespace) -> list[str]:
    """The trace by its place."""
    return [args.path]


def all_paths(args: argparse.Namespace) -> list[str]:
    """The traces by their places."""
    return list(args.paths)


def out_of(args: argparse.Namespace) -> list[str]:
    """The file that is written."""
    return [args.out]


def demo_path(args: argparse.Namespace) -> list[str]:
    """The trace that is written, and whether it is ours."""
    args.own = args.out is None
    args.out = args.out or _DEMO
    return [args.out]


def _add_trace(parser: argparse.ArgumentParser, *, step: str, required: bool = False) -> None:
    parser.add_argument("path", type=path, nargs="?", metavar="PATH", help=f"the trace; default: {_TRACE}")
    parser.add_argument("--step", type=integer(0, _UINT64), required=required, metavar="S", help=step)
    parser.add_argument("--trace", type=path, metavar="PATH", help="the same as PATH")


def _add_ulp_tol(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--ulp-tol",
        type=integer(0, _UINT64),
        default=0,
        metavar="N",
        help="allowed distance in units in the last place; default: %(default)s, to the bit",
    )


def _add_expected(parser: argparse.ArgumentParser) -> None:
    root = "the last digest that the trace is known to have, published or signed: 64 hexadecimal digits of SHA-256"
    parser.add_argument("--expect-root", type=sha256, metavar="HEX", help=root)
    parser.add_argument("--steps", type=integer(0, _UINT64), metavar="N", help="how many the run is known to have")
    start = "the state root that the run is known to begin with: 32 or 64 hexadecimal digits"
    parser.add_argument("--expect-start", type=state_root, metavar="HEX", help=start)
    rule = "a rule of the run, such as adam@1; once for each group of parameters, in their order"
    parser.add_argument("--expect-rule", metavar="RULE", action="append", default=[], help=rule)


def add_demo(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``demo``."""
    count = integer(1, _MAX_STEPS)
    parser.add_argument("--out", type=path, metavar="PATH", help=f"default: {_DEMO}, which every run makes anew")
    parser.add_argument("--overwrite", action="store_true", help="replace a trace that is there already")
    parser.add_argument("--epochs", type=count, default=20, metavar="N", help=_DEFAULT)
    parser.add_argument("--seed", type=integer(0, _UINT64), default=0, metavar="UINT64", help=_DEFAULT)
    parser.add_argument("--batch", type=count, default=64, metavar="N", help=f"samples in a batch; {_DEFAULT}")
    parser.add_argument("--optimizer", choices=("adam", "sgd"), default="adam", help=_DEFAULT)
    record = f"what the trace holds of each step: digests alone, or gradients too; {_DEFAULT}"
    parser.add_argument("--record", choices=("digest", "grads"), default="grads", help=record)


def add_train(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``train``."""
    parser.add_argument("--steps", type=integer(0, _MAX_STEPS), default=100, metavar="N", help=_DEFAULT)
    parser.add_argument("--lr", type=learning_rate, default=0.01, metavar="FLOAT", help=f"step size; {_DEFAULT}")
    parser.add_argument("--seed", type=integer(0, _UINT64), default=42, metavar="UINT64", help=_DEFAULT)
    parser.add_argument("--out", type=path, default=_TRACE, metavar="PATH", help=_DEFAULT)
    parser.add_argument(
        "--created-at",
        type=integer(-_INT64 - 1, _INT64),
        metavar="UNIX",
        help="time of creation to record, in seconds since 1970; default: now",
    )


def _add_mode(parser: argparse.ArgumentParser) -> None:
    mode = "how steps are done again: captured, where they are many (replay, default), or all of them op by op"
    parser.add_argument("--mode", choices=("replay", "eager"), help=mode)


def add_validate(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``validate``."""
    parser.add_argument("path", type=path, metavar="PATH", help="the trace")
    _add_expected(parser)


def add_replay(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``replay``."""
    _add_trace(parser, step="a step to show too, from 0; traces of version 1 need it")
    _add_ulp_tol(parser)
    model = "execute the gradients again, too: what returns (loss_fn, batches) when it is called"
    parser.add_argument("--model", metavar="MODULE:FUNCTION", help=model)
    _add_mode(parser)
    parser.add_argument("--rule", metavar="MODULE:NAME", action="append", default=[], help=_RULE)
    seed = "the seed that the run is known to have; default: the one that the trace names"
    parser.add_argument("--seed", type=integer(0, _UINT64), metavar="UINT64", help=seed)
    numerics = "the numerics version that the run is known to have; default: the one that the trace names"
    parser.add_argument("--numerics", type=integer(0, _UINT32), metavar="N", help=numerics)
    _add_expected(parser)


def add_inspect(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``inspect``."""
    _add_trace(parser, step="a step to show, from 0; without one the trace as a whole is shown (version 2)")


def add_show(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``show``."""
    parser.add_argument("path", type=path, metavar="PATH", help="the trace, finished or not")
    follow = "show what comes of a run while it is recorded, until it ends"
    parser.add_argument("-f", "--follow", action="store_true", help=follow)


def add_ls(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``ls``."""
    parser.add_argument("folder", type=path, nargs="?", default=".", metavar="FOLDER", help=_DEFAULT)
    parser.add_argument("-r", "--recursive", action="store_true", help="of the folders below it, too")


def add_rollback(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``rollback``."""
    _add_trace(parser, step="the step to go back before, from 0", required=True)
    out = "write the steps before S to this new trace; without it nothing is written"
    parser.add_argument("--out", type=path, metavar="PATH", help=out)


def add_recover(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``recover``."""
    sources = "the trace, or the halves of one: other copies, and tails PATH.torn; they are only read"
    parser.add_argument("paths", type=path, nargs="+", metavar="PATH", help=sources)
    out = "write what is whole to this new trace; steps behind damage to NEW.1, NEW.2 and so on"
    parser.add_argument("-o", "--out", type=path, required=True, metavar="NEW", help=out)


def add_compare(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``compare``."""
    traces = "the two traces, the reference first; one of them where --model is given"
    parser.add_argument("paths", type=path, nargs="*", metavar="PATH", help=traces)
    parser.add_argument("--a", type=path, metavar="PATH_A", help="the first of them")
    parser.add_argument("--b", type=path, metavar="PATH_B", help="the second")
    parser.add_argument("--policy", type=policy, metavar="POLICY", help=_POLICY)
    _add_ulp_tol(parser)
    proven = "validate both files first, and compare every op that is recorded"
    parser.add_argument("--proven", action="store_true", help=proven)
    model = "compute the second run now: what returns (loss_fn, batches) when it is called"
    parser.add_argument("--model", metavar="MODULE:FUNCTION", help=model)
    parser.add_argument("--rule", metavar="MODULE:NAME", action="append", default=[], help=_RULE)
    _add_mode(parser)


def add_at(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``at``."""
    parser.add_argument("path", type=path, metavar="PATH", help="the trace")
    step = "the step to go back to, from 0"
    parser.add_argument("--step", type=integer(0, _UINT64), required=True, metavar="K", help=step)
    model = "what returns (loss_fn, batches) when it is called"
    parser.add_argument("--model", metavar="MODULE:FUNCTION", required=True, help=model)
    parser.add_argument("--rule", metavar="MODULE:NAME", action="append", default=[], help=_RULE)
    _add_mode(parser)
    views = parser.add_mutually_exclusive_group()
    views.add_argument("--table", action="store_true", help="show every node, its value and its gradient; the default")
    explain = "show the way from one node, by its name or number, to the loss"
    views.add_argument("--explain", metavar="NAME", help=explain)
    views.add_argument("--dot", action="store_true", help="show the graph in the DOT language")
    which = f"which of the micro-batches of the step, from 0; {_DEFAULT}"
    parser.add_argument("--micro-batch", type=integer(0, _UINT32), default=0, metavar="I", help=which)
    save = "write the weights before step K, and the model's state, to this new safetensors file"
    parser.add_argument("--save", type=path, metavar="PATH", help=save)


def add_fork(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``fork``."""
    parser.add_argument("path", type=path, metavar="PATH", help="the trace, which is only read")
    step = "the step to begin before, from 0"
    parser.add_argument("--step", type=integer(0, _UINT64), required=True, metavar="K", help=step)
    model = "what returns (loss_fn, batches) of the run, from its beginning, when it is called"
    parser.add_argument("--model", metavar="MODULE:FUNCTION", required=True, help=model)
    parser.add_argument("--steps", type=integer(1, _MAX_STEPS), required=True, metavar="N", help="how many to train")
    out = "record them in this new trace; its steps count from 0"
    parser.add_argument("-o", "--out", type=path, required=True, metavar="NEW", help=out)
    changed = parser.add_mutually_exclusive_group()
    hyper = "another value of a hyperparameter of the run's own rule, such as lr=0.01, and lr#1 of its second group"
    changed.add_argument("--set", type=setting, metavar="NAME=VALUE", action="append", default=[], help=hyper)
    optimizer = "what returns another optimizer when it is called"
    changed.add_argument("--optimizer", metavar="MODULE:FUNCTION", help=optimizer)
    parser.add_argument("--rule", metavar="MODULE:NAME", action="append", default=[], help=_RULE)
    _add_mode(parser)
    record = f"what the new trace holds of each step: digests alone, or gradients too; {_DEFAULT}"
    parser.add_argument("--record", choices=("digest", "grads"), default="grads", help=record)


def add_export(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``export``."""
    parser.add_argument("path", type=path, metavar="PATH", help="the trace")
    formats = ("csv", "json", "parquet", "tensorboard", "safetensors")
    format = "a table of the steps, or, as safetensors, the weights before one of them"
    parser.add_argument("--format", choices=formats, required=True, help=format)
    out = "write this new file; for tensorboard, this new folder"
    parser.add_argument("-o", "--out", type=path, required=True, metavar="NEW", help=out)
    form = "wide: a row for each step; long: a row for each number of each tensor; default: wide"
    parser.add_argument("--form", choices=("wide", "long"), help=form)
    step = "with safetensors: the weights before step K, from 0; default: those after the last step"
    parser.add_argument("--step", type=integer(0, _UINT64), metavar="K", help=step)
    model = "with safetensors: what returns (loss_fn, batches), where gradients are not recorded"
    parser.add_argument("--model", metavar="MODULE:FUNCTION", help=model)
    parser.add_argument("--rule", metavar="MODULE:NAME", action="append", default=[], help=_RULE)
    _add_mode(parser)


def add_audit(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``audit``."""
    parser.add_argument("path", type=path, metavar="PATH", help="the trace")
    what = parser.add_mutually_exclusive_group(required=True)
    model = "what returns (loss_fn, batches) when it is called"
    what.add_argument("--model", metavar="MODULE:FUNCTION", help=model)
    check = "compute nothing: hold this certificate of an audit against the trace"
    what.add_argument("--check", type=path, metavar="CERTIFICATE", help=check)
    parser.add_argument("--rule", metavar="MODULE:NAME", action="append", default=[], help=_RULE)
    _add_mode(parser)
    sample = "how many units to draw: steps, or what lies between two recorded states; default: 32"
    parser.add_argument("--sample", type=integer(1, _MAX_SAMPLE), metavar="N", help=sample)
    nonce = "what the maker of the trace did not know, in hexadecimal digits; default: drawn here, and shown"
    parser.add_argument("--nonce", type=nonce_bytes, metavar="HEX", help=nonce)
    jobs = f"processes that compute side by side; {_DEFAULT}"
    parser.add_argument("--jobs", type=integer(1, _MAX_JOBS), default=1, metavar="N", help=jobs)
    out = "write the certificate, as JSON, to this new file"
    parser.add_argument("-o", "--out", type=path, metavar="CERTIFICATE", help=out)
    resume = "go on where the certificate of --out ends, if it is there"
    parser.add_argument("--resume", action="store_true", help=resume)
    seed = "the seed that the run is known to have; default: the one that the trace names"
    parser.add_argument("--seed", type=integer(0, _UINT64), metavar="UINT64", help=seed)
    numerics = "the numerics version that the run is known to have; default: the one that the trace names"
    parser.add_argument("--numerics", type=integer(0, _UINT32), metavar="N", help=numerics)


def add_bisect(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``bisect``."""
    traces = "the two traces, the reference first; one of them where --model is given"
    parser.add_argument("paths", type=path, nargs="*", metavar="PATH", help=traces)
    model = "compute steps of the run now: what returns (loss_fn, batches) when it is called"
    parser.add_argument("--model", metavar="MODULE:FUNCTION", help=model)
    parser.add_argument("--rule", metavar="MODULE:NAME", action="append", default=[], help=_RULE)
    _add_mode(parser)
    parser.add_argument("--proven", action="store_true", help="validate the files first")
    git = "end as git bisect run expects: 0 the same, 4 different, 125 where neither is known"
    parser.add_argument("--git", action="store_true", help=git)
    parser.set_defaults(a=None, b=None)


def add_report(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``report``."""
    traces = "the traces; the first is the one that others are held against, and that --model is of"
    parser.add_argument("paths", type=path, nargs="+", metavar="TRACE", help=traces)
    out = f"the page, which replaces one of that name; {_DEFAULT}"
    parser.add_argument("-o", "--out", type=path, default="report.html", metavar="PAGE", help=out)
    model = "prove every gradient, and rebuild whole steps: what returns (loss_fn, batches) when it is called"
    parser.add_argument("--model", metavar="MODULE:FUNCTION", help=model)
    rebuild = "a step to rebuild; may be given several times; default: the first, the last, the greatest gradient's"
    parser.add_argument("--rebuild", type=integer(0, _UINT64), metavar="K", action="append", default=[], help=rebuild)
    parser.add_argument("--rule", metavar="MODULE:NAME", action="append", default=[], help=_RULE)
    _add_mode(parser)
    watch = "write the page again every so many seconds while a run goes on, 10 if not said; proofs come with its end"
    parser.add_argument("--watch", type=integer(1, 86400), nargs="?", const=10, metavar="SECONDS", help=watch)


def add_test(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``test``."""
    action = "make the run the golden one, or hold it against the golden one"
    parser.add_argument("action", choices=("record", "check"), help=action)
    parser.add_argument("path", type=path, metavar="PATH", help="the golden file; its text lies beside it")
    model = "what trains when it is called with what it is to give to its trainer as trace="
    parser.add_argument("--model", metavar="MODULE:FUNCTION", required=True, help=model)
    parser.add_argument("--policy", type=policy, metavar="POLICY", help=_POLICY)


def add_verify_step(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``verify-step``."""
    step = "what returns a captured step when it is called; default: the reference model's step"
    parser.add_argument("function", nargs="?", metavar="MODULE:FUNCTION", help=step)
    replays = f"how often the step is replayed, twice over; {_DEFAULT}"
    parser.add_argument("--replays", type=integer(1, _MAX_STEPS), default=20, metavar="N", help=replays)


def add_cache(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``cache``."""
    action = "what to do: show the folder, clear it, or warm it, which compiles ahead; default: %(default)s"
    model = "with warm: what returns a captured step, to compile what that runs; default: every op in float32"
    parser.add_argument("action", nargs="?", choices=("show", "clear", "warm"), default="show", help=action)
    parser.add_argument("--model", metavar="MODULE:FUNCTION", help=model)
