/* Products of matrices, and the few other loops that take time: float32, one core, no library.

A matrix is kept in panels of PANEL columns, so that a product reads it from front to end. The sums of ROWS rows and one panel stay in
registers while the depth goes by:   y[r][c] = sum_k x[r][k] w[k][c].   The compiler makes of `Lanes` what the processor has. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#if defined(__AVX512F__)
#define LANES 16
#define ROWS 12
#elif defined(__AVX__)
#define LANES 8
#define ROWS 6
#else
#define LANES 4
#define ROWS 6
#endif
#define PANEL (2 * LANES)
#define INLINE static inline __attribute__((always_inline))

typedef float Lanes __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int Bits __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

typedef struct {
    int depth, columns; /* columns are filled up to whole panels */
    float *panels, *bias;
    float *units; /* where it is rounded, see rounded.h: of each column; NULL where it is not */
    int *sums;
} Matrix;

typedef enum { SET, RELU, ADD } Into; /* what happens to a product: y = p, y = max(p, 0), y += p */

static int filled(int count, int unit) { return (count + unit - 1) / unit * unit; }

/* For a shuffle of two vectors: of(lane, n) for each lane. */
#define FOUR(of, l, n) of(l, n), of((l) + 1, n), of((l) + 2, n), of((l) + 3, n)
#if LANES == 16
#define EACH(of, n) FOUR(of, 0, n), FOUR(of, 4, n), FOUR(of, 8, n), FOUR(of, 12, n)
#elif LANES == 8
#define EACH(of, n) FOUR(of, 0, n), FOUR(of, 4, n)
#else
#define EACH(of, n) FOUR(of, 0, n)
#endif
#define LOWER(l, n) ((l) / 2 + ((l) % 2 ? LANES : 0))
#define UPPER(l, n) (LOWER(l, n) + LANES / 2)

/* LANES vectors turned: lane j of vector i goes to lane i of vector j. One half laid between the other does it, as often as LANES can be halved. */
INLINE void turn(Lanes *rows) {
    Lanes turned[LANES];
#pragma GCC unroll 4
    for (int left = LANES; left > 1; left /= 2) {
#pragma GCC unroll 8
        for (int i = 0; i < LANES / 2; i++) {
            turned[2 * i] = __builtin_shufflevector(rows[i], rows[i + LANES / 2], EACH(LOWER, 0));
            turned[2 * i + 1] = __builtin_shufflevector(rows[i], rows[i + LANES / 2], EACH(UPPER, 0));
        }
#pragma GCC unroll 16
        for (int i = 0; i < LANES; i++) rows[i] = turned[i];
    }
}

/* Rows of `weight` (columns, depth), as torch has it, or those `ids` of it, as panels. */
static void pack(Matrix *matrix, const float *weight, const float *bias, const int *ids) {
    int depth = matrix->depth, columns = matrix->columns, whole = depth / LANES * LANES;
    for (int first = 0; first < columns; first += PANEL) {
        float *panel = matrix->panels + (long)first * depth;
        int count = columns - first < PANEL ? columns - first : PANEL;
        const float *rows[PANEL];
        if (count < PANEL) memset(panel, 0, sizeof(float) * PANEL * depth);
        for (int c = 0; c < count; c++) {
            int place = ids ? ids[first + c] : first + c;
            rows[c] = weight + (long)place * depth;
            if (matrix->bias) matrix->bias[first + c] = bias[place];
        }
        for (int k = 0; k < whole; k += LANES)
            for (int half = 0; half < PANEL; half += LANES) {
                Lanes block[LANES];
#pragma GCC unroll 16
                for (int c = 0; c < LANES; c++) block[c] = half + c < count ? *(const Lanes *)(rows[half + c] + k) : (Lanes){0};
                turn(block);
#pragma GCC unroll 16
                for (int c = 0; c < LANES; c++) *(Lanes *)(panel + (long)(k + c) * PANEL + half) = block[c];
            }
        for (int k = whole; k < depth; k++)
            for (int c = 0; c < count; c++) panel[(long)k * PANEL + c] = rows[c][k];
    }
}

INLINE void put(Lanes *to, Lanes sum, Into into) {
    if (into == ADD) sum += *to;
    if (into == RELU) sum = (Lanes)((Bits)sum & ~(sum < 0)); /* what is not a number stays */
    *to = sum;
}

/* `tile` with the number of rows that are left, as a constant. */
#define ONE_OF(n, tile) \
    case n: tile(n); break;
#if ROWS > 6
#define FOR_THE_REST(rows, tile) \
    switch (rows) { \
        ONE_OF(1, tile) ONE_OF(2, tile) ONE_OF(3, tile) ONE_OF(4, tile) ONE_OF(5, tile) ONE_OF(6, tile) \
        ONE_OF(7, tile) ONE_OF(8, tile) ONE_OF(9, tile) ONE_OF(10, tile) ONE_OF(11, tile) \
    }
#else
#define FOR_THE_REST(rows, tile) \
    switch (rows) { ONE_OF(1, tile) ONE_OF(2, tile) ONE_OF(3, tile) ONE_OF(4, tile) ONE_OF(5, tile) }
#endif

INLINE void tile(int rows, const float *x, long x_stride, int depth, const float *panel, const float *bias, float *y, long y_stride,
                 Into into) {
    Lanes sums[ROWS][2];
    Lanes first = {0}, second = {0};
    if (bias) first = *(const Lanes *)bias, second = *(const Lanes *)(bias + LANES);
#pragma GCC unroll 12
    for (int r = 0; r < rows; r++) sums[r][0] = first, sums[r][1] = second;
    for (int k = 0; k < depth; k++) {
        Lanes left = *(const Lanes *)(panel + k * PANEL), right = *(const Lanes *)(panel + k * PANEL + LANES);
#pragma GCC unroll 12
        for (int r = 0; r < rows; r++) {
            float value = x[r * x_stride + k];
            sums[r][0] += left * value;
            sums[r][1] += right * value;
        }
    }
#pragma GCC unroll 12
    for (int r = 0; r < rows; r++)
        for (int half = 0; half < 2; half++) put((Lanes *)(y + r * y_stride + half * LANES), sums[r][half], into);
}

/* y (rows, columns) = x (rows, depth) times the matrix, plus its bias; rows of y have room for whole panels. */
INLINE void panels(const Matrix *matrix, const float *x, long x_stride, int rows, float *y, long y_stride, Into into) {
    for (int c = 0; c < matrix->columns; c += PANEL) {
        const float *panel = matrix->panels + (long)c * matrix->depth, *bias = matrix->bias ? matrix->bias + c : NULL;
        int r = 0;
#define TILE(n) tile(n, x + r * x_stride, x_stride, matrix->depth, panel, bias, y + r * y_stride + c, y_stride, into)
        for (; r + ROWS <= rows; r += ROWS) TILE(ROWS);
        FOR_THE_REST(rows - r, TILE)
    }
}

INLINE float sum_of(Lanes lanes) {
    float parts[LANES], sum = 0;
    memcpy(parts, &lanes, sizeof parts);
    for (int l = 0; l < LANES; l++) sum += parts[l];
    return sum;
}

#define KEPT(l, n) (l) + (((l) & (n)) ? LANES : 0)
#define SWAPPED(l, n) ((l) ^ (n)) + (((l) & (n)) ? LANES : 0)
#define HALVE(n) \
    _Pragma("GCC unroll 8") for (int i = 0; i < (n); i++) \
        parts[i] = __builtin_shufflevector(parts[i], parts[i + (n)], EACH(KEPT, n)) + \
                   __builtin_shufflevector(parts[i], parts[i + (n)], EACH(SWAPPED, n));

/* The sums of LANES vectors at once, one in each lane. For n = 8, 4, 2, 1 lanes that are n apart are added, and of two vectors one is made: of
   the first where bit n of the lane's number is 0, of the second where it is 1. */
INLINE Lanes sums_of(Lanes *parts) {
#if LANES == 16
    HALVE(8)
#endif
#if LANES >= 8
    HALVE(4)
#endif
    HALVE(2)
    HALVE(1)
    return parts[0];
}

/* e^x for x <= 0, to the last bit or two; without a branch, so that loops of it become vectors. 2^n e^r with |r| <= ln 2 / 2. */
INLINE float exp_of(float x) {
    x = x > -80.0f ? x : -80.0f; /* beyond, numbers lose their digits and processors their pace */
    float n = (x * 1.44269504f + 12582912.0f) - 12582912.0f; /* rounds: beyond 2^23 a float has no fractions */
    float r = x - n * 0.693359375f + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    union { int bits; float value; } power = {.bits = ((int)n + 127) << 23};
    return p * power.value;
}

/* sum of e^(x - most) over `count` numbers, a multiple of LANES; x becomes e^(x - most) if `keep` */
INLINE float exponentials(float *x, int count, float most, int keep) {
    float each[LANES] = {0};
    for (int i = 0; i < count; i += LANES)
        for (int l = 0; l < LANES; l++) {
            float e = exp_of(x[i + l] - most);
            if (keep) x[i + l] = e;
            each[l] += e;
        }
    float sum = 0;
    for (int l = 0; l < LANES; l++) sum += each[l];
    return sum;
}
