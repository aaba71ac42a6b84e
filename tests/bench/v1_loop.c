/* The version 1 training program in C: same data, model, records and CRCs, for bench and byte comparison.
 *
 * Build: cc -O2 -shared -fPIC -o v1_loop.so v1_loop.c     (x86-64 and others without contraction by default;
 * elsewhere add -ffp-contract=off).
 *
 * CRC-32 by slicing-by-16 throughout. The file CRC is either computed over the records, as a plain program does
 * (file_crc_by_bytes = 1), or left to the caller, who knows it in closed form (0).
 */
#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK 8192
#define GAMMA 0x9E3779B97F4A7C15ull

static uint32_t T[16][256];

static void make_tables(void) {
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;
        for (int k = 0; k < 8; k++)
            crc = (crc >> 1) ^ ((crc & 1) ? 0xEDB88320u : 0);
        T[0][i] = crc;
    }
    for (int k = 1; k < 16; k++)
        for (int i = 0; i < 256; i++)
            T[k][i] = (T[k - 1][i] >> 8) ^ T[0][T[k - 1][i] & 255];
}

static inline uint32_t feed8(uint64_t a, uint32_t crc) {
    a ^= crc;
    return T[7][a & 255] ^ T[6][a >> 8 & 255] ^ T[5][a >> 16 & 255] ^ T[4][a >> 24 & 255] ^ T[3][a >> 32 & 255] ^
           T[2][a >> 40 & 255] ^ T[1][a >> 48 & 255] ^ T[0][a >> 56];
}

static inline uint32_t feed16(uint64_t a, uint64_t b, uint32_t crc) {
    a ^= crc;
    return T[15][a & 255] ^ T[14][a >> 8 & 255] ^ T[13][a >> 16 & 255] ^ T[12][a >> 24 & 255] ^
           T[11][a >> 32 & 255] ^ T[10][a >> 40 & 255] ^ T[9][a >> 48 & 255] ^ T[8][a >> 56] ^ feed8(b, 0);
}

static inline uint32_t feed64(const uint64_t *r, uint32_t crc) {
    crc = feed16(r[0], r[1], crc);
    crc = feed16(r[2], r[3], crc);
    crc = feed16(r[4], r[5], crc);
    return feed16(r[6], r[7], crc);
}

static inline double uniform(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

static inline uint64_t bits(double value) {
    uint64_t word;
    memcpy(&word, &value, 8);
    return word;
}

typedef struct {
    double w, b, total, carry;
} state_t;

/* Fill n records from step `first` on; return how many before a value that is not finite. */
long train_block(uint64_t *out, long n, uint64_t first, uint64_t seed, double lr, state_t *s, uint32_t *file_crc,
                 int file_crc_by_bytes) {
    uint64_t state = seed + 2 * first * GAMMA;
    double w = s->w, b = s->b, total = s->total, carry = s->carry;
    uint32_t running = ~*file_crc;
    long i;
    if (!T[0][1])
        make_tables();
    for (i = 0; i < n; i++) {
        double u1 = uniform(state += GAMMA), u2 = uniform(state += GAMMA);
        double x = 4.0 * u1 - 2.0, y = (2.0 * x + 1.0) + 0.1 * (u2 - 0.5);
        double e = (w * x + b) - y, grad_w = (2.0 * e) * x, grad_b = 2.0 * e, loss = e * e;
        double w_after = w - lr * grad_w, b_after = b - lr * grad_b;
        if (!(isfinite(w_after) && isfinite(b_after) && isfinite(loss)))
            break;
        uint64_t *r = out + 9 * i;
        r[0] = first + (uint64_t)i;
        r[1] = bits(w);
        r[2] = bits(b);
        r[3] = bits(grad_w);
        r[4] = bits(grad_b);
        r[5] = bits(w_after);
        r[6] = bits(b_after);
        r[7] = bits(loss);
        r[8] = (uint32_t)~feed64(r, ~0u);
        if (file_crc_by_bytes)
            running = feed8(r[8], feed64(r, running));
        double term = loss - carry, grown = total + term;
        carry = (grown - total) - term;
        total = grown;
        w = w_after;
        b = b_after;
    }
    *s = (state_t){w, b, total, carry};
    *file_crc = ~running;
    return i;
}

static uint32_t crc_of(const unsigned char *data, int n) {
    uint32_t crc = ~0u;
    for (int i = 0; i < n; i++)
        crc = T[0][(crc ^ data[i]) & 255] ^ (crc >> 8);
    return ~crc;
}

static void put(unsigned char *at, uint64_t value, int bytes) { memcpy(at, &value, (size_t)bytes); }

static void make_header(unsigned char *h, uint64_t seed, uint64_t steps, double lr, uint32_t file_crc, int64_t time) {
    memset(h, 0, 64);
    memcpy(h, "DGRR\1", 5);
    put(h + 8, seed, 8);
    put(h + 16, steps, 8);
    put(h + 24, bits(lr), 8);
    put(h + 32, file_crc, 4);
    put(h + 36, crc_of(h, 36), 4);
    put(h + 40, (uint64_t)time, 8);
}

static int write_all(int fd, const void *data, size_t n) {
    const char *at = data;
    while (n > 0) {
        ssize_t done = write(fd, at, n);
        if (done < 0)
            return -1;
        at += done;
        n -= (size_t)done;
    }
    return 0;
}

/* The whole program: header, records, patched header, fsync, rename. Returns the steps written, or -1. */
long train_file(const char *path, const char *partial, uint64_t steps, uint64_t seed, double lr, int64_t time) {
    static uint64_t block[9 * BLOCK];
    unsigned char header[64];
    state_t state = {0.0, 0.0, 0.0, 0.0};
    uint32_t file_crc = 0;
    uint64_t first = 0;
    int fd = open(partial, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    make_tables();
    make_header(header, seed, 0, lr, 0, time);
    if (fd < 0 || write_all(fd, header, 64))
        return -1;
    while (first < steps) {
        long n = steps - first < BLOCK ? (long)(steps - first) : BLOCK;
        long done = train_block(block, n, first, seed, lr, &state, &file_crc, 1);
        if (write_all(fd, block, 72 * (size_t)done))
            return -1;
        first += (uint64_t)done;
        if (done < n)
            break;
    }
    make_header(header, seed, first, lr, file_crc, time);
    if (lseek(fd, 0, SEEK_SET) || write_all(fd, header, 64) || fsync(fd) || close(fd) || rename(partial, path))
        return -1;
    return (long)first;
}
