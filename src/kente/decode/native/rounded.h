/* Products of numbers rounded to eight bits, for processors that add four such products at once, and the choice between these and float32.

A column of a matrix is rounded in units of its own, a row of x in units of its own as it comes:   x = unit u,  u = -127 ... 127.
Processors want one factor without a sign, so a row is kept as u + 128, and 128 times the sum of the column is taken off again. Sums are exact. */

#include "products.h"

#if defined(__AVX512VNNI__) && LANES == 16
#include <immintrin.h>
#define CAN_ROUND 1
INLINE Bits add_products(Bits sums, Bits bytes, Bits weights) { return (Bits)_mm512_dpbusd_epi32((__m512i)sums, (__m512i)bytes, (__m512i)weights); }
INLINE Lanes product_and_sum(Lanes a, Lanes b, Lanes c) { return (Lanes)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c); }
#elif defined(__AVXVNNI__) && LANES == 8
#include <immintrin.h>
#define CAN_ROUND 1
INLINE Bits add_products(Bits sums, Bits bytes, Bits weights) { return (Bits)_mm256_dpbusd_avx_epi32((__m256i)sums, (__m256i)bytes, (__m256i)weights); }
INLINE Lanes product_and_sum(Lanes a, Lanes b, Lanes c) { return (Lanes)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c); }
#else /* nobody asks */
#define CAN_ROUND 0
INLINE Bits add_products(Bits sums, Bits bytes, Bits weights) { return sums + 0 * (bytes + weights); }
INLINE Lanes product_and_sum(Lanes a, Lanes b, Lanes c) { return a * b + c; }
#endif

#define MOST 127.0f
#define LEAST_UNIT 1e-30f /* rows and columns of smaller numbers count as zeros */
#define FOURS(depth) (((depth) + 3) / 4)

/* Rows of numbers, each rounded in its own units; filled up to whole fours with what stands for 0. */
typedef struct { unsigned char *numbers; float *units; } Rounded;

/* u + `middle` for every x = unit u. What is not a number makes the unit none either. */
INLINE float round_row(const float *x, int depth, unsigned char *to, int middle) {
    int largest = 0; /* of |x|, as bits: their order is that of the numbers, and beyond all stands what is none */
    for (int i = 0; i < depth; i++) {
        union { float value; int bits; } one = {x[i]};
        int size = one.bits & 0x7fffffff;
        largest = size > largest ? size : largest;
    }
    union { int bits; float value; } most = {largest};
    float scale = most.value > LEAST_UNIT ? MOST / most.value : 0.0f;
    for (int i = 0; i < depth; i++) {
        union { float value; unsigned bits; } one = {x[i] * scale + (12582912.0f + middle)}; /* the last byte is the nearest whole number */
        to[i] = (unsigned char)one.bits;
    }
    for (int i = depth; i < 4 * FOURS(depth); i++) to[i] = (unsigned char)middle;
    return most.value / MOST + (most.value - most.value); /* what is infinite is no number any more: its sign is lost above */
}

/* The matrix of these rounded columns, or of those `ids` of them: a word of four of its numbers takes the place of one of float32. */
static void pack_rounded(Matrix *matrix, const Rounded *columns, const float *bias, const int *ids) {
    Matrix words = {.depth = FOURS(matrix->depth), .columns = matrix->columns, .panels = matrix->panels, .bias = matrix->bias};
    pack(&words, (const float *)columns->numbers, bias, ids);
    for (int c = 0; c < matrix->columns; c++) {
        long place = ids ? ids[c] : c;
        const signed char *own = (const signed char *)columns->numbers + place * 4 * FOURS(matrix->depth);
        int sum = 0;
        for (int k = 0; k < matrix->depth; k++) sum += own[k];
        matrix->units[c] = columns->units[place], matrix->sums[c] = -128 * sum;
    }
    for (int c = matrix->columns; c < filled(matrix->columns, PANEL); c++) matrix->units[c] = 0.0f, matrix->sums[c] = 0;
}

INLINE void rounded_tile(int rows, const unsigned char *x, const float *x_units, int fours, const float *panel, const int *sums, const float *units,
                         const float *bias, float *y, long y_stride, Into into) {
    Bits totals[ROWS][2];
#pragma GCC unroll 12
    for (int r = 0; r < rows; r++) totals[r][0] = *(const Bits *)sums, totals[r][1] = *(const Bits *)(sums + LANES);
    for (int k = 0; k < fours; k++) {
        Bits left = *(const Bits *)(panel + k * PANEL), right = *(const Bits *)(panel + k * PANEL + LANES);
#pragma GCC unroll 12
        for (int r = 0; r < rows; r++) {
            int four;
            memcpy(&four, x + 4L * (r * fours + k), sizeof four);
            Bits bytes = (Bits){0} + four;
            totals[r][0] = add_products(totals[r][0], bytes, left);
            totals[r][1] = add_products(totals[r][1], bytes, right);
        }
    }
    for (int half = 0; half < PANEL; half += LANES) {
        Lanes unit = *(const Lanes *)(units + half), from = {0};
        if (bias) from = *(const Lanes *)(bias + half);
#pragma GCC unroll 12
        for (int r = 0; r < rows; r++) { /* left to itself, the compiler joins product and sum for some numbers of rows and not for others */
            Lanes sum = product_and_sum(__builtin_convertvector(totals[r][half / LANES], Lanes), unit * x_units[r], from);
            put((Lanes *)(y + r * y_stride + half), sum, into);
        }
    }
}

INLINE void rounded_panels(const Matrix *matrix, const Rounded *x, int rows, float *y, long y_stride, Into into) {
    int fours = FOURS(matrix->depth);
    for (int c = 0; c < matrix->columns; c += PANEL) {
        const float *panel = matrix->panels + (long)c * fours, *units = matrix->units + c, *bias = matrix->bias ? matrix->bias + c : NULL;
        const int *sums = matrix->sums + c;
        int r = 0;
#define ROUNDED_TILE(n) \
    rounded_tile(n, x->numbers + 4L * r * fours, x->units + r, fours, panel, sums, units, bias, y + r * y_stride + c, y_stride, into)
        for (; r + ROWS <= rows; r += ROWS) ROUNDED_TILE(ROWS);
        FOR_THE_REST(rows - r, ROUNDED_TILE)
    }
}

/* y (rows, columns) = x (rows, depth) times the matrix, plus its bias; rows of y have room for whole panels. A rounded matrix rounds x into `room`. */
static void product(const Matrix *matrix, const float *x, long x_stride, int rows, float *y, long y_stride, Into into, const Rounded *room) {
    if (matrix->units)
        for (int r = 0; r < rows; r++)
            room->units[r] = round_row(x + r * x_stride, matrix->depth, room->numbers + 4L * r * FOURS(matrix->depth), 128);
    switch (into + (matrix->units ? 3 : 0)) { /* as constants, so that loops need not ask */
        case SET: panels(matrix, x, x_stride, rows, y, y_stride, SET); break;
        case RELU: panels(matrix, x, x_stride, rows, y, y_stride, RELU); break;
        case ADD: panels(matrix, x, x_stride, rows, y, y_stride, ADD); break;
        case SET + 3: rounded_panels(matrix, room, rows, y, y_stride, SET); break;
        case RELU + 3: rounded_panels(matrix, room, rows, y, y_stride, RELU); break;
        case ADD + 3: rounded_panels(matrix, room, rows, y, y_stride, ADD); break;
    }
}
