"""The numbers of XXH3, as signed words: kernels compute with int64, whose sums and products wrap alike."""

import struct


def signed(word: int) -> int:
    """The int64 of the same 64 bits.

    >>> signed(0xFFFFFFFFFFFFFFFF)
    -1
    """
    return word - (1 << 64) if word >> 63 else word


PRIME32_1, PRIME32_2, PRIME32_3 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
PRIME64_1, PRIME64_2, PRIME64_3, PRIME64_4, PRIME64_5 = map(
    signed, (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
)
MIX_1, MIX_2 = map(signed, (0x165667919E3779F9, 0x9FB21C651E98DF25))
"""The multipliers of the two avalanches."""

SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
"""The 192 bytes that messages are mixed with."""

DIGEST = 16
"""Bytes of a digest."""

STRIPE, LANES = 64, 8
"""Bytes of a stripe, and its words."""
BLOCK = 1024
"""Bytes of a block: sixteen stripes, each with the secret eight bytes further on."""

START = tuple(map(signed, (PRIME32_3, PRIME64_1, PRIME64_2, PRIME64_3, PRIME64_4, PRIME32_2, PRIME64_5, PRIME32_1)))
"""What the eight accumulators begin with."""


def secret_word(offset: int) -> int:
    """The int64 at an offset of the secret, whose order is that of the specification.

    >>> secret_word(0) == signed(0xBE4BA423396CFEB8)
    True
    """
    return int(struct.unpack_from("<q", SECRET, offset)[0])
