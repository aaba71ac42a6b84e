/* Little-endian integers, and CRC-32 as in zlib. */
#include <stdint.h>

static uint32_t get16(const uint8_t *at) { return (uint32_t)at[0] | (uint32_t)at[1] << 8; }
static uint32_t get32(const uint8_t *at) { return get16(at) | get16(at + 2) << 16; }
static uint64_t get64(const uint8_t *at) { return get32(at) | (uint64_t)get32(at + 4) << 32; }

static void put(uint8_t *at, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

static uint32_t crc_of(uint32_t crc, const uint8_t *data, uint64_t bytes) { /* begins and goes on: crc of none is 0 */
    crc = ~crc;
    for (uint64_t i = 0; i < bytes; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
    }
    return ~crc;
}
