"""CRC-32 as in zlib (reflected polynomial ``0xEDB88320``) in compiled code."""
