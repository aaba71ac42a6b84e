"""XXH3-128, the digest of arrays in traces, as kernels: with the search for infinities and NaN in the same pass.

The algorithm is that of Yann Collet's xxHash (specification: ``doc/xxhash_spec.md`` of its repository), without a seed
and with its default secret.
"""
