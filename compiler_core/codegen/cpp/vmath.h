/* Scalar functions that kernels call. Enters: one value. Leaves: one value, the same for every lane.

   The one idea: no branches and no calls into libm, so that a C compiler can put a loop around any of
   them into vector registers; every select is `condition ? a : b` on values already computed.

   Accuracy, measured over one float in 307 of all 2**32 and densely around 0: 1.6 units in the last place
   (sigmoid and tanh 2.5), infinities, NaN, zeros of both signs and denormals included; tests/codegen/cpp
   holds it. Functions marked "wide" compute in double and round once.
   Polynomials: minimax fits (Lawson's iteration) of the series named beside them, with their errors.
   Needs IEEE arithmetic: never compile this with -ffast-math or -fassociative-math. */
#ifndef VMATH_H
#define VMATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* One rounding for a * b + c where the machine has the instruction; libm's own fmaf would be slow. */
#ifdef __FMA__
#define V_FMAF(a, b, c) __builtin_fmaf(a, b, c)
#define V_FMA(a, b, c) __builtin_fma(a, b, c)
#elif defined(__ARM_FEATURE_FMA)
#define V_FMAF(a, b, c) __builtin_fmaf(a, b, c)
#define V_FMA(a, b, c) __builtin_fma(a, b, c)
#else
#define V_FMAF(a, b, c) ((a) * (b) + (c))
#define V_FMA(a, b, c) ((a) * (b) + (c))
#endif

#define V_INLINE static inline __attribute__((always_inline, unused))

/* ---- bits ------------------------------------------------------------------------------------- */

V_INLINE float v_float(int32_t bits) { float x; memcpy(&x, &bits, 4); return x; }
V_INLINE int32_t v_bits(float x) { int32_t bits; memcpy(&bits, &x, 4); return bits; }
V_INLINE double v_double(int64_t bits) { double x; memcpy(&x, &bits, 8); return x; }
V_INLINE int64_t v_bits64(double x) { int64_t bits; memcpy(&bits, &x, 8); return bits; }

/* What a + b rounds away (Knuth's two-sum); for infinities NaN, which the caller has to drop. */
V_INLINE double v_lost(double a, double b) {
    double sum = a + b, part = sum - a;
    return (a - (sum - part)) + (b - part);
}
V_INLINE int v_is_finite(double x) { return x - x == 0.0; }

/* NaN if either is: what torch.maximum, torch.amax and their kin do. */
V_INLINE float v_max_f32(float a, float b) { return (a > b) | (a != a) ? a : b; }
V_INLINE float v_min_f32(float a, float b) { return (a < b) | (a != a) ? a : b; }
V_INLINE double v_max_f64(double a, double b) { return (a > b) | (a != a) ? a : b; }
V_INLINE double v_min_f64(double a, double b) { return (a < b) | (a != a) ? a : b; }

/* Python's division and remainder of floats (CPython's float_divmod; torch follows it). */
#define V_FLOAT_DIVISIONS(T, N, F)                                                                     \
    V_INLINE T v_remainder_##N(T a, T b) {                                                             \
        T r = fmod##F(a, b);                                                                           \
        return (r != 0) & ((r < 0) != (b < 0)) ? r + b : r;                                            \
    }                                                                                                  \
    V_INLINE T v_floordiv_##N(T a, T b) {                                                              \
        T r = fmod##F(a, b), q = (a - r) / b;                                                          \
        q = (r != 0) & ((r < 0) != (b < 0)) ? q - 1 : q;                                               \
        T whole = __builtin_floor##F(q);                                                               \
        whole = q - whole > (T)0.5 ? whole + 1 : whole;                                                \
        whole = q != 0 ? whole : __builtin_copysign##F(0, a / b);                                      \
        return b == 0 ? a / b : whole;                                                                 \
    }
V_FLOAT_DIVISIONS(float, f32, f)
V_FLOAT_DIVISIONS(double, f64, )

/* ---- exponentials ----------------------------------------------------------------------------- */

/* 2**n * p for a normal p near 1: n is added to its exponent. Where `is_tiny`, 2**64 is lent before and
   taken back after, so that a denormal result is rounded once. A NaN p stays: its n converts to a
   number whose low bits are 0. */
V_INLINE float v_scale(float p, float n, int is_tiny) {
    int32_t e = (int32_t)n + (is_tiny ? 64 : 0);
    float y = v_float((int32_t)((uint32_t)v_bits(p) + ((uint32_t)e << 23)));
    return is_tiny ? y * 0x1p-64f : y;
}

/* e**x = 2**n e**r with |r| <= ln(2)/2; e**r = 1 + r + r^2 q(r), error 2**-28. Out of range the result is
   selected at the end: clamping x at the start takes gcc three times as many instructions. */
V_INLINE float v_exp_within(float x, int is_tiny) {
    float n = __builtin_rintf(x * 1.44269504f);
    float r = V_FMAF(n, -0.693359375f, x);
    r = V_FMAF(n, 2.12194440e-4f, r);
    float q = 1.38131413e-3f;
    q = V_FMAF(q, r, 8.36941879e-3f);
    q = V_FMAF(q, r, 4.1668456e-2f);
    q = V_FMAF(q, r, 1.66665152e-1f);
    q = V_FMAF(q, r, 0.49999994f);
    return v_scale(V_FMAF(q, r * r, r) + 1.0f, n, is_tiny);
}
V_INLINE float v_exp(float x) {
    float y = v_exp_within(x, x < -80.0f);
    y = x < -104.0f ? 0.0f : y;
    return x > 88.72284f ? INFINITY : y;
}

/* 2**x = 2**n 2**r; 2**r = 1 + r q(r), error 2**-29. */
V_INLINE float v_exp2(float x) {
    float n = __builtin_rintf(x), r = x - n;
    float q = 1.53523157e-4f;
    q = V_FMAF(q, r, 1.34001707e-3f);
    q = V_FMAF(q, r, 9.61844996e-3f);
    q = V_FMAF(q, r, 5.55032939e-2f);
    q = V_FMAF(q, r, 2.40226477e-1f);
    q = V_FMAF(q, r, 6.93147182e-1f);
    float y = v_scale(V_FMAF(q, r, 1.0f), n, x < -100.0f);
    y = x < -150.0f ? 0.0f : y;
    return x >= 128.0f ? INFINITY : y;
}

/* e**x - 1 = 2**n (e**r - 1) + (2**n - 1); e**r - 1 = r + r^2 q(r), error 2**-32. */
V_INLINE float v_expm1(float x) {
    float n = __builtin_rintf(x * 1.44269504f);
    float r = V_FMAF(n, -0.693359375f, x);
    r = V_FMAF(n, 2.12194440e-4f, r);
    float q = 1.98459573e-4f;
    q = V_FMAF(q, r, 1.39416533e-3f);
    q = V_FMAF(q, r, 8.33339151e-3f);
    q = V_FMAF(q, r, 4.16663475e-2f);
    q = V_FMAF(q, r, 1.66666657e-1f);
    q = V_FMAF(q, r, 0.5f);
    float p = V_FMAF(q, r * r, r);
    /* Half the power, doubled at the end: 2**128 is no float, but the result may be one. */
    float half = v_float((int32_t)((uint32_t)((int32_t)n + 126) << 23));
    float y = V_FMAF(half, p, half - 0.5f);
    y = n == 0.0f ? (x == 0.0f ? x : p) : y + y;
    y = x < -18.0f ? -1.0f : y;
    return x > 88.72284f ? INFINITY : y;
}

/* 2**t in double, error 2**-45, for finite t; beyond +-1000 the result is as for +-1000. (wide) */
V_INLINE double v_exp2_wide(double t) {
    double c = t < -1000.0 ? -1000.0 : t;
    c = c > 1000.0 ? 1000.0 : c;
    double shifted = c + 6755399441055744.0; /* 1.5 * 2**52: the low bits now hold the integer */
    double r = c - (shifted - 6755399441055744.0);
    double q = 1.0147736521899e-07;
    q = V_FMA(q, r, 1.3259186428061746e-06);
    q = V_FMA(q, r, 1.5253000275607854e-05);
    q = V_FMA(q, r, 1.5403437298147532e-04);
    q = V_FMA(q, r, 1.3333557594061144e-03);
    q = V_FMA(q, r, 9.618129185622912e-03);
    q = V_FMA(q, r, 5.5504108668708196e-02);
    q = V_FMA(q, r, 2.402265069570755e-01);
    q = V_FMA(q, r, 6.931471805598788e-01);
    double scale = v_double((int64_t)(((uint64_t)v_bits64(shifted) << 52) + 0x3ff0000000000000u));
    return V_FMA(q, r, 1.0) * scale;
}

V_INLINE float v_sigmoid(float x) {
    float e = v_exp(-__builtin_fabsf(x)); /* never above 1: no overflow at either end */
    return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}

/* tanh |x| = -m / (m + 2) with m = e**(-2|x|) - 1. */
V_INLINE float v_tanh(float x) {
    float m = v_expm1(-2.0f * __builtin_fabsf(x));
    return __builtin_copysignf(m / (m + 2.0f), x);
}

V_INLINE float v_sinh(float x) { /* wide away from 0, the series near it */
    double a = __builtin_fabs((double)x), t = a * 1.4426950408889634, s = a * a;
    double far = 0.5 * (v_exp2_wide(t) - v_exp2_wide(-t));
    double near = a + a * s * (1.0 / 6 + s * (1.0 / 120 + s * (1.0 / 5040 + s * (1.0 / 362880))));
    return __builtin_copysignf((float)(a < 0.5 ? near : far), x);
}

V_INLINE float v_cosh(float x) {
    double t = (double)x * 1.4426950408889634;
    return (float)(0.5 * (v_exp2_wide(t) + v_exp2_wide(-t)));
}

/* ---- logarithms ------------------------------------------------------------------------------- */

/* log x = e ln 2 + log(1 + f), 1 + f in [sqrt(1/2), sqrt(2)); f - f^2/2 + f^3 P(f), error 2**-30. */
V_INLINE float v_log(float x) {
    int is_small = x < 1.17549435e-38f;
    int32_t i = v_bits(is_small ? x * 8388608.0f : x);
    int32_t e = (int32_t)((uint32_t)i - 0x3f3504f3u) >> 23;
    float f = v_float((int32_t)((uint32_t)i - ((uint32_t)e << 23))) - 1.0f;
    float n = (float)(is_small ? e - 23 : e);
    float p = 6.74645454e-2f;
    p = V_FMAF(p, f, -1.16756238e-1f);
    p = V_FMAF(p, f, 1.18882321e-1f);
    p = V_FMAF(p, f, -1.24055974e-1f);
    p = V_FMAF(p, f, 1.42195433e-1f);
    p = V_FMAF(p, f, -1.66679949e-1f);
    p = V_FMAF(p, f, 2.00021192e-1f);
    p = V_FMAF(p, f, -2.50000089e-1f);
    p = V_FMAF(p, f, 3.33333135e-1f);
    float s = f * f;
    float low = V_FMAF(p, f * s, V_FMAF(s, -0.5f, n * -2.12194440e-4f));
    float y = V_FMAF(n, 0.693359375f, f + low);
    y = x < INFINITY ? y : x;             /* infinity and NaN stay */
    y = x == 0.0f ? -INFINITY : y;
    return x < 0.0f ? NAN : y;
}

/* ln x in double for x >= 0, error 2**-50 relative: 2 atanh(s), s = (m - 1) / (m + 1). (wide) */
V_INLINE double v_log_wide(double x) {
    int64_t i = v_bits64(x);
    /* The exponent's bits, 2048 added so that they are positive, under those of 2**52: a conversion to
       double that needs no instruction for 64-bit integers. */
    uint64_t e = ((uint64_t)i - 0x3fe6a09e667f3bcdu + 0x8000000000000000u) >> 52;
    double n = v_double((int64_t)(e | 0x4330000000000000u)) - 4503599627372544.0 /* 2**52 + 2048 */;
    double m = v_double((int64_t)((uint64_t)i - ((e - 2048) << 52)));
    double s = (m - 1.0) / (m + 1.0), t = s * s;
    double p = 8.415636057771325e-02;
    p = V_FMA(p, t, 9.06136303312049e-02);
    p = V_FMA(p, t, 1.1111699387035522e-01);
    p = V_FMA(p, t, 1.4285708384742488e-01);
    p = V_FMA(p, t, 2.0000000027171383e-01);
    p = V_FMA(p, t, 3.333333333329169e-01);
    double y = V_FMA(n, 0.6931471805599453, 2.0 * V_FMA(p * t, s, s));
    y = x < (double)INFINITY ? y : x;
    y = x == 0.0 ? -(double)INFINITY : y;
    return x < 0.0 ? (double)NAN : y;
}

V_INLINE float v_log2(float x) { return (float)(v_log_wide((double)x) * 1.4426950408889634); }
V_INLINE float v_log10(float x) { return (float)(v_log_wide((double)x) * 0.4342944819032518); }

V_INLINE float v_log1p(float x) {
    double a = (double)x, u = 1.0 + a;
    double lost = (a - (u - 1.0)) / u;    /* what 1 + x rounded away */
    double y = v_log_wide(u);
    return x == 0.0f ? x : (float)(u > 0.0 && u < (double)INFINITY ? y + lost : y);
}

/* |x|**y = 2**(y log2 |x|), then the cases of the C standard (F.10.4.4). (wide) */
V_INLINE float v_pow(float x, float y) {
    double a = __builtin_fabs((double)x), b = (double)y;
    double z = v_exp2_wide(b * (v_log_wide(a) * 1.4426950408889634));
    int is_whole = __builtin_rint(b) == b;
    int is_odd = is_whole & (__builtin_rint(b * 0.5) != b * 0.5);
    z = (x < 0.0f) & (a < (double)INFINITY) & !is_whole ? (double)NAN : z;
    z = (a == 1.0) & is_whole ? 1.0 : z;  /* 1**inf and (-1)**inf too: log2 gave 0 * inf */
    float r = (float)z;
    r = (v_bits(x) < 0) & is_odd ? -r : r;
    return (x == 1.0f) | (y == 0.0f) ? 1.0f : r;
}

/* ---- trigonometry ----------------------------------------------------------------------------- */

/* x = (quarter + g) pi/2, |g| <= 1/2: the product x * 2/pi modulo 4 in four exact pieces. The bits of 2/pi
   that a float of that size needs come from two tables of four doubles, one for |x| <= 2**75 and one,
   2/pi * 2**52 modulo 4, above (Payne and Hanek's reduction). No float is too large for it. */
V_INLINE double v_quarters(float x, float *quarter) {
    double a = (double)x;
    int is_large = __builtin_fabsf(x) > 37778931862957161709568.0f; /* 2**75 */
    double y = is_large ? a * 2.220446049250313e-16 : a;
    double p0 = y * (is_large ? 0x1.529fc27p+0 : 0x1.45f306ep-1);
    double p1 = y * (is_large ? 0x1.5f47d4dp-30 : -0x1.b1bbeadp-32);
    double p2 = y * (is_large ? 0x1.bb81b6cp-61 : -0x1.80f62a1p-62);
    double p3 = y * (is_large ? 0x1.4acc9e21c8210p-91 : 0x1.1f534ddc0db63p-92);
    p0 -= 4.0 * __builtin_rint(p0 * 0.25);
    p1 -= 4.0 * __builtin_rint(p1 * 0.25);
    p2 -= 4.0 * __builtin_rint(p2 * 0.25);
    double n = __builtin_rint(p0 + p1 + p2);
    *quarter = (float)n;
    return p0 - n + p1 + p2 + p3;
}

/* sin r = r + r^3 S(r^2), error 2**-28, and cos r = 1 - r^2/2 + r^4 C(r^2), error 2**-33, |r| <= pi/4. */
V_INLINE float v_sin_near(float r, float s) {
    float p = V_FMAF(-1.95166547e-4f, s, 8.33217334e-3f);
    return V_FMAF(V_FMAF(p, s, -1.66666552e-1f), s * r, r);
}
V_INLINE float v_cos_near(float s) {
    float p = V_FMAF(2.44377279e-5f, s, -1.38873619e-3f);
    return V_FMAF(V_FMAF(p, s, 4.16666456e-2f), s * s, V_FMAF(s, -0.5f, 1.0f));
}

V_INLINE float v_sin(float x) {
    float quarter;
    float r = (float)(v_quarters(x, &quarter) * 1.5707963267948966);
    int32_t n = (int32_t)quarter;
    float y = n & 1 ? v_cos_near(r * r) : v_sin_near(r, r * r);
    y = n & 2 ? -y : y;
    return x == 0.0f ? x : y;             /* -0.0 stays */
}

V_INLINE float v_cos(float x) {
    float quarter;
    float r = (float)(v_quarters(x, &quarter) * 1.5707963267948966);
    int32_t n = (int32_t)quarter;
    float y = n & 1 ? v_sin_near(r, r * r) : v_cos_near(r * r);
    return (n + 1) & 2 ? -y : y;
}

V_INLINE float v_tan(float x) { /* wide */
    float quarter;
    double r = v_quarters(x, &quarter) * 1.5707963267948966, s = r * r;
    double sine = V_FMA(V_FMA(V_FMA(2.718237096376791e-06, s, -1.9839327113774647e-04), s, 8.333329362191274e-03), s,
                        -1.6666666641425468e-01);
    double cosine = V_FMA(V_FMA(V_FMA(-2.720954647419698e-07, s, 2.4799511745585097e-05), s, -1.3888883722541277e-03),
                          s, 4.166666662247587e-02);
    sine = V_FMA(sine, s * r, r);
    cosine = V_FMA(cosine, s * s, V_FMA(s, -0.5, 1.0));
    int is_odd = (int32_t)quarter & 1;
    double y = (is_odd ? -cosine : sine) / (is_odd ? sine : cosine);
    return x == 0.0f ? x : (float)y;
}

/* atan a = a + a^3 P(a^2) on [0, 1], error 2**-34; pi/2 - atan(1/a) above. (wide) */
V_INLINE float v_atan(float x) {
    double a = __builtin_fabs((double)x);
    int is_large = a > 1.0;
    double b = is_large ? 1.0 / a : a, t = b * b;
    double p = -7.112126428581546e-04;
    p = V_FMA(p, t, 4.998812713376188e-03);
    p = V_FMA(p, t, -1.6470267268665885e-02);
    p = V_FMA(p, t, 3.470307336794906e-02);
    p = V_FMA(p, t, -5.470317890866476e-02);
    p = V_FMA(p, t, 7.269315069787624e-02);
    p = V_FMA(p, t, -8.988768657872052e-02);
    p = V_FMA(p, t, 1.109519754002712e-01);
    p = V_FMA(p, t, -1.4284250270782936e-01);
    p = V_FMA(p, t, 1.999993216138311e-01);
    p = V_FMA(p, t, -3.333333223454254e-01);
    double y = V_FMA(p * t, b, b);
    return __builtin_copysignf((float)(is_large ? 1.5707963267948966 - y : y), x);
}

/* asin a = a + a^3 P(a^2) on [0, 1/2], error 2**-36; pi/2 - 2 asin(sqrt((1 - a)/2)) above. (wide) */
V_INLINE double v_asin_wide(double a, int is_large) {
    double t = is_large ? 0.5 - 0.5 * a : a * a;
    double b = is_large ? __builtin_sqrt(t) : a;
    double p = 3.483414959984605e-02;
    p = V_FMA(p, t, 7.355115497538673e-03);
    p = V_FMA(p, t, 2.465417689243614e-02);
    p = V_FMA(p, t, 3.010475148762126e-02);
    p = V_FMA(p, t, 4.4660587792146426e-02);
    p = V_FMA(p, t, 7.499946664261284e-02);
    p = V_FMA(p, t, 1.6666667207134056e-01);
    return V_FMA(p * t, b, b);
}
V_INLINE float v_asin(float x) {
    double a = __builtin_fabs((double)x);
    int is_large = a > 0.5;
    double y = v_asin_wide(a, is_large);
    return __builtin_copysignf((float)(is_large ? 1.5707963267948966 - 2.0 * y : y), x);
}
V_INLINE float v_acos(float x) {
    double a = __builtin_fabs((double)x);
    int is_large = a > 0.5;
    double y = v_asin_wide(a, is_large);
    double large = x < 0.0f ? 3.141592653589793 - 2.0 * y : 2.0 * y;
    double small = 1.5707963267948966 - (x < 0.0f ? -y : y);
    return (float)(is_large ? large : small);
}

/* ---- error function --------------------------------------------------------------------------- */

/* erf a = a + a P(a^2) below 0.93, error 2**-31; 1 - exp(-a (1 + Q(a))) up to 3.95, where it is 1. */
V_INLINE float v_erf(float x) {
    float a = __builtin_fabsf(x), s = a * a;
    float p = 8.34522507e-5f;
    p = V_FMAF(p, s, -8.1374374e-4f);
    p = V_FMAF(p, s, 5.20063424e-3f);
    p = V_FMAF(p, s, -2.68592704e-2f);
    p = V_FMAF(p, s, 1.12836942e-1f);
    p = V_FMAF(p, s, -3.76126349e-1f);
    p = V_FMAF(p, s, 1.28379166e-1f);
    float c = a > 3.95f ? 3.95f : a;
    float q = 4.76424702e-6f;
    q = V_FMAF(q, c, -4.34534741e-5f);
    q = V_FMAF(q, c, -6.04756351e-5f);
    q = V_FMAF(q, c, 2.96038995e-3f);
    q = V_FMAF(q, c, -2.27233358e-2f);
    q = V_FMAF(q, c, 1.0530965e-1f);
    q = V_FMAF(q, c, 6.35600924e-1f);
    q = V_FMAF(q, c, 1.28557041e-1f);
    float far = 1.0f - v_exp_within(-V_FMAF(q, c, c), 0), near = V_FMAF(p, a, a);
    return __builtin_copysignf(a > 0.93f ? far : near, x);
}

#endif
