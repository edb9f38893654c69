/* Small floats: from their bits, to their bits, and rounding to them. All computing is in float.

   Rounding is to nearest, ties to even, once. The formats are rows of one function: exponent bias,
   mantissa bits, the code of infinity (or of the first value that is too large) and that of NaN. */
#ifndef VHALF_H
#define VHALF_H

#include "vmath.h"

/* The bits of x in a format. `top` is the largest code that is kept as it is, `beyond` what larger
   values become. Small results are made by adding a power of two whose last place is theirs. */
V_INLINE uint32_t v_encode(float x, int bias, int mantissa, uint32_t top, uint32_t beyond, uint32_t nan) {
    uint32_t u = (uint32_t)v_bits(x) & 0x7fffffffu;
    int drop = 23 - mantissa;
    uint32_t normal = ((u + (1u << (drop - 1)) - 1 + ((u >> drop) & 1)) >> drop) - ((uint32_t)(127 - bias) << mantissa);
    uint32_t magic = (uint32_t)(127 + 1 - bias + drop) << 23;
    uint32_t tiny = (uint32_t)v_bits(v_float((int32_t)u) + v_float((int32_t)magic)) - magic;
    uint32_t code = u < ((uint32_t)(128 - bias) << 23) ? tiny : normal;
    code = code > top ? beyond : code;
    return u > 0x7f800000u ? nan : code;
}

/* The value of a code without its sign. */
V_INLINE float v_decode(uint32_t code, int bias, int mantissa, float unit) {
    float normal = v_float((int32_t)((code << (23 - mantissa)) + ((uint32_t)(127 - bias) << 23)));
    float tiny = (float)(int32_t)code * unit;
    return code < (1u << mantissa) ? tiny : normal;
}

/* bf16: the upper half of a float. */
V_INLINE float v_from_bf16(uint16_t code) { return v_float((int32_t)((uint32_t)code << 16)); }
V_INLINE float v_round_bf16(float x) {
    uint32_t u = (uint32_t)v_bits(x);
    uint32_t r = (u + 0x7fffu + ((u >> 16) & 1)) & 0xffff0000u;
    return v_float((int32_t)(x == x ? r : ((u | 0x00400000u) & 0xffff0000u)));
}
V_INLINE uint16_t v_to_bf16(float x) { return (uint16_t)((uint32_t)v_bits(x) >> 16); } /* of a rounded x */

V_INLINE float v_from_f16(uint16_t code) {
    uint32_t u = code & 0x7fffu;
    float x = v_decode(u, 15, 10, 0x1p-24f);
    x = u < 0x7c00u ? x : v_float((int32_t)(0x7f800000u | (u & 0x3ffu) << 13));
    return code & 0x8000u ? -x : x;
}
V_INLINE uint16_t v_to_f16(float x) {
    uint32_t sign = ((uint32_t)v_bits(x) >> 16) & 0x8000u;
    return (uint16_t)(sign | v_encode(x, 15, 10, 0x7c00u, 0x7c00u, 0x7e00u));
}
V_INLINE float v_round_f16(float x) { /* as v_from_f16(v_to_f16(x)), in half the instructions */
    uint32_t u = (uint32_t)v_bits(x) & 0x7fffffffu, sign = (uint32_t)v_bits(x) & 0x80000000u;
    uint32_t normal = (u + 0xfffu + ((u >> 13) & 1)) & 0xffffe000u;
    uint32_t tiny = (uint32_t)v_bits((v_float((int32_t)u) + 0.5f) - 0.5f); /* 0.5 has the last place 2**-24 */
    uint32_t r = u < 0x38800000u ? tiny : normal;
    r = r > 0x477fe000u ? 0x7f800000u : r; /* above 65504 */
    r = u > 0x7f800000u ? 0x7fc00000u : r;
    return v_float((int32_t)(r | sign));
}

/* e4m3fn has no infinity. Larger values, and infinity, become NaN or the largest number: torch's choice. */
V_INLINE float v_from_f8e4m3(uint8_t code) {
    uint32_t u = code & 0x7fu;
    float x = u == 0x7fu ? NAN : v_decode(u, 7, 3, 0x1p-9f);
    return code & 0x80u ? -x : x;
}
V_INLINE uint8_t v_to_f8e4m3(float x) {
    uint32_t sign = ((uint32_t)v_bits(x) >> 24) & 0x80u;
    return (uint8_t)(sign | v_encode(x, 7, 3, 0x7eu, 0x7fu, 0x7fu));
}
V_INLINE float v_round_f8e4m3(float x) { return v_from_f8e4m3(v_to_f8e4m3(x)); }
V_INLINE float v_round_f8e4m3_saturating(float x) {
    float largest = __builtin_copysignf(448.0f, x);
    return __builtin_fabsf(x) > 448.0f ? largest : v_round_f8e4m3(x);
}

V_INLINE float v_from_f8e5m2(uint8_t code) {
    uint32_t u = code & 0x7fu;
    float x = u < 0x7cu ? v_decode(u, 15, 2, 0x1p-16f) : u == 0x7cu ? INFINITY : NAN;
    return code & 0x80u ? -x : x;
}
V_INLINE uint8_t v_to_f8e5m2(float x) {
    uint32_t sign = ((uint32_t)v_bits(x) >> 24) & 0x80u;
    return (uint8_t)(sign | v_encode(x, 15, 2, 0x7cu, 0x7cu, 0x7fu));
}
V_INLINE float v_round_f8e5m2(float x) { return v_from_f8e5m2(v_to_f8e5m2(x)); }

#endif
