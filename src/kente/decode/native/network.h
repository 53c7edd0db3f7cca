/* The Transformer of models/transformer.py for reading sources and writing one word more: the same network, laid out for one core.

Sentences lie one behind the other without padding; whatever is done at each position alone is one product over all of them. What was written
before stays where it was computed: a row knows at which place of each step its own past lies, so a beam is put in order by numbers. */

#include "rounded.h"

typedef struct {
    int width, heads, inner, encoder_layers, decoder_layers, source_words, target_words, longest;
    int pre, rms, activation, gated, rounded;
    float epsilon, scale;
} Shape;

enum { A_RELU, A_GELU, A_GELU_TANH, A_SILU };

typedef struct { float *gain, *shift; } Norm;
typedef struct { Norm norm; Matrix query_key_value, output; } SelfAttention;
typedef struct { Norm norm; Matrix query, key_value, output; } CrossAttention;
typedef struct { Norm norm; Matrix inner, outer; } FeedForward;
typedef struct { SelfAttention self; CrossAttention cross; FeedForward feedforward; } Layer;

/* Memory that is taken piece by piece and given back all at once; kept from one search to the next. */
typedef struct Block { struct Block *next; size_t size, used; } Block;
typedef struct { Block *first, *current; int failed; } Arena;

#define ARENAS 64
typedef struct {
    Shape shape;
    int stride;          /* width, filled up to whole panels */
    float *tables[6];    /* source words, target words, output, output's bias, positions of source and target */
    Norm encoder_norm, decoder_norm;
    Layer *encoder, *decoder;
    Matrix words;        /* the output over all words */
    Rounded output;      /* its columns, where the model is rounded */
    Arena owned;         /* whatever the model itself holds */
    Arena *idle[ARENAS]; /* of searches that have ended */
} Model;

static void *take(Arena *arena, size_t bytes) {
    bytes = (bytes + 63) / 64 * 64;
    Block *block = arena->current;
    while (block && block->size - block->used < bytes) {
        block = block->next;
        if (block) block->used = 0;
    }
    if (!block) {
        size_t size = bytes > ((size_t)4 << 20) ? bytes : (size_t)4 << 20;
        block = aligned_alloc(64, 64 + size);
        if (!block) {
            arena->failed = 1;
            return NULL;
        }
        *block = (Block){NULL, size, 0};
        Block **last = &arena->first;
        while (*last) last = &(*last)->next;
        *last = block;
    }
    arena->current = block;
    void *found = (char *)block + 64 + block->used;
    block->used += bytes;
    return found;
}

static float *numbers(Arena *arena, long count) { return take(arena, sizeof(float) * count); }

/* Where `rows` of x, or columns, of this depth are rounded; nothing where that is not done. */
static Rounded room_to_round(Arena *arena, const Shape *shape, long rows, int depth) {
    if (!shape->rounded) return (Rounded){NULL, NULL};
    return (Rounded){take(arena, 4 * rows * FOURS(depth)), numbers(arena, rows)};
}

/* Room for a matrix of so many columns. */
static void make_room(Arena *arena, const Shape *shape, Matrix *matrix, int biased) {
    long columns = filled(matrix->columns, PANEL), words = shape->rounded ? FOURS(matrix->depth) : matrix->depth;
    matrix->panels = numbers(arena, columns * words);
    matrix->bias = biased ? numbers(arena, columns) : NULL;
    matrix->units = shape->rounded ? numbers(arena, columns) : NULL;
    matrix->sums = shape->rounded ? take(arena, sizeof(int) * columns) : NULL;
    if (matrix->bias) memset(matrix->bias, 0, sizeof(float) * columns);
}

static int deepest(const Shape *shape) { return shape->inner > shape->width ? shape->inner : shape->width; }

static void give_back(Arena *arena) {
    arena->current = arena->first;
    if (arena->first) arena->first->used = 0;
}

#define MOST_KEPT ((size_t)64 << 20) /* bytes of an arena that is kept for the next search: what a long text needed is given back */

static size_t size_of(const Arena *arena) {
    size_t bytes = 0;
    for (const Block *block = arena->first; block; block = block->next) bytes += block->size;
    return bytes;
}

static void release(Arena *arena) {
    for (Block *block = arena->first, *next; block; block = next) next = block->next, free(block);
    arena->first = arena->current = NULL;
}

/* ------------------------------------------------------------ pieces of layers */

/* y = (x - mean) / sqrt(variance + epsilon) gain + shift; rms without mean and shift */
static void normalise(const Model *model, const Norm *norm, const float *x, float *y, int rows) {
    int width = model->shape.width;
    for (int r = 0; r < rows; r++, x += model->stride, y += model->stride) {
        Lanes sum = {0}, squares = {0};
        for (int i = 0; i < width; i += LANES) sum += *(const Lanes *)(x + i);
        float mean = model->shape.rms ? 0.0f : sum_of(sum) / width;
        for (int i = 0; i < width; i += LANES) {
            Lanes apart = *(const Lanes *)(x + i) - mean;
            squares += apart * apart;
        }
        float unit = 1.0f / sqrtf(sum_of(squares) / width + model->shape.epsilon);
        for (int i = 0; i < width; i += LANES) {
            Lanes to = (*(const Lanes *)(x + i) - mean) * unit * *(const Lanes *)(norm->gain + i);
            if (norm->shift) to += *(const Lanes *)(norm->shift + i);
            *(Lanes *)(y + i) = to;
        }
    }
}

/* The context of one query in every head of `size`: `keys` point at a key each, with its value `away` behind it. Keys and weights have room
   for whole lanes. */
INLINE void attend_with(int size, int width, const float *query, const float **keys, int count, int away, float *weights, float *context) {
    int whole = filled(count, LANES);
    float scale = 1.0f / sqrtf((float)size);
    for (int s = count; s < whole; s++) keys[s] = keys[0];
    for (int from = 0; from < width; from += size) {
        float most = -INFINITY;
        for (int s = 0; s < whole; s += LANES) {
            Lanes parts[LANES];
#pragma GCC unroll 16
            for (int k = 0; k < LANES; k++) {
                const float *key = keys[s + k] + from;
                parts[k] = *(const Lanes *)(query + from) * *(const Lanes *)key;
                for (int i = LANES; i < size; i += LANES) parts[k] += *(const Lanes *)(query + from + i) * *(const Lanes *)(key + i);
            }
            *(Lanes *)(weights + s) = sums_of(parts) * scale;
        }
        for (int s = 0; s < count; s++) most = weights[s] > most ? weights[s] : most;
        for (int s = count; s < whole; s++) weights[s] = -INFINITY;
        float share = 1.0f / exponentials(weights, whole, most, 1);
        for (int i = from; i < from + size; i += 2 * LANES) {
            int both = i + LANES < from + size;
            Lanes first = {0}, second = {0};
            for (int s = 0; s < count; s++) {
                const float *value = keys[s] + away + i;
                first += *(const Lanes *)value * weights[s];
                if (both) second += *(const Lanes *)(value + LANES) * weights[s];
            }
            *(Lanes *)(context + i) = first * share;
            if (both) *(Lanes *)(context + i + LANES) = second * share;
        }
    }
}

static void attend(const Shape *shape, const float *query, const float **keys, int count, int away, float *weights, float *context) {
    int size = shape->width / shape->heads;
    switch (size) { /* the usual ones as constants, so that loops over them are none */
        case 32: attend_with(32, shape->width, query, keys, count, away, weights, context); break;
        case 64: attend_with(64, shape->width, query, keys, count, away, weights, context); break;
        default: attend_with(size, shape->width, query, keys, count, away, weights, context);
    }
}

static float activated(float x, int activation) {
    float u = activation == A_GELU_TANH ? 1.5957691216f * (x + 0.044715f * x * x * x) : x; /* tanh(u) is 2 sigmoid(2u) - 1 */
    if (activation == A_GELU) return 0.5f * x * (1.0f + erff(x * 0.70710678f));
    float e = exp_of(u < 0 ? u : -u);
    return x * (u < 0 ? e / (1.0f + e) : 1.0f / (1.0f + e));
}

/* x += feedforward(h) */
static void feed(const Model *model, const FeedForward *layer, const float *h, float *x, int rows, float *inner, const Rounded *room) {
    const Shape *shape = &model->shape;
    long stride = filled(layer->inner.columns, PANEL);
    product(&layer->inner, h, model->stride, rows, inner, stride, shape->activation == A_RELU ? RELU : SET, room);
    if (shape->activation != A_RELU)
        for (int r = 0; r < rows; r++) {
            float *row = inner + r * stride;
            for (int i = 0; i < shape->inner; i++) {
                row[i] = activated(row[i], shape->activation);
                if (shape->gated) row[i] *= row[shape->inner + i];
            }
        }
    product(&layer->outer, inner, stride, rows, x, model->stride, ADD, room);
}

/* ------------------------------------------------------------ reading the sources */

typedef struct {
    const int *ids, *starts; /* all words, and where each sentence begins; one more start than sentences */
    int sentences;
    float **memory; /* keys and values of every word for each layer of the decoder, 2 width each */
} Sources;

static void place(const Model *model, float *x, int word, int position, int side) {
    const float *vector = model->tables[side] + (long)word * model->shape.width;
    const float *code = model->tables[4 + side];
    for (int i = 0; i < model->shape.width; i++) x[i] = vector[i] * model->shape.scale;
    if (code)
        for (int i = 0; i < model->shape.width; i++) x[i] += code[(long)position * model->shape.width + i];
}

static long memory_stride(const Model *model) { return filled(2 * model->shape.width, PANEL); }

static void read_sources(const Model *model, Sources *sources, Arena *arena) {
    const Shape *shape = &model->shape;
    int count = sources->starts[sources->sentences], longest = 0;
    for (int s = 0; s < sources->sentences; s++) {
        int length = sources->starts[s + 1] - sources->starts[s];
        longest = length > longest ? length : longest;
    }
    long wide = filled(3 * shape->width, PANEL), stride = model->stride;
    long inner = filled(shape->inner * (1 + shape->gated), PANEL);
    float *x = numbers(arena, count * stride), *h = numbers(arena, count * stride);
    float *middle = numbers(arena, count * (wide > inner ? wide : inner)), *weights = numbers(arena, filled(longest, LANES));
    const float **keys = take(arena, sizeof(float *) * filled(longest, LANES));
    Rounded room = room_to_round(arena, shape, count, deepest(shape));
    sources->memory = take(arena, sizeof(float *) * shape->decoder_layers);
    if (arena->failed) return;
    for (int l = 0; l < shape->decoder_layers; l++) sources->memory[l] = numbers(arena, count * memory_stride(model));
    if (arena->failed) return;
    for (int s = 0; s < sources->sentences; s++)
        for (int i = sources->starts[s]; i < sources->starts[s + 1]; i++)
            place(model, x + i * stride, sources->ids[i], i - sources->starts[s], 0);
    for (int l = 0; l < shape->encoder_layers; l++) {
        const Layer *layer = &model->encoder[l];
        const float *in = shape->pre ? h : x;
        if (shape->pre) normalise(model, &layer->self.norm, x, h, count);
        product(&layer->self.query_key_value, in, stride, count, middle, wide, SET, &room);
        for (int s = 0; s < sources->sentences; s++) {
            int begin = sources->starts[s], length = sources->starts[s + 1] - begin;
            for (int i = 0; i < length; i++) keys[i] = middle + (begin + i) * wide + shape->width;
            for (int i = 0; i < length; i++)
                attend(shape, middle + (begin + i) * wide, keys, length, shape->width, weights, h + (begin + i) * stride);
        }
        product(&layer->self.output, h, stride, count, x, stride, ADD, &room);
        if (!shape->pre) normalise(model, &layer->self.norm, x, x, count);
        if (shape->pre) normalise(model, &layer->feedforward.norm, x, h, count);
        feed(model, &layer->feedforward, in, x, count, middle, &room);
        if (!shape->pre) normalise(model, &layer->feedforward.norm, x, x, count);
    }
    if (shape->pre) normalise(model, &model->encoder_norm, x, x, count);
    for (int l = 0; l < shape->decoder_layers; l++)
        product(&model->decoder[l].cross.key_value, x, stride, count, sources->memory[l], memory_stride(model), SET, &room);
}

/* ------------------------------------------------------------ writing */

typedef struct {
    int sentence;
    int *tokens, *slots; /* what was written, and the place among the rows of each step where it was */
} Past;

typedef struct {
    float *x, *h, *query, *middle, *weights, *logits;
    const float **keys;
    Rounded room;
    float **steps; /* for each step and layer: queries, keys and values of its rows, 3 width each */
} Desk;

static void set_up(const Model *model, const Sources *sources, Desk *desk, int rows, int longest, long columns, Arena *arena) {
    const Shape *shape = &model->shape;
    int most = longest + 1;
    for (int s = 0; s < sources->sentences; s++) {
        int length = sources->starts[s + 1] - sources->starts[s];
        most = length > most ? length : most;
    }
    desk->x = numbers(arena, (long)rows * model->stride);
    desk->h = numbers(arena, (long)rows * model->stride);
    desk->query = numbers(arena, (long)rows * model->stride);
    desk->middle = numbers(arena, (long)rows * filled(shape->inner * (1 + shape->gated), PANEL));
    desk->weights = numbers(arena, filled(most, LANES));
    desk->logits = numbers(arena, rows * columns);
    desk->keys = take(arena, sizeof(float *) * filled(most, LANES));
    desk->room = room_to_round(arena, shape, rows, deepest(shape));
    desk->steps = take(arena, sizeof(float *) * (longest + 1) * shape->decoder_layers);
}

/* Logits for the word after `written` words in each row. The last of them, or the mark of the beginning, is `last`. */
static void step(const Model *model, const Sources *sources, const Matrix *words, Desk *desk, const Past *const *rows, const int *last,
                 int count, int written, long columns, Arena *arena) {
    const Shape *shape = &model->shape;
    long stride = model->stride, wide = filled(3 * shape->width, PANEL);
    float **now = desk->steps + (long)written * shape->decoder_layers, *x = desk->x, *h = desk->h;
    for (int l = 0; l < shape->decoder_layers; l++) now[l] = numbers(arena, count * wide);
    if (arena->failed) return;
    for (int r = 0; r < count; r++) place(model, x + r * stride, last[r], written, 1);
    for (int l = 0; l < shape->decoder_layers; l++) {
        const Layer *layer = &model->decoder[l];
        const float *in = shape->pre ? h : x;
        if (shape->pre) normalise(model, &layer->self.norm, x, h, count);
        product(&layer->self.query_key_value, in, stride, count, now[l], wide, SET, &desk->room);
        for (int r = 0; r < count; r++) {
            for (int t = 0; t < written; t++)
                desk->keys[t] = desk->steps[(long)t * shape->decoder_layers + l] + rows[r]->slots[t] * wide + shape->width;
            desk->keys[written] = now[l] + r * wide + shape->width;
            attend(shape, now[l] + r * wide, desk->keys, written + 1, shape->width, desk->weights, h + r * stride);
        }
        product(&layer->self.output, h, stride, count, x, stride, ADD, &desk->room);
        if (!shape->pre) normalise(model, &layer->self.norm, x, x, count);

        if (shape->pre) normalise(model, &layer->cross.norm, x, h, count);
        product(&layer->cross.query, in, stride, count, desk->query, stride, SET, &desk->room);
        for (int r = 0; r < count; r++) {
            int begin = sources->starts[rows[r]->sentence], length = sources->starts[rows[r]->sentence + 1] - begin;
            for (int i = 0; i < length; i++) desk->keys[i] = sources->memory[l] + (begin + i) * memory_stride(model);
            attend(shape, desk->query + r * stride, desk->keys, length, shape->width, desk->weights, h + r * stride);
        }
        product(&layer->cross.output, h, stride, count, x, stride, ADD, &desk->room);
        if (!shape->pre) normalise(model, &layer->cross.norm, x, x, count);

        if (shape->pre) normalise(model, &layer->feedforward.norm, x, h, count);
        feed(model, &layer->feedforward, in, x, count, desk->middle, &desk->room);
        if (!shape->pre) normalise(model, &layer->feedforward.norm, x, x, count);
    }
    if (shape->pre) normalise(model, &model->decoder_norm, x, x, count);
    product(words, x, stride, count, desk->logits, columns, SET, &desk->room);
}
