/* judge: recomputes a recorded training run and says whether the record is right.
 *
 *     judge TRACE BATCHES [--from STEP] [--to STEP]
 *
 * TRACE is a file of the format DGRR, version 2 (docs/trace_format.md). BATCHES holds what each step was trained on.
 * plan.h says what the tensors of the run are, and how its training step is called, which is compiled code beside this
 * file. bytes.h has CRC-32, and xxh3.h or sha256.h the digest of the run. Nothing else is used but the C library.
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
#if __STDC_HOSTED__
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#else
#include "alone.h" /* what is used of these */
#endif

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
    int (*run)(void *state, void *const *in, void *const *out, void *arena);
    const char *const *messages;
    uint64_t state_bytes, arena_bytes;
    const int64_t *tensors; /* where each tensor stands in the state, or NOWHERE: the step does not touch it */
    const int64_t *rates;   /* where each rate that changes stands */
    const struct array *inputs;
    size_t inputs_count;
    const int *gradients; /* of each param: which output is its gradient, or NOWHERE; output 0 is the loss */
    int scale;            /* which output is the norm of the gradients and the scale of clipping, or NOWHERE */
};

#include "bytes.h"
#include "plan.h" /* the digest, the numbers in capitals that are not defined here, and the tables plan_… */

/* ---------------------------------------------------------------- verdicts */

static const struct verdict {
    const char *word;
    int code; /* of the program's end */
} OK = {"ok", 0}, USAGE = {"usage", 1}, IO = {"io", 2}, CORRUPT = {"corrupt", 3}, TORN_TAIL = {"torn-tail", 3},
  CHAIN = {"chain", 3}, UNSUPPORTED = {"unsupported", 3}, UNSEALED = {"unsealed", 3}, DATA = {"data", 5},
  GRADIENT = {"gradient", 5}, UPDATE = {"update", 5}, OTHER_NUMERICS = {"numerics", 6}, UNPROVEN = {"unproven", 6};

static void stop(struct verdict verdict, const char *why, ...) {
    va_list given;
    va_start(given, why);
    printf("%s: ", verdict.word);
    vprintf(why, given);
    printf("\n");
    va_end(given);
    exit(verdict.code);
}

/* What must be so is so, or the answer is a verdict and why. */
#define must(is, ...) ((is) ? (void)0 : stop(__VA_ARGS__))

static void *room(uint64_t bytes) { /* zeros, at a multiple of 64, as the step needs its state and arena */
    unsigned char *made = bytes < SIZE_MAX - 64 ? calloc(1, (size_t)bytes + 64) : NULL;
    must(made != NULL, UNPROVEN, "there is not enough memory: %" PRIu64 " bytes are needed", bytes);
    return made + (64 - (uintptr_t)made % 64);
}

/* ---------------------------------------------------------------- digests of the trace */

static int all_zero(const uint8_t *at, uint64_t bytes) {
    while (bytes > 0 && at[bytes - 1] == 0)
        bytes--;
    return bytes == 0;
}

enum { SYNC = 0x465247da, HEADER = 256, HEAD = 48, MORE = 1 };
enum { SCHEMA = 1, KEYFRAME = 2, STEP = 3, COMMIT = 4, INDEX = 5, SEAL = 6, EVENT = 7, SKIPPED = 128, VALUES = 130 };
enum { GRADS = 2, FULL = 3, BARE = 4 }; /* record modes */

static const uint8_t *file; /* the whole trace */
static uint64_t file_bytes;
static uint8_t *joined, *parts; /* room for what is digested, and for the body of a frame of several parts */
static uint32_t mode, state_every;
static uint64_t largest_payload;

/* Digest of two pieces, one behind the other. */
static void digest(uint8_t *out, const void *a, uint64_t a_bytes, const void *b, uint64_t b_bytes) {
    memcpy(joined, a, (size_t)a_bytes);
    memcpy(joined + a_bytes, b, (size_t)b_bytes);
    DIGEST(out, joined, a_bytes + b_bytes);
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
        if ((get64(elements + at) & UINT64_C(0x7FFFFFFFFFFFFFFF)) > UINT64_C(0x7FF0000000000000))
            put(elements + at, UINT64_C(0x7FF8000000000000), 8);
    }
}

/* ---------------------------------------------------------------- frames */

struct frame {
    uint64_t at, step; /* where it begins, and the step that its head names */
    uint32_t type, flags, part, front_bytes;
    const uint8_t *front, *body; /* the body of all its parts */
    uint64_t body_bytes;
};

static uint64_t next_at, next_seq; /* where the next frame begins, and its number */
static uint8_t chain[D];           /* the file chain behind the last frame */

static uint64_t pad8(uint64_t n) { return (n + 7) / 8 * 8; }

static uint32_t head_crc(const uint8_t *head) { return crc_of(crc_of(0, file + 16, 16), head, 44); }

/* Whether a whole COMMIT or SEAL stands behind a place: what is before it had reached the disk. */
static int is_committed(uint64_t at) {
    uint64_t read = 0;
    for (; file_bytes >= HEAD && at <= file_bytes - HEAD && read / 8 <= file_bytes; at += 8) {
        const uint8_t *head = file + at;
        uint64_t front = get32(head + 28);
        if (get32(head) == SYNC && (head[4] == COMMIT || head[4] == SEAL) && head_crc(head) == get32(head + 44) &&
            front <= file_bytes - at - HEAD) {
            if (crc_of(0, head + HEAD, front) == get32(head + 40))
                return 1;
            read += front;
        }
    }
    return read / 8 > file_bytes; /* no writer leaves so many heads without a front */
}

static void whole(int is, uint64_t at, const char *what) {
    must(is, is_committed(at + 8) ? CORRUPT : TORN_TAIL, "the frame at byte %" PRIu64 " is not whole: %s", at, what);
}

static void expect(int is, const struct frame *f, struct verdict verdict, const char *what) {
    must(is, verdict, "the frame at byte %" PRIu64 " (type %" PRIu32 ", step %" PRIu64 "): %s", f->at, f->type,
         f->step, what);
}

static void agree(int is, struct verdict verdict, uint64_t step, const char *name, const char *what) {
    must(is, verdict, "step %" PRIu64 ": %s%s", step, name, what);
}

/* Read one part of a frame, and check it but for its body. */
static struct frame read_part(void) {
    struct frame f = {0};
    const uint8_t *head = file + next_at;
    uint64_t left = file_bytes - next_at, payload, padded;
    uint8_t link[D];
    whole(left >= HEAD && get32(head) == SYNC && get32(head + 44) == head_crc(head), next_at, "its head");
    f.at = next_at;
    f.type = head[4];
    f.flags = head[5];
    f.part = get16(head + 6);
    f.step = get64(head + 16);
    payload = get32(head + 24);
    padded = pad8(payload);
    f.front_bytes = get32(head + 28);
    expect(get64(head + 8) == next_seq && memcmp(head + 32, chain, 8) == 0, &f, CHAIN,
           "it does not go on behind the frame before it");
    expect(f.flags <= MORE && f.front_bytes <= payload && payload <= largest_payload, &f, CORRUPT,
           "its head says what no writer says");
    whole(left - HEAD >= padded + D, f.at, "the file ends in it");
    f.front = head + HEAD;
    f.body = f.front + f.front_bytes;
    f.body_bytes = payload - f.front_bytes;
    whole(crc_of(0, f.front, f.front_bytes) == get32(head + 40), f.at, "the CRC of its front");
    whole(all_zero(f.front + payload, padded - payload), f.at, "its padding");
    memcpy(link, chain, D);
    digest(chain, link, D, head, HEAD + (uint64_t)f.front_bytes);
    whole(same(chain, f.front + padded), f.at, "its chain digest");
    next_at += HEAD + padded + D;
    next_seq++;
    return f;
}

/* Read a frame with all its parts. Of several, `parts` holds the body until the next frame. */
static struct frame read_frame(void) {
    struct frame f = read_part(), part = f, before;
    expect(f.part == 0, &f, CHAIN, "a part without those before it");
    if (f.flags & MORE) {
        memcpy(parts, f.body, (size_t)f.body_bytes);
        f.body = parts;
    }
    while (part.flags & MORE) {
        expect(part.front_bytes + part.body_bytes == largest_payload, &part, CORRUPT,
               "a part that is shorter than the largest payload, and not the last");
        before = part;
        part = read_part();
        expect(part.type == f.type && part.step == f.step && part.part == before.part + 1, &part, CHAIN,
               "it stands between the parts of another frame");
        expect(part.front_bytes == 0 && part.body_bytes > 0, &part, CORRUPT, "a later part has a front, or nothing");
        memcpy(parts + f.body_bytes, part.body, (size_t)part.body_bytes);
        f.body_bytes += part.body_bytes;
    }
    return f;
}

/* ---------------------------------------------------------------- what is known while the file is read */

static uint64_t steps;                      /* so many STEP frames were read */
static uint64_t first_run, end_run, from;   /* steps to run: from a keyframe to before another */
static int running;                         /* whether this is the second pass, and the state is known */
static uint64_t checked;                    /* behind so many steps the state was last found to be the recorded one */
static int sealed;
static uint8_t state_link[D];      /* S[k-1] of the state chain */
static uint8_t schema_digest[D];
static uint8_t after_root[D];      /* the state root behind the last step, if `root_known` */
static int root_known;
static const uint8_t *gradient_digests[PARAMS + 1], *after_digests[TENSORS + 1]; /* in the last STEP, or NULL */
static uint8_t *tensors[TENSORS + 1];       /* the state that is computed */

/* The state root of recorded digests, in the order of the schema. */
static void root_of(uint8_t *out, const uint8_t *const *digests) {
    static uint8_t all[TENSORS * D + 1];
    for (size_t i = 0; i < TENSORS; i++)
        memcpy(all + i * D, digests[i], D);
    digest(out, "DGRRroot", 8, all, (uint64_t)TENSORS * D);
}

/* Read the digests of a state and their root, which may not be another than that behind the last step. */
static void read_root(const struct frame *f, const uint8_t *at, const uint8_t **digests, uint8_t *root) {
    for (size_t i = 0; i < TENSORS; i++)
        digests[i] = at + i * D;
    root_of(root, digests);
    expect(same(root, at + TENSORS * (size_t)D) && (!root_known || same(root, after_root)), f, CHAIN,
           "its state is not that of the step before it");
}

/* Take the next tensor from a body, and hold its elements against a digest; without one it is not there. */
static void check_elements(struct frame *f, size_t tensor, const uint8_t *expected) {
    const struct array *a = &plan_tensors[tensor];
    uint8_t found[D];
    if (expected == NULL)
        return;
    expect(f->body_bytes >= a->bytes, f, CORRUPT, "its body is too short");
    tensor_digest(found, a, f->body);
    whole(same(found, expected), f->at, a->name);
    f->body += a->bytes;
    f->body_bytes -= a->bytes;
}

/* Hold a computed tensor against a digest that is recorded of it. */
static void compare(size_t tensor, const uint8_t *elements, const uint8_t *recorded, struct verdict verdict, uint64_t step,
                    const char *what) {
    uint8_t found[D];
    tensor_digest(found, &plan_tensors[tensor], elements);
    agree(same(found, recorded), verdict, step, plan_tensors[tensor].name, what);
}

static void compare_state(uint64_t step, const uint8_t *const *digests, const char *what) {
    for (size_t i = 0; i < TENSORS; i++)
        compare(i, tensors[i], digests[i], UPDATE, step, what);
    checked = step + 1;
}

/* ---------------------------------------------------------------- header, SCHEMA, KEYFRAME, SEAL and small frames */

static void read_header(void) {
    int begins = memcmp(file, "DGRR", file_bytes < 4 ? (size_t)file_bytes : 4) == 0;
    must(begins, CORRUPT, "this is no trace: it does not begin with DGRR");
    must(file_bytes >= HEADER, TORN_TAIL, "the file ends before its header does");
    must(get16(file + 4) == 2, UNSUPPORTED, "version %" PRIu32 " of the format; this is a reader of version 2",
         get16(file + 4));
    must(crc_of(0, file, 252) == get32(file + 252), CORRUPT, "the CRC of the header");
    must((get16(file + 12) == 2 || get16(file + 12) == 3) && file[48] == DIGEST_CODE, UNSUPPORTED,
         "a reader of version %" PRIu32 " for digest %d is needed; this one is for digest %d", get16(file + 12), file[48],
         DIGEST_CODE);
    mode = file[49];
    state_every = get32(file + 52);
    largest_payload = get64(file + 64);
    must(get16(file + 6) == 0 && get32(file + 8) == HEADER && get16(file + 14) == 8 && mode >= 1 && mode <= BARE &&
             file[50] <= 7 && file[51] == 0 && state_every > 0 && get32(file + 60) == 0 && largest_payload % 8 == 0 &&
             largest_payload >= 4096 && largest_payload <= 1u << 30 && all_zero(file + 176, 76) &&
             all_zero(file + 72 + D, 32 - D) && all_zero(file + 104 + D, 32 - D) && all_zero(file + 136 + D, 32 - D),
         CORRUPT, "the header says what no writer says");
    next_at = HEADER;
    next_seq = 0;
    digest(chain, "DGRRfile", 8, file, HEADER);
}

static void read_schema(const struct frame *f) {
    expect(f->step == 0 && f->front_bytes > 8, f, CORRUPT, "it is no SCHEMA");
    digest(schema_digest, f->front, f->front_bytes, "", 0);
    must(same(schema_digest, plan_schema), UNPROVEN,
         "its tensors and rules are not those of the trace for which this judge was made");
}

static void read_keyframe(struct frame *f) {
    const uint8_t *digests[TENSORS + 1];
    uint8_t both[2 * D], *root = both + D;
    uint64_t opaque = f->front_bytes < 8 ? 0 : (uint64_t)get32(f->front) + get32(f->front + 4), end = pad8(8 + opaque);
    expect(f->front_bytes >= 8 && opaque <= 65536 && f->front_bytes == end + (TENSORS + 1) * (uint64_t)D &&
           f->step % state_every == 0 && all_zero(f->front + 8 + opaque, end - 8 - opaque),
           f, CORRUPT, "it is no KEYFRAME of these tensors");
    expect(f->step == steps && (steps == 0 || root_known), f, CHAIN, "it does not stand behind its step");
    read_root(f, f->front + end, digests, root);
    for (size_t i = 0; mode != BARE && i < TENSORS; i++) {
        check_elements(f, i, digests[i]);
        if (running && steps == first_run)
            memcpy(tensors[i], f->body - plan_tensors[i].bytes, (size_t)plan_tensors[i].bytes);
    }
    if (steps == 0) {
        memcpy(both, schema_digest, D);
        digest(state_link, "DGRRrun2", 8, both, 2 * (uint64_t)D);
    }
    if (!running && steps <= from)
        first_run = steps;
    if (running && steps > first_run && steps <= end_run)
        compare_state(steps - 1, digests, " after the step is not what the KEYFRAME behind it says");
}

static void read_seal(const struct frame *f) {
    const uint8_t *digests[TENSORS + 1], *end = f->front + f->front_bytes;
    uint8_t root[D];
    uint64_t known = f->front_bytes < 16 ? 2 : get32(f->front + 8), indexes = known > 1 ? 0 : get32(f->front + 12);
    expect(known <= 1 && f->front_bytes == 32 + D + known * (TENSORS + 1) * D + 8 * indexes && get64(end - 16) == f->at &&
           memcmp(end - 8, "DGRRSEAL", 8) == 0 && next_at == file_bytes,
           f, CORRUPT, "it is no SEAL at the end of this file");
    expect(get64(f->front) == steps && f->step == steps && same(f->front + 16, state_link), f, CHAIN,
           "it seals another run, or another number of steps");
    sealed = 1;
    if (known) {
        read_root(f, f->front + 16 + D, digests, root);
        if (running && end_run == steps && steps > first_run)
            compare_state(steps - 1, digests, " after the step is not what the SEAL says");
    }
}

/* Elements of some tensors of the last step. */
static void read_values(struct frame *f) {
    uint64_t count = f->front_bytes < 8 ? 0 : get32(f->front);
    expect(f->front_bytes == 8 + 8 * count && get32(f->front + 4) == 0 && steps > 0 && f->step == steps - 1, f, CORRUPT,
           "it is no VALUES of the step before it");
    for (uint64_t i = 0; i < count; i++) {
        uint32_t tensor = get32(f->front + 8 + 8 * i), what = get32(f->front + 12 + 8 * i);
        const uint8_t *expected = what == 0 && tensor < PARAMS    ? gradient_digests[tensor]
                                  : what == 1 && tensor < TENSORS ? after_digests[tensor]
                                                                  : NULL;
        expect(expected != NULL, f, CORRUPT, "it holds a tensor of which the step has no digest");
        check_elements(f, tensor, expected);
    }
}

/* ---------------------------------------------------------------- STEP */

struct record { /* what the front of a STEP says */
    uint64_t number, loss, threshold, scale;
    uint32_t dtype, flags, micro_batches;
    const uint8_t *input_digest, *hyper, *corrections;
    int due; /* whether the digests of the state are there */
};

/* Note the gradients' digests, which stand behind a bit for each param that says whether it has one; how many there are. */
static uint64_t read_gradients(const struct frame *f, const uint8_t *bits, const uint8_t *at) {
    uint64_t present = 0;
    for (uint64_t i = 0; i < (uint64_t)(at - bits) * 8; i++) {
        int is_there = bits[i / 8] >> (i % 8) & 1;
        expect(!is_there || i < PARAMS, f, CORRUPT, "a gradient of no param");
        if (i < PARAMS)
            gradient_digests[i] = is_there ? at + D * present : NULL;
        present += (uint64_t)is_there;
    }
    return present;
}

/* Behind a step the model state comes first, and where it is due the rest. */
static size_t after_tensor(size_t place) { return (place + TENSORS - BUFFERS) % TENSORS; }

/* Note the digests of the state behind a step, and their root. */
static void read_after(const struct frame *f, const uint8_t *at, int due) {
    for (size_t i = 0; i < TENSORS; i++)
        after_digests[after_tensor(i)] = i < BUFFERS || due ? at + i * D : NULL;
    root_known = due;
    if (due) {
        root_of(after_root, after_digests);
        expect(same(after_root, at + TENSORS * (size_t)D), f, CHAIN, "its state root is not that of its digests");
    }
}

static struct record read_step(const struct frame *f) {
    struct record r;
    uint8_t link[D + 8];
    uint64_t fixed = 2 * D + 48 + 8 * (HYPERPARAMETERS + CORRECTIONS), words = (PARAMS + 63) / 64, present;
    const uint8_t *at = f->front + D + 16, *bits = f->front + fixed, *digests = bits + 8 * words;
    expect(f->step == steps, f, CHAIN, "expected the next STEP");
    expect(f->front_bytes >= fixed + 8 * words, f, CORRUPT, "expected a STEP of these tensors");
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
    present = read_gradients(f, bits, digests);
    expect(digests + D * (present + (r.due ? TENSORS + 1 : BUFFERS)) == f->front + f->front_bytes && r.flags <= 7 &&
           get16(at + 2) == 0 && (r.dtype == F32 || r.dtype == F64) && r.micro_batches > 0,
           f, CORRUPT, "it is no STEP of these tensors");
    memcpy(link, state_link, D);
    put(link + D, steps, 8);
    digest(state_link, link, D + 8, at, f->front_bytes - D - 16);
    expect(same(state_link, f->front), f, CHAIN, "its state chain link does not follow from the step before it");
    read_after(f, digests + D * present, r.due);
    return r;
}

static void check_step_body(struct frame *f) {
    size_t gradients = mode == GRADS || mode == FULL ? PARAMS : 0;
    size_t after = mode == FULL ? TENSORS : mode == GRADS ? BUFFERS : 0;
    for (size_t i = 0; i < gradients; i++)
        check_elements(f, i, gradient_digests[i]);
    for (size_t i = 0; i < after; i++)
        check_elements(f, after_tensor(i), after_digests[after_tensor(i)]);
}

/* ---------------------------------------------------------------- running a step */

static FILE *batches;
static void *inputs[MOST_INPUTS + 1], *outputs[MOST_OUTPUTS + 1], *arena;
static uint8_t *state;

/* Read the batch of the next step: which of the plan's steps it is for, and its arrays. */
static const struct step *read_batch(uint64_t number) {
    uint8_t head[8];
    size_t which = fread(head, 1, 8, batches) == 8 && get32(head + 4) == 0 ? get32(head) : STEPS;
    agree(which < STEPS, DATA, number, "its batch", " is missing from the batches");
    for (size_t i = 0; i < plan_steps[which].inputs_count; i++) {
        size_t bytes = (size_t)plan_steps[which].inputs[i].bytes;
        agree(fread(inputs[i], 1, bytes, batches) == bytes, DATA, number, "its batch", " ends too early");
    }
    return &plan_steps[which];
}

static void check_batch(const struct record *r, const struct step *s) {
    static uint8_t all[MOST_INPUTS * (4 + MAX_NAME + D) + 1];
    uint8_t before[12] = "DGRRdata", found[D], *at = all;
    put(before + 8, s->inputs_count, 4);
    for (size_t i = 0; i < s->inputs_count; i++) {
        const struct array *a = &s->inputs[i];
        size_t name = strlen(a->name);
        put(at, name, 4);
        memcpy(at + 4, a->name, name);
        tensor_digest(at + 4 + name, a, inputs[i]);
        at += 4 + name + D;
    }
    digest(found, before, 12, all, (uint64_t)(at - all));
    agree(same(found, r->input_digest), DATA, r->number, "the batch", " is not the one that was recorded");
}

static void check_settings(const struct record *r) {
    const char *what = " differs from what the compiled step does";
    for (size_t i = 0; i < HYPERPARAMETERS; i++) {
        agree(plan_hyper[i].rate != 0 || get64(r->hyper + 8 * i) == plan_hyper[i].bits, UPDATE, r->number,
              "a hyperparameter", what);
    }
    agree(r->micro_batches == MICRO_BATCHES && (r->flags & 4) == TREE, UPDATE, r->number, "the way of micro-batches", what);
    agree((r->flags & 1) == CLIPPED && r->threshold == CLIP_NORM, UPDATE, r->number, "the clipping", what);
}

/* Hold what was computed against the record, and name what differs first. */
static void compare_step(const struct record *r, const struct step *s) {
    uint8_t bits[8] = {0}, no_scale[8] = {0};
    const uint8_t *corrections = r->corrections;
    memcpy(bits, outputs[0], LOSS_DTYPE == F32 ? 4 : 8);
    canonical(bits, LOSS_DTYPE, LOSS_DTYPE == F32 ? 4 : 8);
    must(r->dtype == LOSS_DTYPE && get64(bits) == r->loss, GRADIENT,
         "step %" PRIu64 ": the loss has other bits: computed %016" PRIx64 ", recorded %016" PRIx64, r->number,
         get64(bits), r->loss);
    for (size_t i = 0; i < PARAMS; i++) {
        int is_there = s->gradients[i] != NOWHERE;
        agree(is_there == (gradient_digests[i] != NULL), GRADIENT, r->number, plan_tensors[i].name,
              " has a gradient in one of record and computation");
        if (is_there) {
            canonical(outputs[s->gradients[i]], plan_tensors[i].dtype, plan_tensors[i].bytes);
            compare(i, outputs[s->gradients[i]], gradient_digests[i], GRADIENT, r->number, ": its gradient differs");
        }
    }
    for (size_t i = TENSORS - BUFFERS; i < TENSORS; i++)
        compare(i, tensors[i], after_digests[i], GRADIENT, r->number, " after the step differs");
    agree(get64(s->scale == NOWHERE ? no_scale : (const uint8_t *)outputs[s->scale] + 8) == r->scale, GRADIENT, r->number,
          "the scale of clipping", " differs");
    for (size_t i = 0; i < CORRECTION_TENSORS; i++) {
        const struct array *a = &plan_tensors[plan_corrections[i]];
        agree(memcmp(tensors[plan_corrections[i]], corrections, (size_t)a->bytes) == 0, UPDATE, r->number, a->name,
              " differs from the bias corrections");
        corrections += a->bytes;
    }
    if (r->due)
        compare_state(r->number, after_digests, " after the step is not what the record says");
}

static void run_step(const struct record *r) {
    const struct step *s = read_batch(r->number);
    int code;
    if (r->number < first_run || r->number >= end_run)
        return;
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
    code = s->run(state, inputs, outputs, arena);
    agree(code == 0, GRADIENT, r->number, "it does not run: ", code == 0 ? "" : s->messages[code - 1]);
    for (size_t i = 0; i < TENSORS; i++) {
        if (s->tensors[i] != NOWHERE) {
            memcpy(tensors[i], state + s->tensors[i], (size_t)plan_tensors[i].bytes);
            canonical(tensors[i], plan_tensors[i].dtype, plan_tensors[i].bytes);
        }
    }
    compare_step(r, s);
}

/* ---------------------------------------------------------------- the whole file */

static void read_by_type(struct frame *f) {
    switch (f->type) {
    case SCHEMA: read_schema(f); break;
    case KEYFRAME: read_keyframe(f); break;
    case COMMIT:
        expect(f->front_bytes == 16 && get64(f->front) == steps && get64(f->front + 8) == f->at, f, CORRUPT,
               "it commits another number of steps or bytes");
        break;
    case SEAL: read_seal(f); break;
    case VALUES: read_values(f); break;
    case INDEX:
    case EVENT: break;
    default: expect(f->type >= SKIPPED, f, UNSUPPORTED, "no frame of this type is known");
    }
}

static void walk(void) {
    struct frame f;
    struct record r;
    steps = 0;
    sealed = 0;
    root_known = 0;
    read_header();
    for (uint64_t count = 0; next_at < file_bytes; count++) {
        f = read_frame();
        expect(!sealed && (count == 0) == (f.type == SCHEMA) && (count != 1 || f.type == KEYFRAME), &f, CORRUPT,
               "it stands where no such frame may stand");
        if (f.type == STEP) {
            r = read_step(&f);
            check_step_body(&f);
            if (running)
                run_step(&r);
            steps++;
        } else {
            read_by_type(&f);
        }
        expect(f.body_bytes == 0, &f, CORRUPT, "a body that no digest is held against");
    }
    must(next_seq >= 2, TORN_TAIL, "the file ends before its first state");
}

static void read_file(const char *path) {
    FILE *f = fopen(path, "rb");
    long end = f != NULL && fseek(f, 0, SEEK_END) == 0 ? ftell(f) : -1;
    uint8_t *data;
    must(end >= 0 && (uint64_t)end < SIZE_MAX / 2, IO, "%s cannot be read", path);
    file_bytes = (uint64_t)end;
    data = room(file_bytes);
    rewind(f);
    must(fread(data, 1, (size_t)file_bytes, f) == file_bytes, IO, "%s cannot be read", path);
    fclose(f);
    file = data;
    joined = room(file_bytes + MOST_INPUT + MOST_OUTPUT + MOST_INPUTS * (4 + MAX_NAME + D) + TENSORS * D + 256);
    parts = room(file_bytes);
}

static void make_room(void) {
    for (size_t i = 0; i < TENSORS; i++)
        tensors[i] = room(plan_tensors[i].bytes);
    for (size_t i = 0; i < MOST_INPUTS; i++)
        inputs[i] = room(MOST_INPUT);
    for (size_t i = 0; i < MOST_OUTPUTS; i++)
        outputs[i] = room(MOST_OUTPUT);
    state = room(MOST_STATE);
    arena = room(MOST_ARENA);
}

static uint64_t number(const char *text) {
    uint64_t value = 0;
    for (size_t i = 0; i == 0 || text[i] != 0; i++) {
        must(text[i] >= '0' && text[i] <= '9' && i < 19, USAGE, "expected the number of a step, got %s", text);
        value = 10 * value + (uint64_t)(text[i] - '0');
    }
    return value;
}

int main(int argc, char **argv) {
    uint64_t last = UINT64_MAX;
    must(argc >= 3 && argc % 2 == 1, USAGE, "judge TRACE BATCHES [--from STEP] [--to STEP]");
    for (int i = 3; i < argc; i += 2) {
        int is_from = strcmp(argv[i], "--from") == 0;
        must(is_from || strcmp(argv[i], "--to") == 0, USAGE, "expected --from or --to, got %s", argv[i]);
        *(is_from ? &from : &last) = number(argv[i + 1]);
    }
    read_file(argv[1]);
    walk();
    end_run = last < steps ? last + 1 : steps;
    must(steps > 0, UNPROVEN, "the trace has no steps");
    must(from <= last && from < steps, USAGE, "there are no such steps: the trace has %" PRIu64, steps);
    must(get32(file + 56) == NUMERICS, OTHER_NUMERICS,
         "recorded under numerics version %" PRIu32 ", the compiled step has %d", get32(file + 56), NUMERICS);
    must(get64(file + 40) == SEED, DATA, "the seed of the run is not that of the compiled step");
    must(mode != BARE, UNPROVEN, "a trace of record mode 'bare' holds no state to begin with");
    batches = fopen(argv[2], "rb");
    must(batches != NULL, UNPROVEN, "the file is whole, but without its batches no step can be run: %s", argv[2]);
    make_room();
    running = 1;
    walk();
    must(sealed, UNSEALED, "what is recorded agrees, but the run was not finished");
    must(checked >= end_run, UNPROVEN, "no state is recorded after step %" PRIu64, end_run - 1);
    stop(OK, "steps %" PRIu64 " to %" PRIu64 " are proven: data, losses, gradients and states", first_run, end_run - 1);
    return 0;
}
