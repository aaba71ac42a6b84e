"""What all ranks must have alike, compared over them: a difference names what it is in, and who has what."""

import json
from collections.abc import Mapping
from hashlib import sha256

import numpy as np

from ...base.arrays import Array, Arrays
from ...tape.errors import DgrrError
from ..step.state_digest import state_digest
from .exchange import Exchange
from .texts import texts_of_all

SHOWN = 80
"""Characters of a value that an error shows."""


class AgreementError(DgrrError, RuntimeError):
    """Ranks that do not train the same: another recipe, program, data set, or other parameters."""


def require_agreement(exchange: Exchange, when: str, entries: Mapping[str, str]) -> None:
    """Raise AgreementError, the same on all ranks, if they do not have the same entries.

    One gather of 32 bytes where they have. ``when`` says when, such as "before step 0".
    """
    own = json.dumps(dict(entries)).encode()
    if len(set(_digests(exchange, own))) == 1:
        return
    given = [json.loads(text) for text in texts_of_all(exchange, own)]
    raise AgreementError(_difference(when, given))


def digests(arrays: Arrays, kind: str) -> dict[str, str]:
    """An entry for each array: its name, and what it holds.

    >>> digests({"w": np.zeros(2, np.float32)}, "parameter")
    {"parameter 'w'": 'float32[2] 54337719aaa58050'}
    """
    return {f"{kind} {name!r}": _held(array) for name, array in arrays.items()}


def _held(array: Array) -> str:
    return f"{array.dtype}{list(array.shape)} {state_digest({'': array}, {})[:16]}"


def _digests(exchange: Exchange, own: bytes) -> list[bytes]:
    """The SHA-256 of what every rank gives."""
    whole = np.zeros((exchange.size, 32), np.uint8)
    whole[exchange.rank] = np.frombuffer(sha256(own).digest(), np.uint8)
    exchange.gather(whole.reshape(-1), [32 * rank for rank in range(exchange.size + 1)])
    return [row.tobytes() for row in whole]


def _difference(when: str, given: list[dict[str, str]]) -> str:
    """The first entry that is not alike, and which ranks have which value of it."""
    names = dict.fromkeys(name for entries in given for name in entries)
    for name in names:
        holders = dict[str, list[int]]()
        for rank, entries in enumerate(given):
            holders.setdefault(entries.get(name, "nothing"), []).append(rank)
        if len(holders) > 1:
            every = sorted(holders.items(), key=lambda item: (-len(item[1]), item[1]))
            said = "; ".join(f"{_ranks(ranks)} {value[:SHOWN]}" for value, ranks in every)
            return f"ranks: {when}: {name}: expected the same on all ranks, got {said}"
    raise AssertionError("entries differ only in their order")


def _ranks(ranks: list[int]) -> str:
    """``rank 2 has`` or ``ranks 0, 1 have``."""
    return f"rank {ranks[0]} has" if len(ranks) == 1 else f"ranks {', '.join(map(str, ranks))} have"
