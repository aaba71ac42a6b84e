"""Where dgrr's step spends its time: ``python -m engines.profile MODEL THREADS`` prints its kernel calls as JSON."""

import json
import sys
from dataclasses import asdict

from dgrr.tape import set_threads

from .dgrr_engine import captured
from .larger import NETWORKS
from .worker import keep_to


def main() -> None:
    model, threads = NETWORKS[sys.argv[1]], int(sys.argv[2])
    keep_to(threads)
    set_threads(threads)
    profile = captured(model, model.params()).profile(model.batches()[0])
    print(json.dumps([asdict(call) for call in profile.calls]))


if __name__ == "__main__":
    main()
