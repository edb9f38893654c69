/* Positions that come from memory: a kernel notes the first one that is out of bounds, and goes on. */
#ifndef V_PLACE_H
#define V_PLACE_H

#include <stdint.h>

/* failed[0] is the number of the check, from 1, failed[1] the position as it was read. */
__attribute__((noinline, cold, unused)) static void v_fail(int64_t *failed, int64_t check,
                                                           int64_t position) {
    int64_t none = 0;
    if (__atomic_compare_exchange_n(failed, &none, check, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        failed[1] = position;
}

#endif
