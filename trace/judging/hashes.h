/* CRC-32, SHA-256 and XXH3-128, each of bytes in memory, written from their specifications. */
#include <stdint.h>
#include <string.h>

/* ---------------------------------------------------------------- little-endian integers */

static uint32_t get16(const uint8_t *at) { return (uint32_t)at[0] | (uint32_t)at[1] << 8; }
static uint32_t get32(const uint8_t *at) { return get16(at) | get16(at + 2) << 16; }
static uint64_t get64(const uint8_t *at) { return get32(at) | (uint64_t)get32(at + 4) << 32; }

static void put(uint8_t *at, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

/* ---------------------------------------------------------------- CRC-32, as in zlib */

static uint32_t crc_of(uint32_t crc, const uint8_t *data, uint64_t bytes) { /* begins and goes on: crc of none is 0 */
    static uint32_t table[256];
    if (table[1] == 0) {
        for (uint32_t byte = 0; byte < 256; byte++) {
            table[byte] = byte;
            for (int bit = 0; bit < 8; bit++)
                table[byte] = table[byte] >> 1 ^ (table[byte] & 1 ? 0xEDB88320u : 0);
        }
    }
    crc = ~crc;
    for (uint64_t i = 0; i < bytes; i++)
        crc = crc >> 8 ^ table[(crc ^ data[i]) & 255];
    return ~crc;
}

/* ---------------------------------------------------------------- SHA-256 (FIPS 180-4) */

static const uint32_t SHA_K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t turned(uint32_t x, int by) { return x >> by | x << (32 - by); }

static void sha_block(uint32_t h[8], const uint8_t *block) {
    uint32_t w[64], s[8];
    for (int i = 0; i < 16; i++) {
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 | (uint32_t)block[4 * i + 2] << 8 |
               block[4 * i + 3];
    }
    for (int i = 16; i < 64; i++) {
        uint32_t a = turned(w[i - 15], 7) ^ turned(w[i - 15], 18) ^ w[i - 15] >> 3;
        uint32_t b = turned(w[i - 2], 17) ^ turned(w[i - 2], 19) ^ w[i - 2] >> 10;
        w[i] = w[i - 16] + a + w[i - 7] + b;
    }
    memcpy(s, h, sizeof s);
    for (int i = 0; i < 64; i++) {
        uint32_t e = turned(s[4], 6) ^ turned(s[4], 11) ^ turned(s[4], 25);
        uint32_t a = turned(s[0], 2) ^ turned(s[0], 13) ^ turned(s[0], 22);
        uint32_t t1 = s[7] + e + ((s[4] & s[5]) ^ (~s[4] & s[6])) + SHA_K[i] + w[i];
        uint32_t t2 = a + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
        memmove(s + 1, s, 7 * sizeof *s);
        s[4] += t1;
        s[0] = t1 + t2;
    }
    for (int i = 0; i < 8; i++)
        h[i] += s[i];
}

static void sha256(uint8_t out[32], const uint8_t *data, uint64_t bytes) {
    uint32_t h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    uint8_t last[128] = {0};
    uint64_t whole = bytes / 64 * 64, rest = bytes - whole, end = rest < 56 ? 64 : 128;
    for (uint64_t at = 0; at < whole; at += 64)
        sha_block(h, data + at);
    memcpy(last, data + whole, (size_t)rest);
    last[rest] = 0x80;
    for (int i = 0; i < 8; i++)
        last[end - 1 - (uint64_t)i] = (uint8_t)(bytes * 8 >> 8 * i);
    for (uint64_t at = 0; at < end; at += 64)
        sha_block(h, last + at);
    for (int i = 0; i < 32; i++)
        out[i] = (uint8_t)(h[i / 4] >> (24 - 8 * (i % 4)));
}

/* ---------------------------------------------------------------- XXH3-128, seed 0 (the xxHash specification) */

static const uint64_t P32_1 = 0x9E3779B1u, P32_2 = 0x85EBCA77u, P32_3 = 0xC2B2AE3Du, P64_1 = 0x9E3779B185EBCA87u,
                      P64_2 = 0xC2B2AE3D27D4EB4Fu, P64_3 = 0x165667B19E3779F9u, P64_4 = 0x85EBCA77C2B2AE63u,
                      P64_5 = 0x27D4EB2F165667C5u;

static const uint8_t SECRET[192] = {
    0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c,
    0xde, 0xd4, 0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f,
    0xcb, 0x79, 0xe6, 0x4e, 0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21,
    0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43, 0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6, 0x81, 0x3a, 0x26, 0x4c,
    0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb, 0x88, 0xd0, 0x65, 0x8b, 0x1b, 0x53, 0x2e, 0xa3,
    0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19, 0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8,
    0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7, 0xc7, 0x0b, 0x4f, 0x1d,
    0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31, 0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78, 0x73, 0x64,
    0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb, 0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb,
    0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49, 0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e,
    0x2b, 0x16, 0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce,
    0x45, 0xcb, 0x3a, 0x8f, 0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e};

struct pair { /* 128 bits */
    uint64_t low, high;
};

static struct pair product(uint64_t a, uint64_t b) {
    uint64_t a0 = a & 0xFFFFFFFFu, a1 = a >> 32, b0 = b & 0xFFFFFFFFu, b1 = b >> 32;
    uint64_t low = a0 * b0, middle = a1 * b0 + (low >> 32), other = a0 * b1 + (middle & 0xFFFFFFFFu);
    struct pair made = {other << 32 | (low & 0xFFFFFFFFu), a1 * b1 + (middle >> 32) + (other >> 32)};
    return made;
}

static uint64_t folded(uint64_t a, uint64_t b) {
    struct pair made = product(a, b);
    return made.low ^ made.high;
}

static uint64_t secret(int at) { return get64(SECRET + at); }

static uint64_t avalanche(uint64_t h) {
    h = (h ^ h >> 37) * 0x165667919E3779F9u;
    return h ^ h >> 32;
}

static uint64_t avalanche64(uint64_t h) {
    h = (h ^ h >> 33) * P64_2;
    h = (h ^ h >> 29) * P64_3;
    return h ^ h >> 32;
}

static uint64_t swapped(uint64_t x) {
    uint64_t made = 0;
    for (int i = 0; i < 8; i++)
        made = made << 8 | (x >> 8 * i & 255);
    return made;
}

static struct pair xxh_to_3(const uint8_t *in, uint64_t n) { /* 0 to 3 bytes */
    struct pair made = {avalanche64(secret(64) ^ secret(72)), avalanche64(secret(80) ^ secret(88))};
    if (n > 0) {
        uint32_t low = (uint32_t)in[0] << 16 | (uint32_t)in[n / 2] << 24 | in[n - 1] | (uint32_t)n << 8;
        uint32_t high = turned((uint32_t)(swapped(low) >> 32), 32 - 13);
        made.low = avalanche64(low ^ (uint64_t)(get32(SECRET) ^ get32(SECRET + 4)));
        made.high = avalanche64(high ^ (uint64_t)(get32(SECRET + 8) ^ get32(SECRET + 12)));
    }
    return made;
}

static struct pair xxh_to_8(const uint8_t *in, uint64_t n) { /* 4 to 8 bytes */
    uint64_t keyed = (get32(in) + ((uint64_t)get32(in + n - 4) << 32)) ^ secret(16) ^ secret(24);
    struct pair made = product(keyed, P64_1 + (n << 2));
    made.high += made.low << 1;
    made.low ^= made.high >> 3;
    made.low = (made.low ^ made.low >> 35) * 0x9FB21C651E98DF25u;
    made.low ^= made.low >> 28;
    made.high = avalanche(made.high);
    return made;
}

static struct pair xxh_to_16(const uint8_t *in, uint64_t n) { /* 9 to 16 bytes */
    uint64_t low = get64(in), high = get64(in + n - 8);
    struct pair made = product(low ^ high ^ secret(32) ^ secret(40), P64_1), last;
    made.low += (n - 1) << 54;
    high ^= secret(48) ^ secret(56);
    made.high += high + (high & 0xFFFFFFFFu) * (P32_2 - 1);
    made.low ^= swapped(made.high);
    last = product(made.low, P64_2);
    last.high += made.high * P64_2;
    last.low = avalanche(last.low);
    last.high = avalanche(last.high);
    return last;
}

static void mix(struct pair *sum, const uint8_t *a, const uint8_t *b, int at) {
    sum->low += folded(get64(a) ^ secret(at), get64(a + 8) ^ secret(at + 8));
    sum->low ^= get64(b) + get64(b + 8);
    sum->high += folded(get64(b) ^ secret(at + 16), get64(b + 8) ^ secret(at + 24));
    sum->high ^= get64(a) + get64(a + 8);
}

static struct pair xxh_to_240(const uint8_t *in, uint64_t n) { /* 17 to 240 bytes */
    struct pair sum = {n * P64_1, 0}, made;
    if (n <= 128) {
        for (int i = (int)((n - 1) / 32); i >= 0; i--)
            mix(&sum, in + 16 * i, in + n - 16 * (i + 1), 32 * i);
    } else {
        for (int i = 0; i < (int)(n / 32); i++) {
            mix(&sum, in + 32 * i, in + 32 * i + 16, i < 4 ? 32 * i : 32 * (i - 4) + 3);
            if (i == 3) {
                sum.low = avalanche(sum.low);
                sum.high = avalanche(sum.high);
            }
        }
        mix(&sum, in + n - 16, in + n - 32, 103);
    }
    made.low = avalanche(sum.low + sum.high);
    made.high = 0 - avalanche(sum.low * P64_1 + sum.high * P64_4 + n * P64_2);
    return made;
}

static void add_stripe(uint64_t sums[8], const uint8_t *in, int at) {
    for (int i = 0; i < 8; i++) {
        uint64_t data = get64(in + 8 * i), key = data ^ secret(at + 8 * i);
        sums[i ^ 1] += data;
        sums[i] += (key & 0xFFFFFFFFu) * (key >> 32);
    }
}

static uint64_t merged(const uint64_t sums[8], int at, uint64_t start) {
    for (int i = 0; i < 8; i += 2)
        start += folded(sums[i] ^ secret(at + 8 * i), sums[i + 1] ^ secret(at + 8 * i + 8));
    return avalanche(start);
}

static struct pair xxh_long(const uint8_t *in, uint64_t n) { /* 241 bytes and more */
    uint64_t sums[8] = {P32_3, P64_1, P64_2, P64_3, P64_4, P32_2, P64_5, P32_1}, stripes = (n - 1) / 64;
    struct pair made;
    for (uint64_t i = 0; i < stripes; i++) {
        add_stripe(sums, in + 64 * i, 8 * (int)(i % 16));
        if (i % 16 == 15 && i / 16 < (n - 1) / 1024) {
            for (int k = 0; k < 8; k++)
                sums[k] = (sums[k] ^ sums[k] >> 47 ^ secret(128 + 8 * k)) * P32_1;
        }
    }
    add_stripe(sums, in + n - 64, 121);
    made.low = merged(sums, 11, n * P64_1);
    made.high = merged(sums, 117, ~(n * P64_2));
    return made;
}

static void xxh3_128(uint8_t out[16], const uint8_t *in, uint64_t n) {
    struct pair made = n <= 3     ? xxh_to_3(in, n)
                       : n <= 8   ? xxh_to_8(in, n)
                       : n <= 16  ? xxh_to_16(in, n)
                       : n <= 240 ? xxh_to_240(in, n)
                                  : xxh_long(in, n);
    put(out, swapped(made.high), 8);
    put(out + 8, swapped(made.low), 8);
}
