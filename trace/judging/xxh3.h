/* XXH3-128 with seed 0 of 9 bytes and more, which all that is digested has; from the xxHash specification. */

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

static uint64_t swapped(uint64_t x) {
    uint64_t made = 0;
    for (int i = 0; i < 8; i++)
        made = made << 8 | (x >> 8 * i & 255);
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
    struct pair made = n <= 16 ? xxh_to_16(in, n) : n <= 240 ? xxh_to_240(in, n) : xxh_long(in, n);
    put(out, swapped(made.high), 8);
    put(out + 8, swapped(made.low), 8);
}
