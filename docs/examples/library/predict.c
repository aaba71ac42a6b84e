/* Scores of an image by a library that `dgrr.runtime.export_library` wrote as "digits". Prints them to the last bit. */
#include <stdio.h>

#include "digits.h"

static _Alignas(64) unsigned char arena[DIGITS_ARENA];

int main(void) {
    float image[64], scores[10];
    for (int i = 0; i < 64; i++) {
        image[i] = (float)i / 64;
    }
    int code = digits_run(image, scores, arena, sizeof arena);
    if (code) {
        fprintf(stderr, "%s\n", digits_messages[code - 1]);
        return code;
    }
    for (int i = 0; i < 10; i++) {
        printf("%a\n", scores[i]);
    }
    return 0;
}
