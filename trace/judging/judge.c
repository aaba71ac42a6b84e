/* judge: recomputes a recorded training run and says whether the record is right.
 *
 *     judge TRACE BATCHES [--from STEP] [--to STEP]
 *
 * TRACE is a file of the format DGRR, version 2 (docs/trace_format.md). BATCHES holds what each step was trained on.
 * plan.h says what the tensors of the run are, and how its training step is called, which is compiled code beside this
 * file. hashes.h has CRC-32, SHA-256 and XXH3-128. Nothing else is used but the C library.
 *
 * 1. The whole file is checked: every length, CRC and digest, both chains.
 * 2. From a keyframe on, every step is computed again. Its batch, loss, gradients and the state after it must have the
 *    bits, or the digests, that are recorded.
 *
 * The answer is one line, a verdict and why, and the exit code that the format's page gives it: 0 only for "ok".
 *
 * Every number from the file is compared with what is left of the file before it is used. All positions are uint64_t:
 * sums of a 32-bit length and a position in a file cannot overflow. Integers and floats in the file are little-endian,
 * as are all machines for which the step can be compiled.
 */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- what plan.h tells */

enum { MAX_RANK = 16, NOWHERE = -1 };
enum dtype { F32 = 1, F64 = 2, I64 = 3 };

struct array { /* one of the run's tensors, or one array of a batch */
    const char *name;
    uint32_t dtype; /* its code in the format */
    uint32_t rank;
    uint64_t shape[MAX_RANK];
    uint64_t bytes;
};

struct hyperparameter {
    uint64_t bits; /* what every step must have, unless it is a rate that changes */
    size_t rate;   /* its number among such rates, from 1; 0: it is none */
};

struct step { /* the compiled training step for batches of one shape */
    int (*start)(void *state, size_t bytes);
    int (*run)(void *state, const void *const *in, void *const *out, void *arena);
    const char *const *messages;
    uint64_t state_bytes, arena_bytes;
    const int64_t *tensors; /* where each tensor stands in the state, or NOWHERE: the step does not touch it */
    const int64_t *rates;   /* where each rate that changes stands */
    const struct array *inputs;
    size_t inputs_count;
    const int *gradients; /* of each param: which output is its gradient, or NOWHERE; output 0 is the loss */
    int scale;            /* which output is the norm of the gradients and the scale of clipping, or NOWHERE */
};

#include "hashes.h"
#include "plan.h" /* the numbers in capitals that are not defined here, and the tables plan_… */

/* ---------------------------------------------------------------- verdicts */

enum { OK = 0, USAGE = 1, IO = 2, UNUSABLE = 3, DIFFERS = 5, UNPROVEN = 6 };

static void stop(int code, const char *verdict, const char *why, ...) {
    va_list given;
    va_start(given, why);
    printf("%s: ", verdict);
    vprintf(why, given);
    printf("\n");
    va_end(given);
    fflush(stdout);
    exit(code);
}

static void *room(uint64_t bytes) {
    void *made = bytes < SIZE_MAX ? calloc(1, (size_t)bytes + 1) : NULL;
    if (made == NULL)
        stop(UNPROVEN, "unproven", "there is not enough memory: %llu bytes are needed", (unsigned long long)bytes);
    return made;
}

static void *aligned_room(uint64_t bytes) { /* at a multiple of 64, as the step needs its state and arena */
    unsigned char *made = room(bytes + 64);
    return made + (64 - (uintptr_t)made % 64);
}

/* ---------------------------------------------------------------- digests of the trace */

static int all_zero(const uint8_t *at, uint64_t bytes) {
    for (uint64_t i = 0; i < bytes; i++) {
        if (at[i] != 0)
            return 0;
    }
    return 1;
}

enum { SYNC = 0x465247da, HEADER = 256, HEAD = 48, MORE = 1, MAX_DIGEST = 32 };
enum { SCHEMA = 1, KEYFRAME = 2, STEP = 3, COMMIT = 4, INDEX = 5, SEAL = 6, EVENT = 7, SKIPPED = 128, VALUES = 130 };
enum { GRADS = 2, FULL = 3, BARE = 4 }; /* record modes */

static const uint8_t *file; /* the whole trace */
static uint64_t file_bytes;
static uint32_t digest_code, D; /* D: bytes of a digest, as on the format's page */
static uint32_t mode, state_every;
static uint64_t largest_payload;

/* Digest of two pieces, one behind the other. */
static void digest(uint8_t *out, const void *a, uint64_t a_bytes, const void *b, uint64_t b_bytes) {
    static uint8_t *joined;
    static uint64_t held;
    if (joined == NULL || a_bytes + b_bytes > held) {
        free(joined);
        held = a_bytes + b_bytes;
        joined = room(held);
    }
    memcpy(joined, a, (size_t)a_bytes);
    memcpy(joined + a_bytes, b, (size_t)b_bytes);
    if (digest_code == 1) {
        xxh3_128(out, joined, a_bytes + b_bytes);
    } else {
        sha256(out, joined, a_bytes + b_bytes);
    }
}

static void tensor_digest(uint8_t *out, const struct array *a, const uint8_t *elements) {
    uint8_t before[8 + 8 * MAX_RANK];
    put(before, a->dtype, 4);
    put(before + 4, a->rank, 4);
    for (uint32_t i = 0; i < a->rank; i++)
        put(before + 8 + 8 * i, a->shape[i], 8);
    digest(out, before, 8 + 8 * (uint64_t)a->rank, elements, a->bytes);
}

static int same(const uint8_t *a, const uint8_t *b) { return memcmp(a, b, D) == 0; }

/* Write every NaN as the format does. */
static void canonical(uint8_t *elements, uint32_t dtype, uint64_t bytes) {
    for (uint64_t at = 0; dtype == F32 && at < bytes; at += 4) {
        if ((get32(elements + at) & 0x7FFFFFFFu) > 0x7F800000u)
            put(elements + at, 0x7FC00000u, 4);
    }
    for (uint64_t at = 0; dtype == F64 && at < bytes; at += 8) {
        if ((get64(elements + at) & 0x7FFFFFFFFFFFFFFFu) > 0x7FF0000000000000u)
            put(elements + at, 0x7FF8000000000000u, 8);
    }
}

/* ---------------------------------------------------------------- frames */

struct frame {
    uint64_t at, step; /* where it begins, and the step that its head names */
    uint32_t type, flags, part, front_bytes;
    const uint8_t *front, *body; /* the body of all its parts */
    uint64_t body_bytes;
};

static uint64_t next_at, next_seq;   /* where the next frame begins, and its number */
static uint8_t chain[MAX_DIGEST];    /* the file chain behind the last frame */

static uint64_t pad8(uint64_t n) { return (n + 7) / 8 * 8; }

static uint32_t head_crc(const uint8_t *head) { return crc_of(crc_of(0, file + 16, 16), head, 44); }

/* Whether a whole COMMIT or SEAL stands behind a place: what is before it had reached the disk. */
static int is_committed(uint64_t at) {
    uint64_t read = 0;
    for (; file_bytes >= HEAD && at <= file_bytes - HEAD; at += 8) {
        const uint8_t *head = file + at;
        uint64_t front = get32(head + 28);
        if (get32(head) != SYNC || (head[4] != COMMIT && head[4] != SEAL) || head_crc(head) != get32(head + 44) ||
            front > file_bytes - at - HEAD) {
            continue;
        }
        if (crc_of(0, head + HEAD, front) == get32(head + 40))
            return 1;
        read += front;
        if (read / 8 > file_bytes) { /* no writer leaves so many heads without a front */
            return 1;
        }
    }
    return 0;
}

static void damaged(uint64_t at, const char *what) {
    const char *word = is_committed(at + 8) ? "corrupt" : "torn-tail";
    stop(UNUSABLE, word, "the frame at byte %llu is not whole: %s", (unsigned long long)at, what);
}

static void wrong(const struct frame *f, const char *verdict, const char *what) {
    stop(UNUSABLE, verdict, "the frame at byte %llu (type %u, step %llu): %s", (unsigned long long)f->at,
         (unsigned)f->type, (unsigned long long)f->step, what);
}

/* Read one part of a frame, and check it but for its body. */
static void read_part(struct frame *f) {
    const uint8_t *head = file + next_at;
    uint64_t at = next_at, left = file_bytes - at, payload;
    uint8_t link[MAX_DIGEST];
    if (left < HEAD || get32(head) != SYNC || get32(head + 44) != head_crc(head))
        damaged(at, "its head");
    f->at = at;
    f->type = head[4];
    f->flags = head[5];
    f->part = get16(head + 6);
    f->step = get64(head + 16);
    f->front_bytes = get32(head + 28);
    payload = get32(head + 24);
    if (get64(head + 8) != next_seq || memcmp(head + 32, chain, 8) != 0)
        wrong(f, "chain", "it does not go on behind the frame before it");
    if (f->flags > MORE || f->front_bytes > payload || payload > largest_payload)
        wrong(f, "corrupt", "its head says what no writer says");
    if (left - HEAD < pad8(payload) + D)
        damaged(at, "the file ends in it");
    f->front = head + HEAD;
    f->body = f->front + f->front_bytes;
    f->body_bytes = payload - f->front_bytes;
    if (crc_of(0, f->front, f->front_bytes) != get32(head + 40))
        damaged(at, "the CRC of its front");
    if (!all_zero(f->front + payload, pad8(payload) - payload))
        damaged(at, "its padding");
    memcpy(link, chain, D);
    digest(chain, link, D, head, HEAD + (uint64_t)f->front_bytes);
    next_at = at + HEAD + pad8(payload) + D;
    if (!same(chain, file + next_at - D))
        damaged(at, "its chain digest");
    next_seq++;
}

/* Read a frame with all its parts. Where there are several, `joined` holds the body until the next frame. */
static struct frame read_frame(void) {
    static uint8_t *joined;
    struct frame f, part;
    read_part(&f);
    if (f.part != 0)
        wrong(&f, "chain", "a part without those before it");
    free(joined);
    joined = NULL;
    if (f.flags & MORE) {
        uint64_t bytes = f.body_bytes;
        joined = room(file_bytes); /* the parts are in the file, so they are not longer */
        memcpy(joined, f.body, (size_t)bytes);
        part = f;
        while (part.flags & MORE) {
            if (part.front_bytes + part.body_bytes != largest_payload)
                wrong(&part, "corrupt", "a part that is shorter than the largest payload, and not the last");
            uint32_t number = part.part + 1;
            read_part(&part);
            if (part.type != f.type || part.step != f.step || part.part != number)
                wrong(&part, "chain", "it stands between the parts of another frame");
            if (part.front_bytes != 0 || part.body_bytes == 0)
                wrong(&part, "corrupt", "a later part has a front, or nothing");
            memcpy(joined + bytes, part.body, (size_t)part.body_bytes);
            bytes += part.body_bytes;
        }
        f.body = joined;
        f.body_bytes = bytes;
    }
    return f;
}

/* ---------------------------------------------------------------- what is known while the file is read */

static uint64_t steps;                      /* so many STEP frames were read */
static uint64_t first_run, end_run, from;   /* steps to run: from a keyframe to before another */
static int running;                         /* whether this is the second pass, and the state is known */
static uint64_t checked;                    /* behind so many steps the state was last found to be the recorded one */
static int sealed;
static uint8_t state_link[MAX_DIGEST];      /* S[k-1] of the state chain */
static uint8_t schema_digest[MAX_DIGEST];
static uint8_t after_root[MAX_DIGEST];      /* the state root behind the last step, if `root_known` */
static int root_known;
static const uint8_t *gradient_digests[PARAMS + 1], *after_digests[TENSORS + 1]; /* in the last STEP, or NULL */
static uint8_t *tensors[TENSORS + 1];       /* the state that is computed */

/* The state root of recorded digests, in the order of the schema. */
static void root_of(uint8_t *out, const uint8_t *const *digests) {
    static uint8_t all[TENSORS * MAX_DIGEST + 1];
    for (size_t i = 0; i < TENSORS; i++)
        memcpy(all + i * D, digests[i], D);
    digest(out, "DGRRroot", 8, all, (uint64_t)TENSORS * D);
}

/* Take the next tensor from a body, and hold its elements against a digest. */
static void check_elements(struct frame *f, const struct array *a, const uint8_t *expected) {
    uint8_t found[MAX_DIGEST];
    if (f->body_bytes < a->bytes)
        wrong(f, "corrupt", "its body is too short");
    tensor_digest(found, a, f->body);
    if (!same(found, expected))
        damaged(f->at, a->name);
    f->body += a->bytes;
    f->body_bytes -= a->bytes;
}

static void check_end(const struct frame *f) {
    if (f->body_bytes != 0)
        wrong(f, "corrupt", "its body is too long");
}

/* Hold the computed state against digests that are recorded of it. */
static void compare_state(uint64_t step, const uint8_t *const *digests, const char *where) {
    uint8_t found[MAX_DIGEST];
    for (size_t i = 0; i < TENSORS; i++) {
        tensor_digest(found, &plan_tensors[i], tensors[i]);
        if (!same(found, digests[i])) {
            stop(DIFFERS, "update", "step %llu: %s after the step is not what %s says", (unsigned long long)step,
                 plan_tensors[i].name, where);
        }
    }
    checked = step + 1;
}

/* ---------------------------------------------------------------- header, SCHEMA, KEYFRAME, SEAL and small frames */

static void read_header(void) {
    uint32_t floats, reader;
    if (file_bytes < HEADER) {
        uint64_t there = file_bytes < 4 ? file_bytes : 4;
        const char *word = memcmp(file, "DGRR", (size_t)there) == 0 ? "torn-tail" : "corrupt";
        stop(UNUSABLE, word, "the file ends before its header does");
    }
    if (memcmp(file, "DGRR", 4) != 0)
        stop(UNUSABLE, "corrupt", "this is no trace: it does not begin with DGRR");
    if (get16(file + 4) != 2)
        stop(UNUSABLE, "unsupported", "version %u of the format; this is a reader of version 2", (unsigned)get16(file + 4));
    if (crc_of(0, file, 252) != get32(file + 252))
        stop(UNUSABLE, "corrupt", "the CRC of the header");
    reader = get16(file + 12);
    floats = file[50];
    digest_code = file[48];
    mode = file[49];
    state_every = get32(file + 52);
    largest_payload = get64(file + 64);
    D = digest_code == 1 ? 16 : 32;
    if ((reader != 2 && reader != 3) || digest_code < 1 || digest_code > 2) {
        stop(UNUSABLE, "unsupported", "a reader of version %u, or digest %u, is needed", (unsigned)reader,
             (unsigned)digest_code);
    }
    if (get16(file + 6) != 0 || get32(file + 8) != HEADER || get16(file + 14) != 8 || mode < 1 || mode > BARE ||
        floats > 7 || file[51] != 0 || state_every == 0 || get32(file + 60) != 0 || largest_payload % 8 != 0 ||
        largest_payload < 4096 || largest_payload > 1u << 30 || !all_zero(file + 176, 76) ||
        !all_zero(file + 72 + D, 32 - D) || !all_zero(file + 104 + D, 32 - D) || !all_zero(file + 136 + D, 32 - D)) {
        stop(UNUSABLE, "corrupt", "the header says what no writer says");
    }
    next_at = HEADER;
    next_seq = 0;
    digest(chain, "DGRRfile", 8, file, HEADER);
}

static void read_schema(const struct frame *f) {
    uint8_t found[32];
    if (f->type != SCHEMA || f->step != 0 || f->body_bytes != 0)
        wrong(f, "corrupt", "expected SCHEMA, without a body");
    sha256(found, f->front, f->front_bytes);
    if (memcmp(found, plan_schema, 32) != 0)
        stop(UNPROVEN, "unproven", "its tensors and rules are not those of the trace for which this judge was made");
    digest(schema_digest, f->front, f->front_bytes, "", 0);
}

static void read_keyframe(struct frame *f) {
    const uint8_t *digests[TENSORS + 1], *at;
    const struct frame whole = *f;
    uint8_t root[MAX_DIGEST];
    uint64_t opaque = f->front_bytes < 8 ? 0 : (uint64_t)get32(f->front) + get32(f->front + 4);
    if (f->front_bytes < 8 || opaque > 65536 || f->front_bytes != pad8(8 + opaque) + (TENSORS + 1) * (uint64_t)D ||
        f->step % state_every != 0 || !all_zero(f->front + 8 + opaque, pad8(8 + opaque) - 8 - opaque)) {
        wrong(f, "corrupt", "it is no KEYFRAME of these tensors");
    }
    at = f->front + pad8(8 + opaque);
    for (size_t i = 0; i < TENSORS; i++) {
        digests[i] = at + i * D;
        if (mode != BARE)
            check_elements(f, &plan_tensors[i], digests[i]);
    }
    check_end(f);
    root_of(root, digests);
    if (!same(root, at + TENSORS * (size_t)D) || f->step != steps || (steps > 0 && !(root_known && same(root, after_root))))
        wrong(f, "chain", "its state is not that of the step before it");
    if (steps == 0) {
        uint8_t both[2 * MAX_DIGEST];
        memcpy(both, schema_digest, D);
        memcpy(both + D, root, D);
        digest(state_link, "DGRRrun2", 8, both, 2 * (uint64_t)D);
    }
    if (running && steps > first_run && steps <= end_run) {
        compare_state(steps - 1, digests, "the KEYFRAME behind it");
    } else if (running && steps == first_run) {
        at = whole.body;
        for (size_t i = 0; i < TENSORS; i++) {
            memcpy(tensors[i], at, (size_t)plan_tensors[i].bytes);
            at += plan_tensors[i].bytes;
        }
        checked = steps;
    } else if (!running && steps <= from) {
        first_run = steps;
    }
}

static void read_seal(const struct frame *f) {
    uint64_t known = 0, indexes = 0, state = 0;
    const uint8_t *digests[TENSORS + 1], *end = f->front + f->front_bytes;
    uint8_t root[MAX_DIGEST];
    if (f->front_bytes >= 16) {
        known = get32(f->front + 8);
        indexes = get32(f->front + 12);
        state = known == 1 ? (TENSORS + 1) * (uint64_t)D : 0;
    }
    if (f->front_bytes != 32 + D + state + 8 * indexes || known > 1 || f->body_bytes != 0 ||
        get64(end - 16) != f->at || memcmp(end - 8, "DGRRSEAL", 8) != 0 || next_at != file_bytes) {
        wrong(f, "corrupt", "it is no SEAL at the end of this file");
    }
    if (get64(f->front) != steps || f->step != steps || !same(f->front + 16, state_link))
        wrong(f, "chain", "it seals another run, or another number of steps");
    sealed = 1;
    if (known) {
        for (size_t i = 0; i < TENSORS; i++)
            digests[i] = f->front + 16 + D + i * D;
        root_of(root, digests);
        if (!same(root, f->front + 16 + (TENSORS + 1) * (size_t)D) || (root_known && !same(root, after_root)))
            wrong(f, "chain", "its final state is not that of the last step");
        if (running && end_run == steps && steps > first_run)
            compare_state(steps - 1, digests, "the SEAL");
    }
}

static void read_event(const struct frame *f) {
    uint64_t kind = f->front_bytes < 8 ? 0 : get32(f->front), text = f->front_bytes < 8 ? 0 : get32(f->front + 4);
    uint8_t found[MAX_DIGEST];
    if (f->front_bytes > 65536 || kind + text + 8 != f->front_bytes || f->body_bytes != 0)
        wrong(f, "corrupt", "it is no EVENT");
    digest(found, f->front + 8 + kind, text, "", 0);
    if (kind == 11 && memcmp(f->front + 8, "environment", 11) == 0 && !same(found, file + 72))
        wrong(f, "corrupt", "the environment is not that whose digest is in the header");
}

/* Elements of some tensors of the last step. */
static void read_values(struct frame *f) {
    uint64_t count = f->front_bytes < 8 ? 0 : get32(f->front);
    if (f->front_bytes != 8 + 8 * count || get32(f->front + 4) != 0 || steps == 0 || f->step != steps - 1)
        wrong(f, "corrupt", "it is no VALUES of the step before it");
    for (uint64_t i = 0; i < count; i++) {
        uint32_t tensor = get32(f->front + 8 + 8 * i), what = get32(f->front + 12 + 8 * i);
        const uint8_t *expected = NULL;
        if (what == 0 && tensor < PARAMS) {
            expected = gradient_digests[tensor];
        } else if (what == 1 && tensor < TENSORS) {
            expected = after_digests[tensor];
        }
        if (expected == NULL)
            wrong(f, "corrupt", "it holds a tensor of which the step has no digest");
        check_elements(f, &plan_tensors[tensor], expected);
    }
    check_end(f);
}

/* ---------------------------------------------------------------- STEP */

struct record { /* what the front of a STEP says */
    uint64_t number, loss, threshold, scale;
    uint32_t dtype, flags, micro_batches;
    const uint8_t *input_digest, *hyper, *corrections;
    int due; /* whether the digests of the state are there */
};

static struct record read_step(struct frame *f) {
    struct record r;
    uint8_t found[MAX_DIGEST], before[MAX_DIGEST + 8];
    uint64_t fixed = 2 * (uint64_t)D + 48 + 8 * (HYPERPARAMETERS + CORRECTIONS), words = (PARAMS + 63) / 64, present = 0;
    const uint8_t *at = f->front + D + 16, *bits;
    if (f->front_bytes < fixed + 8 * words || f->step != steps)
        wrong(f, f->step == steps ? "corrupt" : "chain", "expected the next STEP, of these tensors");
    r.number = steps;
    r.dtype = at[0];
    r.flags = at[1];
    r.micro_batches = get32(at + 4);
    r.loss = get64(at + 8);
    r.threshold = get64(at + 16);
    r.scale = get64(at + 24);
    r.input_digest = at + 32;
    r.hyper = f->front + 2 * D + 48;
    r.corrections = r.hyper + 8 * HYPERPARAMETERS;
    r.due = (steps + 1) % state_every == 0;
    bits = f->front + fixed;
    at = bits + 8 * words;
    for (uint64_t i = 0; i < 64 * words; i++) {
        int is_there = bits[i / 8] >> (i % 8) & 1;
        if (i < PARAMS)
            gradient_digests[i] = is_there ? at + D * present : NULL;
        if (is_there && i >= PARAMS)
            wrong(f, "corrupt", "a gradient of no param");
        present += (uint64_t)is_there;
    }
    if (f->front_bytes != fixed + 8 * words + D * (present + (r.due ? TENSORS + 1 : BUFFERS)) || r.flags > 7 ||
        get16(f->front + D + 18) != 0 || (r.dtype != F32 && r.dtype != F64) || r.micro_batches == 0) {
        wrong(f, "corrupt", "it is no STEP of these tensors");
    }
    memcpy(before, state_link, D);
    put(before + D, steps, 8);
    digest(found, before, D + 8, f->front + D + 16, f->front_bytes - D - 16);
    if (!same(found, f->front))
        wrong(f, "chain", "its state chain link does not follow from the step before it");
    memcpy(state_link, found, D);
    at += D * present;
    for (size_t i = 0; i < BUFFERS; i++)
        after_digests[TENSORS - BUFFERS + i] = at + i * D;
    for (size_t i = 0; i < TENSORS - BUFFERS; i++)
        after_digests[i] = r.due ? at + (BUFFERS + i) * D : NULL;
    root_known = r.due;
    if (r.due) {
        root_of(after_root, after_digests);
        if (!same(after_root, at + TENSORS * (size_t)D))
            wrong(f, "chain", "its state root is not that of its digests");
    }
    return r;
}

static void check_step_body(struct frame *f, int due) {
    if (mode == GRADS || mode == FULL) {
        for (size_t i = 0; i < PARAMS; i++) {
            if (gradient_digests[i] != NULL)
                check_elements(f, &plan_tensors[i], gradient_digests[i]);
        }
        for (size_t i = TENSORS - BUFFERS; i < TENSORS; i++)
            check_elements(f, &plan_tensors[i], after_digests[i]);
        for (size_t i = 0; mode == FULL && due && i < TENSORS - BUFFERS; i++)
            check_elements(f, &plan_tensors[i], after_digests[i]);
    }
    check_end(f);
}

/* ---------------------------------------------------------------- running a step */

static FILE *batches;
static void *inputs[MOST_INPUTS + 1], *outputs[MOST_OUTPUTS + 1];

/* Read the batch of the next step: which of the plan's steps it is for, and its arrays. */
static const struct step *read_batch(uint64_t number) {
    uint8_t head[8];
    size_t which = fread(head, 1, 8, batches) == 8 && get32(head + 4) == 0 ? get32(head) : STEPS;
    if (which >= STEPS)
        stop(DIFFERS, "data", "step %llu: its batch is missing from the batches", (unsigned long long)number);
    for (size_t i = 0; i < plan_steps[which].inputs_count; i++) {
        size_t bytes = (size_t)plan_steps[which].inputs[i].bytes;
        if (fread(inputs[i], 1, bytes, batches) != bytes)
            stop(DIFFERS, "data", "step %llu: its batch ends too early", (unsigned long long)number);
    }
    return &plan_steps[which];
}

static void check_batch(const struct record *r, const struct step *s) {
    static uint8_t all[MOST_INPUTS * (4 + MAX_NAME + MAX_DIGEST) + 1];
    uint8_t before[12], found[MAX_DIGEST], *at = all;
    memcpy(before, "DGRRdata", 8);
    put(before + 8, s->inputs_count, 4);
    for (size_t i = 0; i < s->inputs_count; i++) {
        const struct array *a = &s->inputs[i];
        size_t name = strlen(a->name);
        put(at, name, 4);
        memcpy(at + 4, a->name, name);
        at += 4 + name;
        tensor_digest(at, a, inputs[i]);
        at += D;
    }
    digest(found, before, 12, all, (uint64_t)(at - all));
    if (!same(found, r->input_digest))
        stop(DIFFERS, "data", "step %llu: the batch is not the one that was recorded", (unsigned long long)r->number);
}

static void check_settings(const struct record *r) {
    const char *what = NULL;
    for (size_t i = 0; i < HYPERPARAMETERS; i++) {
        if (plan_hyper[i].rate == 0 && get64(r->hyper + 8 * i) != plan_hyper[i].bits)
            what = "a hyperparameter";
    }
    if (r->micro_batches != MICRO_BATCHES || (r->flags & 4) != TREE)
        what = "the micro-batches";
    if ((r->flags & 1) != CLIPPED || r->threshold != CLIP_NORM)
        what = "the clipping";
    if (what != NULL) {
        stop(DIFFERS, "update", "step %llu: %s differs from what the compiled step does", (unsigned long long)r->number,
             what);
    }
}

/* Hold what was computed against the record, and name what differs first. */
static void compare_step(const struct record *r, const struct step *s) {
    uint8_t found[MAX_DIGEST], bits[8] = {0};
    unsigned long long n = r->number;
    size_t corrections = 0;
    memcpy(bits, outputs[0], r->dtype == F32 ? 4 : 8);
    canonical(bits, r->dtype, r->dtype == F32 ? 4 : 8);
    if (r->dtype != LOSS_DTYPE || get64(bits) != r->loss) {
        stop(DIFFERS, "gradient", "step %llu: the loss has other bits: computed %016llx, recorded %016llx", n,
             (unsigned long long)get64(bits), (unsigned long long)r->loss);
    }
    for (size_t i = 0; i < PARAMS; i++) {
        int is_there = s->gradients[i] != NOWHERE;
        if (is_there && gradient_digests[i] != NULL) {
            canonical(outputs[s->gradients[i]], plan_tensors[i].dtype, plan_tensors[i].bytes);
            tensor_digest(found, &plan_tensors[i], outputs[s->gradients[i]]);
        }
        if (is_there != (gradient_digests[i] != NULL) || (is_there && !same(found, gradient_digests[i])))
            stop(DIFFERS, "gradient", "step %llu: the gradient of %s differs", n, plan_tensors[i].name);
    }
    for (size_t i = TENSORS - BUFFERS; i < TENSORS; i++) {
        tensor_digest(found, &plan_tensors[i], tensors[i]);
        if (!same(found, after_digests[i]))
            stop(DIFFERS, "gradient", "step %llu: %s after the step differs", n, plan_tensors[i].name);
    }
    if (s->scale != NOWHERE ? memcmp((const uint8_t *)outputs[s->scale] + 8, &r->scale, 8) != 0 : r->scale != 0)
        stop(DIFFERS, "gradient", "step %llu: the scale of clipping differs", n);
    for (size_t i = 0; i < CORRECTION_TENSORS; i++) {
        size_t t = plan_corrections[i];
        if (memcmp(tensors[t], r->corrections + corrections, (size_t)plan_tensors[t].bytes) != 0)
            stop(DIFFERS, "update", "step %llu: %s differs from the bias corrections", n, plan_tensors[t].name);
        corrections += (size_t)plan_tensors[t].bytes;
    }
    if (r->due)
        compare_state(r->number, after_digests, "the record");
}

static void run_step(const struct record *r) {
    static uint8_t *state, *arena;
    const struct step *s = read_batch(r->number);
    int code;
    if (r->number < first_run || r->number >= end_run)
        return;
    if (state == NULL) {
        state = aligned_room(MOST_STATE);
        arena = aligned_room(MOST_ARENA);
    }
    check_batch(r, s);
    check_settings(r);
    s->start(state, (size_t)s->state_bytes);
    for (size_t i = 0; i < TENSORS; i++) {
        if (s->tensors[i] != NOWHERE)
            memcpy(state + s->tensors[i], tensors[i], (size_t)plan_tensors[i].bytes);
    }
    for (size_t i = 0; i < HYPERPARAMETERS; i++) {
        if (plan_hyper[i].rate != 0 && s->rates[plan_hyper[i].rate - 1] != NOWHERE)
            memcpy(state + s->rates[plan_hyper[i].rate - 1], r->hyper + 8 * i, 8);
    }
    code = s->run(state, (const void *const *)inputs, outputs, arena);
    if (code != 0)
        stop(DIFFERS, "gradient", "step %llu: it does not run: %s", (unsigned long long)r->number, s->messages[code - 1]);
    for (size_t i = 0; i < TENSORS; i++) {
        if (s->tensors[i] != NOWHERE) {
            memcpy(tensors[i], state + s->tensors[i], (size_t)plan_tensors[i].bytes);
            canonical(tensors[i], plan_tensors[i].dtype, plan_tensors[i].bytes);
        }
    }
    compare_step(r, s);
}

/* ---------------------------------------------------------------- the whole file */

static void walk(void) {
    struct frame f;
    struct record r;
    steps = 0;
    sealed = 0;
    root_known = 0;
    read_header();
    for (uint64_t count = 0; next_at < file_bytes; count++) {
        f = read_frame();
        if (sealed || (count == 1 && f.type != KEYFRAME) || (count > 0 && f.type == SCHEMA))
            wrong(&f, "corrupt", "it stands where no such frame may stand");
        if (count == 0) {
            read_schema(&f);
        } else if (f.type == KEYFRAME) {
            read_keyframe(&f);
        } else if (f.type == STEP) {
            r = read_step(&f);
            check_step_body(&f, r.due);
            if (running)
                run_step(&r);
            steps++;
        } else if (f.type == SEAL) {
            read_seal(&f);
        } else if (f.type == EVENT) {
            read_event(&f);
        } else if (f.type == VALUES) {
            read_values(&f);
        } else if (f.type == COMMIT && (f.front_bytes != 16 || get64(f.front) != steps || get64(f.front + 8) != f.at)) {
            wrong(&f, "corrupt", "it commits another number of steps or bytes");
        } else if (f.type < SKIPPED && f.type != COMMIT && f.type != INDEX) {
            wrong(&f, "unsupported", "no frame of this type is known");
        } else if (f.body_bytes != 0) {
            wrong(&f, "corrupt", "a body that no digest is held against");
        }
    }
    if (next_seq < 2)
        stop(UNUSABLE, "torn-tail", "the file ends before its first state");
}

static void read_file(const char *path) {
    FILE *f = fopen(path, "rb");
    uint8_t *data = NULL;
    uint64_t held = 0, got = 1;
    if (f == NULL)
        stop(IO, "io", "%s cannot be opened", path);
    for (; got > 0; file_bytes += got) {
        if (file_bytes == held) {
            uint8_t *more = room(held = 2 * held + 65536);
            memcpy(more, data == NULL ? more : data, (size_t)file_bytes);
            free(data);
            data = more;
        }
        got = fread(data + file_bytes, 1, (size_t)(held - file_bytes), f);
    }
    if (ferror(f))
        stop(IO, "io", "%s cannot be read", path);
    fclose(f);
    file = data;
}

static uint64_t number(const char *text) {
    char *end = NULL;
    unsigned long long value = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != 0)
        stop(USAGE, "usage", "expected the number of a step, got %s", text);
    return value;
}

int main(int argc, char **argv) {
    uint64_t last = UINT64_MAX;
    if (argc < 3 || argc % 2 == 0)
        stop(USAGE, "usage", "judge TRACE BATCHES [--from STEP] [--to STEP]");
    for (int i = 3; i < argc; i += 2) {
        if (strcmp(argv[i], "--from") == 0) {
            from = number(argv[i + 1]);
        } else if (strcmp(argv[i], "--to") == 0) {
            last = number(argv[i + 1]);
        } else {
            stop(USAGE, "usage", "expected --from or --to, got %s", argv[i]);
        }
    }
    read_file(argv[1]);
    walk();
    end_run = last < steps ? last + 1 : steps;
    if (steps == 0)
        stop(UNPROVEN, "unproven", "the trace has no steps");
    if (from > last || from >= steps)
        stop(USAGE, "usage", "there are no such steps: the trace has %llu", (unsigned long long)steps);
    if (get32(file + 56) != NUMERICS) {
        stop(UNPROVEN, "numerics", "recorded under numerics version %u, the compiled step has %u",
             (unsigned)get32(file + 56), (unsigned)NUMERICS);
    }
    if (get64(file + 40) != SEED)
        stop(DIFFERS, "data", "the seed of the run is not that of the compiled step");
    if (mode == BARE)
        stop(UNPROVEN, "unproven", "a trace of record mode 'bare' holds no state to begin with");
    batches = fopen(argv[2], "rb");
    if (batches == NULL)
        stop(UNPROVEN, "unproven", "the file is whole, but without its batches no step can be run: %s", argv[2]);
    for (size_t i = 0; i < TENSORS; i++)
        tensors[i] = room(plan_tensors[i].bytes);
    for (size_t i = 0; i < MOST_INPUTS; i++)
        inputs[i] = room(MOST_INPUT);
    for (size_t i = 0; i < MOST_OUTPUTS; i++)
        outputs[i] = room(MOST_OUTPUT);
    running = 1;
    walk();
    if (!sealed)
        stop(UNUSABLE, "unsealed", "what is recorded agrees, but the run was not finished");
    if (checked < end_run)
        stop(UNPROVEN, "unproven", "no state is recorded after step %llu", (unsigned long long)end_run - 1);
    stop(OK, "ok", "steps %llu to %llu are proven: data, losses, gradients and states", (unsigned long long)first_run,
         (unsigned long long)end_run - 1);
    return 0;
}
