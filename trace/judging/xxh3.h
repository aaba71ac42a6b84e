/* XXH3-128 with seed 0 of 9 bytes and more, which all that is digested has; from the xxHash specification. */

static const uint64_t P32_1 = 0x9E3779B1u, P32_2 = 0x85EBCA77u, P32_3 = 0xC2B2AE3Du, P64_1 = 0x9E3779B185EBCA87u,
                      P64_2 = 0xC2B2AE3D27D4EB4Fu, P64_3 = 0x165667B19E3779F9u, P64_4 = 0x85EBCA77C2B2AE63u,
                      P64_5 = 0x27D4EB2F165667C5u;

static const uint64_t SECRET[24] = { /* its 192 bytes, little-endian */
    0xbe4ba423396cfeb8, 0x1cad21f72c81017c, 0xdb979083e96dd4de, 0x1f67b3b7a4a44072, 0x78e5c0cc4ee679cb,
    0x2172ffcc7dd05a82, 0x8e2443f7744608b8, 0x4c263a81e69035e0, 0xcb00c391bb52283c, 0xa32e531b8b65d088,
    0x4ef90da297486471, 0xd8acdea946ef1938, 0x3f349ce33f76faa8, 0x1d4f0bc7c7bbdcf9, 0x3159b4cd4be0518a,
    0x647378d9c97e9fc8, 0xc3ebd33483acc5ea, 0xeb6313faffa081c5, 0x49daf0b751dd0d17, 0x9e68d429265516d3,
    0xfca1477d58be162b, 0xce31d07ad1b8f88f, 0x280416958f3acb45, 0x7e404bbbcafbd7af};

struct pair { /* 128 bits */
    uint64_t low, high;
};

static struct pair product(uint64_t a, uint64_t b) {
    uint64_t a0 = a & 0xFFFFFFFFu, a1 = a >> 32, b0 = b & 0xFFFFFFFFu, b1 = b >> 32;
    uint64_t low = a0 * b0, middle = a1 * b0 + (low >> 32), other = a0 * b1 + (middle & 0xFFFFFFFFu);
    return (struct pair){other << 32 | (low & 0xFFFFFFFFu), a1 * b1 + (middle >> 32) + (other >> 32)};
}

static uint64_t folded(uint64_t a, uint64_t b) {
    struct pair made = product(a, b);
    return made.low ^ made.high;
}

static uint64_t secret(int at) { /* the eight bytes from there */
    int bits = at % 8 * 8;
    return bits == 0 ? SECRET[at / 8] : SECRET[at / 8] >> bits | SECRET[at / 8 + 1] << (64 - bits);
}

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
    return (struct pair){avalanche(last.low), avalanche(last.high + made.high * P64_2)};
}

static void mix(struct pair *sum, const uint8_t *a, const uint8_t *b, int at) {
    sum->low += folded(get64(a) ^ secret(at), get64(a + 8) ^ secret(at + 8));
    sum->low ^= get64(b) + get64(b + 8);
    sum->high += folded(get64(b) ^ secret(at + 16), get64(b + 8) ^ secret(at + 24));
    sum->high ^= get64(a) + get64(a + 8);
}

static struct pair xxh_to_240(const uint8_t *in, uint64_t n) { /* 17 to 240 bytes */
    struct pair sum = {n * P64_1, 0};
    if (n <= 128) {
        for (int i = (int)((n - 1) / 32); i >= 0; i--)
            mix(&sum, in + 16 * i, in + n - 16 * (i + 1), 32 * i);
    } else {
        for (int i = 0; i < (int)(n / 32); i++) {
            mix(&sum, in + 32 * i, in + 32 * i + 16, i < 4 ? 32 * i : 32 * (i - 4) + 3);
            if (i == 3)
                sum = (struct pair){avalanche(sum.low), avalanche(sum.high)};
        }
        mix(&sum, in + n - 16, in + n - 32, 103);
    }
    return (struct pair){avalanche(sum.low + sum.high),
                         0 - avalanche(sum.low * P64_1 + sum.high * P64_4 + n * P64_2)};
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
    for (uint64_t i = 0; i < stripes; i++) {
        add_stripe(sums, in + 64 * i, 8 * (int)(i % 16));
        if (i % 16 == 15) {
            for (int k = 0; k < 8; k++)
                sums[k] = (sums[k] ^ sums[k] >> 47 ^ secret(128 + 8 * k)) * P32_1;
        }
    }
    add_stripe(sums, in + n - 64, 121);
    return (struct pair){merged(sums, 11, n * P64_1), merged(sums, 117, ~(n * P64_2))};
}

static void xxh3_128(uint8_t out[16], const uint8_t *in, uint64_t n) {
    struct pair made = n <= 16 ? xxh_to_16(in, n) : n <= 240 ? xxh_to_240(in, n) : xxh_long(in, n);
    put(out, swapped(made.high), 8);
    put(out + 8, swapped(made.low), 8);
}
