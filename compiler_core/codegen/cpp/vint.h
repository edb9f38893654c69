/* Integer operations with torch's rules. Enters and leaves: values of one type.

   Arithmetic wraps (kernels are compiled with -fwrapv). Division rounds down as Python's does. A zero
   divisor gives 0, since a kernel cannot raise; shifts by a negative count or by the width and more
   move every bit out, as in torch. */
#ifndef VINT_H
#define VINT_H

#include <stdint.h>

#ifndef V_INLINE
#define V_INLINE static inline __attribute__((always_inline, unused))
#endif

/* a / b for any a and b: a division by 0 or of the smallest number by -1 would stop the process. */
#define V_DIVISIONS(T, N)                                                                              \
    V_INLINE T v_truncdiv_##N(T a, T b) {                                                              \
        T safe = b == 0 || b == -1 ? 1 : b;                                                            \
        T q = (T)(a / safe);                                                                           \
        return b == 0 ? 0 : b == -1 ? (T)-a : q;                                                       \
    }                                                                                                  \
    V_INLINE T v_fmod_##N(T a, T b) {                                                                  \
        T safe = b == 0 || b == -1 ? 1 : b;                                                            \
        return (T)(a % safe);                                                                          \
    }                                                                                                  \
    V_INLINE T v_remainder_##N(T a, T b) {                                                             \
        T r = v_fmod_##N(a, b);                                                                        \
        return r != 0 && (r < 0) != (b < 0) ? (T)(r + b) : r;                                          \
    }                                                                                                  \
    V_INLINE T v_floordiv_##N(T a, T b) {                                                              \
        T q = v_truncdiv_##N(a, b), r = v_fmod_##N(a, b);                                              \
        return r != 0 && (r < 0) != (b < 0) ? (T)(q - 1) : q;                                          \
    }

#define V_INTEGERS(T, U, N)                                                                            \
    V_INLINE T v_min_##N(T a, T b) { return a < b ? a : b; }                                           \
    V_INLINE T v_max_##N(T a, T b) { return a > b ? a : b; }                                           \
    V_INLINE T v_shl_##N(T a, T b) {                                                                   \
        int is_out = b < 0 || b >= (T)(8 * sizeof(T));                                                 \
        return is_out ? 0 : (T)((U)a << (is_out ? 0 : b));                                             \
    }                                                                                                  \
    V_INLINE T v_shr_##N(T a, T b) {                                                                   \
        int is_out = b < 0 || b >= (T)(8 * sizeof(T));                                                 \
        return is_out ? (T)(a < 0 ? -1 : 0) : (T)(a >> (is_out ? 0 : b));                              \
    }                                                                                                  \
    V_INLINE T v_pow_##N(T a, T b) {                                                                   \
        uint64_t result = 1, base = (uint64_t)(int64_t)a;                                              \
        if (b < 0) return a == 1 ? 1 : a == (T)-1 ? (b & 1 ? (T)-1 : 1) : 0;                           \
        for (uint64_t n = (uint64_t)b; n; n >>= 1, base *= base) result = n & 1 ? result * base : result; \
        return (T)result;                                                                              \
    }                                                                                                  \
    V_DIVISIONS(T, N)

V_INTEGERS(int64_t, uint64_t, i64)
V_INTEGERS(int32_t, uint32_t, i32)
V_INTEGERS(int16_t, uint16_t, i16)
V_INTEGERS(int8_t, uint8_t, i8)
V_INTEGERS(uint8_t, uint8_t, u8)

#endif
