/* The search of decode/search.py for Transformers: greedy or with a beam, one batch of sentences on one core.

The rules are those of guards.py, the beam that of beam.py: tests hold the answers of both against each other. */

#include "network.h"

#define PERIODS 16
#define HARDLY -1e4f /* log-probability of a forced word that the model would never write */
#define DEEP 128     /* numbers are looked through in so many lines at once */

enum { ENDED = 1, LOOPED = 2, CUT = 4 };

typedef struct {
    int sentences, beam, keep, no_repeat, eos, bos, longest; /* `longest`: words of an answer at most, over all sentences */
    float power;
    const int *source, *source_starts;
    const int *prefix, *prefix_starts;
    const int *caps, *guarded;  /* of each sentence: words of its answer at most, and whether loops are broken off */
    const int *loop_runs;       /* by period: repeated words in a row that make a loop */
    const int *never;           /* words that are never chosen */
    int nevers;
    const int *table, *always;  /* a shortlist: (source words, deep) words that each may become, and words for all; NULL weighs all words */
    int depth, deep, alwayses;  /* of each source word's the first `depth` count */
} Questions;

typedef struct {
    int *ids;      /* (sentences, keep, longest) */
    int *lengths;  /* (sentences, keep); -1 where there is no answer */
    int *flags;    /* (sentences, keep) */
    float *totals; /* (sentences, keep) log-probabilities */
    float *scores; /* (sentences, keep) best first */
} Answers;

#define NEVERS 8
#define SAMPLE 128 /* words that speak for those off a shortlist, as in words.py */

/* The words weighed: what the columns of the logits are. Those from `choosable` on are the sample: they count, and are not chosen. */
typedef struct {
    int columns, choosable, never[NEVERS];
    int *ids;          /* sorted up to `choosable`; NULL for all */
    float *speaks_for; /* (sentences, columns) logarithm of how many words a column speaks for in a sentence, added to its logit */
    const Matrix *matrix;
    Matrix narrowed;
} Words;

typedef struct {
    Past past; /* first: rows are handed to `step` as their pasts */
    float total;
    int runs[PERIODS]; /* for how many words it has been repeating what stood 1, 2, ... words earlier */
    int looped, cut;
} Row;

typedef struct { float total; int row, word; } Candidate;

static float penalised(float total, float length, float power) { return total / powf((5.0f + length) / 6.0f, power); }

/* ------------------------------------------------------------ the few largest of many */

static void line_up(const float *x, int count, float *most) {
    for (int l = 0; l < DEEP; l++) most[l] = -INFINITY;
    for (int i = 0; i < count; i += DEEP)
        for (int l = 0; l < DEEP; l++) most[l] = x[i + l] > most[l] ? x[i + l] : most[l];
}

static void forbid(float *x, int count, int column, float *most) {
    int line = column % DEEP;
    x[column] = most[line] = -INFINITY;
    for (int i = line; i < count; i += DEEP) most[line] = x[i] > most[line] ? x[i] : most[line];
}

/* Of equal numbers the one that stands first comes first. */
static int insert(float *best, int *places, int held, int count, float value, int place) {
    int at = held < count ? held++ : count;
    while (at > 0 && (value > best[at - 1] || (value == best[at - 1] && place < places[at - 1]))) {
        if (at < count) best[at] = best[at - 1], places[at] = places[at - 1];
        at--;
    }
    if (at < count) best[at] = value, places[at] = place;
    return held;
}

/* The `count` largest above `least`, largest first; returns how many there are. They stand in lines whose largest are among the largest. */
static int largest(const float *x, int columns, const float *most, int count, float least, float *best, int *places) {
    int held = 0, found = 0;
    for (int l = 0; l < DEEP; l++)
        if (most[l] > least) held = insert(best, places, held, count, most[l], l);
    if (held == count) least = nextafterf(best[count - 1], -INFINITY); /* so many are at least as large */
    for (int l = 0; l < DEEP; l++)
        if (most[l] > least)
            for (int c = l; c < columns; c += DEEP)
                if (x[c] > least) found = insert(best, places, found, count, x[c], c);
    return found;
}

/* ------------------------------------------------------------ what may come next */

static int column_of(const Words *words, int word) {
    if (!words->ids) return word;
    int low = 0, high = words->choosable;
    while (low < high) {
        int middle = (low + high) / 2;
        if (words->ids[middle] < word) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* Mark the words that a sentence may use; returns how many. */
static int allow(const Questions *asked, int sentence, unsigned char *allowed, int vocabulary) {
    int count = 0;
    memset(allowed, 0, vocabulary);
    for (int i = 0; i < asked->alwayses; i++) allowed[asked->always[i]] = 1;
    for (int i = 0; i < asked->nevers; i++) allowed[asked->never[i]] = 1;
    for (int i = asked->prefix_starts[sentence]; i < asked->prefix_starts[sentence + 1]; i++) allowed[asked->prefix[i]] = 1;
    for (int i = asked->source_starts[sentence]; i < asked->source_starts[sentence + 1]; i++) {
        const int *row = asked->table + (long)asked->source[i] * asked->deep;
        for (int d = 0; d < asked->depth; d++) allowed[row[d]] = 1;
    }
    allowed[asked->eos] = 1;
    for (int w = 0; w < vocabulary; w++) count += allowed[w];
    return count;
}

/* All words, or those on the shortlist of any sentence and a sample of all that speaks for the rest. Foreign ones count for nothing. */
static void choose_words(const Model *model, const Questions *asked, Words *words, Arena *arena) {
    int vocabulary = model->shape.target_words, every = vocabulary / SAMPLE > 1 ? vocabulary / SAMPLE : 1;
    int sampled = (vocabulary + every - 1) / every, found = 0;
    *words = (Words){.columns = vocabulary, .choosable = vocabulary, .matrix = &model->words};
    for (int i = 0; i < asked->nevers; i++) words->never[i] = asked->never[i];
    if (!asked->table) return;
    unsigned char *allowed = take(arena, (size_t)asked->sentences * vocabulary), *any = take(arena, vocabulary);
    int *counts = take(arena, sizeof(int) * asked->sentences);
    words->ids = take(arena, sizeof(int) * (vocabulary + sampled));
    if (arena->failed) return;
    memset(any, 0, vocabulary);
    for (int s = 0; s < asked->sentences; s++) {
        unsigned char *own = allowed + (long)s * vocabulary;
        counts[s] = allow(asked, s, own, vocabulary);
        for (int w = 0; w < vocabulary; w++) any[w] |= own[w];
    }
    for (int w = 0; w < vocabulary; w++)
        if (any[w]) words->ids[found++] = w;
    for (int i = 0; i < sampled; i++) words->ids[found + i] = i * every;
    words->choosable = found, words->columns = found + sampled;
    for (int i = 0; i < asked->nevers; i++) words->never[i] = column_of(words, asked->never[i]);
    words->speaks_for = numbers(arena, (long)asked->sentences * words->columns);
    Matrix *narrowed = &words->narrowed;
    narrowed->depth = model->shape.width, narrowed->columns = words->columns;
    words->matrix = narrowed;
    make_room(arena, &model->shape, narrowed, model->tables[3] != NULL);
    if (arena->failed) return;
    if (model->shape.rounded) pack_rounded(narrowed, &model->output, model->tables[3], words->ids);
    else pack(narrowed, model->tables[2], model->tables[3], words->ids);
    for (int s = 0; s < asked->sentences; s++) {
        const unsigned char *own = allowed + (long)s * vocabulary;
        float *speaks_for = words->speaks_for + (long)s * words->columns;
        int off = 0;
        for (int i = 0; i < sampled; i++) off += !own[i * every];
        float others = off ? logf((float)(vocabulary - counts[s]) / off) : -INFINITY;
        for (int c = 0; c < found; c++) speaks_for[c] = own[words->ids[c]] ? 0.0f : -INFINITY;
        for (int i = 0; i < sampled; i++) speaks_for[found + i] = own[i * every] ? -INFINITY : others;
    }
}

/* Forbid the word that would write a run of `length` for the second time. */
static void forbid_repeats(const Questions *asked, const Words *words, const Row *row, int written, float *x, int columns, float *most) {
    int length = asked->no_repeat;
    const int *tokens = row->past.tokens, *begun = tokens + written - (length - 1);
    for (int at = 0; at + length <= written; at++)
        if (!memcmp(tokens + at, begun, sizeof(int) * (length - 1))) forbid(x, columns, column_of(words, tokens[at + length - 1]), most);
}

static void forbid_loops(const Questions *asked, const Words *words, Row *row, int written, float *x, int columns, float *most) {
    float top = -INFINITY;
    int again[PERIODS], found = 0;
    for (int period = 1; period <= PERIODS; period++)
        if (row->runs[period - 1] >= asked->loop_runs[period]) again[found++] = column_of(words, row->past.tokens[written - period]);
    if (!found) return;
    for (int l = 0; l < DEEP; l++) top = most[l] > top ? most[l] : top;
    for (int i = 0; i < found; i++)
        if (x[again[i]] >= top) row->looped = 1;
    for (int i = 0; i < found; i++) forbid(x, columns, again[i], most);
}

/* The likeliest words after a row, at most `count`, with the log-probability of all that is written then, which is more than `least`. */
static int likeliest(const Questions *asked, const Words *words, Row *row, int number, int written, float *x, int count, float least,
                     Candidate *found) {
    int sentence = row->past.sentence, columns = filled(words->columns, DEEP), forced = -1;
    int prefix = asked->prefix_starts[sentence], prefixed = asked->prefix_starts[sentence + 1] - prefix;
    float most[DEEP], top = -INFINITY, sum, best[DEEP], others = 0, forced_logit = 0;
    float apart[NEVERS]; /* logits of what is never chosen, which has its share all the same */
    int places[DEEP];
    if (words->speaks_for) {
        const float *counts = words->speaks_for + (long)sentence * words->columns;
        for (int c = 0; c < words->columns; c++) x[c] += counts[c];
    }
    for (int c = words->columns; c < columns; c++) x[c] = -INFINITY;
    if (written < prefixed) forced = asked->prefix[prefix + written], forced_logit = x[column_of(words, forced)];
    for (int i = 0; i < asked->nevers; i++) apart[i] = x[words->never[i]], x[words->never[i]] = -INFINITY;
    line_up(x, columns, most);
    for (int l = 0; l < DEEP; l++) top = most[l] > top ? most[l] : top;
    for (int i = 0; i < asked->nevers; i++) top = apart[i] > top ? apart[i] : top;
    for (int i = 0; i < asked->nevers; i++) others += expf(apart[i] - top);
    sum = exponentials(x, columns, top, 0) + others;
    float all = top + logf(sum);
    if (forced >= 0) {
        float own = forced_logit - all;
        *found = (Candidate){row->total + (own > HARDLY ? own : HARDLY), number, forced};
        return 1;
    }
    if (words->choosable < words->columns) {
        for (int c = words->choosable; c < words->columns; c++) x[c] = -INFINITY;
        line_up(x, columns, most);
    }
    if (asked->no_repeat && written >= asked->no_repeat) forbid_repeats(asked, words, row, written, x, columns, most);
    if (asked->guarded[sentence]) forbid_loops(asked, words, row, written, x, columns, most);
    int held;
    if (written >= asked->caps[sentence]) {
        int eos = column_of(words, asked->eos);
        row->cut = largest(x, columns, most, 1, x[eos], best, places) > 0; /* something is likelier than the end */
        best[0] = x[eos], places[0] = eos, held = best[0] > -INFINITY;
    } else
        held = largest(x, columns, most, count, least - row->total + all, best, places);
    for (int i = 0; i < held; i++)
        found[i] = (Candidate){row->total + (best[i] - all), number, words->ids ? words->ids[places[i]] : places[i]};
    return held;
}

/* ------------------------------------------------------------ answers */

/* Keep an answer if it is among the best of its sentence. */
static void keep(const Questions *asked, Answers *answers, const Row *row, int written, float total, int ended) {
    long first = (long)row->past.sentence * asked->keep;
    float score = penalised(total, (float)(written + ended), asked->power);
    int at = asked->keep - 1;
    if (!(total > -INFINITY) || (answers->lengths[first + at] >= 0 && !(score > answers->scores[first + at]))) return;
    for (; at > 0 && (answers->lengths[first + at - 1] < 0 || score > answers->scores[first + at - 1]); at--) {
        long to = first + at;
        answers->lengths[to] = answers->lengths[to - 1];
        answers->flags[to] = answers->flags[to - 1];
        answers->totals[to] = answers->totals[to - 1];
        answers->scores[to] = answers->scores[to - 1];
        memcpy(answers->ids + to * asked->longest, answers->ids + (to - 1) * asked->longest, sizeof(int) * asked->longest);
    }
    long to = first + at;
    answers->lengths[to] = written;
    answers->flags[to] = (ended ? ENDED : 0) | (row->looped ? LOOPED : 0) | (row->cut ? CUT : 0);
    answers->totals[to] = total;
    answers->scores[to] = score;
    memcpy(answers->ids + to * asked->longest, row->past.tokens, sizeof(int) * written);
}

/* What a newcomer must beat. */
static float bar(const Questions *asked, const Answers *answers, int sentence) {
    long last = (long)(sentence + 1) * asked->keep - 1;
    return answers->lengths[last] >= 0 ? answers->scores[last] : -INFINITY;
}

/* `row` written on by one word, as `next`. */
static void carry_on(const Row *row, int slot, int written, int word, float total, Row *next) {
    int *tokens = next->past.tokens, *slots = next->past.slots;
    *next = *row;
    next->past.tokens = tokens, next->past.slots = slots, next->total = total;
    memcpy(tokens, row->past.tokens, sizeof(int) * written);
    memcpy(slots, row->past.slots, sizeof(int) * written);
    tokens[written] = word, slots[written] = slot;
    for (int period = 1; period <= PERIODS; period++)
        next->runs[period - 1] = period <= written && tokens[written - period] == word ? row->runs[period - 1] + 1 : 0;
}

/* One word further for the rows of one sentence, of which `found` are the likeliest continuations, best first. Returns how many rows go on. */
static int advance(const Questions *asked, Answers *answers, Row *rows, const Candidate *found, int count, int written, Row *next) {
    int on = 0, first = rows[found[0].row].past.sentence;
    for (int i = 0; i < count && i < asked->beam; i++)
        if (found[i].word == asked->eos) keep(asked, answers, &rows[found[i].row], written, found[i].total, 1);
    if (asked->beam == 1 && found[0].word == asked->eos) return 0;
    float least = bar(asked, answers, first);
    for (int i = 0, living = 0; i < count && living < asked->beam; i++) {
        if (found[i].word == asked->eos) continue;
        living++;
        float soon = penalised(found[i].total, written + 2.0f, asked->power);
        float late = penalised(found[i].total, asked->caps[first] + 1.0f, asked->power);
        if ((soon > late ? soon : late) > least)
            carry_on(&rows[found[i].row], found[i].row, written, found[i].word, found[i].total, &next[on++]);
    }
    return on;
}

static int better(const void *one, const void *other) {
    const Candidate *a = one, *b = other;
    if (a->total != b->total) return a->total < b->total ? 1 : -1;
    return a->row != b->row ? a->row - b->row : a->word - b->word;
}

static Row *room_for(Arena *arena, int rows, int longest) {
    Row *made = take(arena, sizeof(Row) * rows);
    int *words = take(arena, sizeof(int) * 2 * rows * (longest + 1L));
    if (arena->failed) return NULL;
    memset(made, 0, sizeof(Row) * rows);
    for (int r = 0; r < rows; r++) {
        made[r].past.tokens = words + 2L * r * (longest + 1);
        made[r].past.slots = made[r].past.tokens + longest + 1;
    }
    return made;
}

static void search(const Model *model, const Questions *asked, Answers *answers, const volatile int *stop, Arena *arena) {
    Sources sources = {asked->source, asked->source_starts, asked->sentences, NULL};
    int most = asked->sentences * asked->beam, each = asked->beam > 1 ? 2 * asked->beam : 1, count = asked->sentences;
    Words words;
    Desk desk;
    choose_words(model, asked, &words, arena);
    long columns = filled(words.columns, DEEP);
    read_sources(model, &sources, arena);
    set_up(model, &sources, &desk, most, asked->longest, columns, arena);
    Row *rows = room_for(arena, most, asked->longest), *next = room_for(arena, most, asked->longest);
    const Past **pasts = take(arena, sizeof(Past *) * most);
    int *last = take(arena, sizeof(int) * most);
    Candidate *found = take(arena, sizeof(Candidate) * 2 * each);
    if (arena->failed) return;
    for (int s = 0; s < count; s++) rows[s].past.sentence = s;
    for (int written = 0; count; written++) {
        if (stop && *stop) { /* out of time: what is being written counts as it stands */
            for (int r = 0; r < count; r++) keep(asked, answers, &rows[r], written, rows[r].total, 0);
            return;
        }
        for (int r = 0; r < count; r++) pasts[r] = &rows[r].past, last[r] = written ? rows[r].past.tokens[written - 1] : asked->bos;
        step(model, &sources, words.matrix, &desk, pasts, last, count, written, columns, arena);
        if (arena->failed) return;
        int on = 0;
        for (int begin = 0, end; begin < count; begin = end) {
            int seen = 0;
            for (end = begin; end < count && rows[end].past.sentence == rows[begin].past.sentence; end++) {
                float least = seen == each ? found[each - 1].total : -INFINITY;
                seen += likeliest(asked, &words, &rows[end], end, written, desk.logits + end * columns, each, least, found + seen);
                qsort(found, seen, sizeof(Candidate), better);
                seen = seen < each ? seen : each;
            }
            if (seen) on += advance(asked, answers, rows, found, seen, written, next + on);
        }
        Row *before = rows;
        rows = next, next = before, count = on;
    }
}

/* ------------------------------------------------------------ for Python */

static Rounded rounded(Arena *arena, const Shape *shape, const float *weight, int columns, int depth) {
    Rounded made = room_to_round(arena, shape, columns, depth);
    if (arena->failed) return made;
    for (long c = 0; c < columns; c++) made.units[c] = round_row(weight + c * depth, depth, made.numbers + 4 * c * FOURS(depth), 0);
    return made;
}

static Matrix packed(Arena *arena, const Shape *shape, const float *const **tensors, int columns, int depth) {
    const float *weight = *(*tensors)++, *bias = *(*tensors)++;
    Matrix matrix = {.depth = depth, .columns = columns};
    Arena passing = {0};
    make_room(arena, shape, &matrix, bias != NULL);
    if (shape->rounded) {
        Rounded whole = rounded(&passing, shape, weight, columns, depth);
        arena->failed |= passing.failed;
        if (!arena->failed) pack_rounded(&matrix, &whole, bias, NULL);
        release(&passing);
    } else if (!arena->failed)
        pack(&matrix, weight, bias, NULL);
    return matrix;
}

static float *copied(Arena *arena, const float *from, long count) {
    float *to = from ? numbers(arena, count) : NULL;
    if (to) memcpy(to, from, sizeof(float) * count);
    return to;
}

static Norm norm(Arena *arena, const float *const **tensors, int width) {
    const float *gain = *(*tensors)++, *shift = *(*tensors)++;
    return (Norm){copied(arena, gain, width), copied(arena, shift, width)};
}

static Layer layer(Arena *arena, const float *const **tensors, const Shape *shape, int cross) {
    Layer made = {0};
    made.self.norm = norm(arena, tensors, shape->width);
    made.self.query_key_value = packed(arena, shape, tensors, 3 * shape->width, shape->width);
    made.self.output = packed(arena, shape, tensors, shape->width, shape->width);
    if (cross) {
        made.cross.norm = norm(arena, tensors, shape->width);
        made.cross.query = packed(arena, shape, tensors, shape->width, shape->width);
        made.cross.key_value = packed(arena, shape, tensors, 2 * shape->width, shape->width);
        made.cross.output = packed(arena, shape, tensors, shape->width, shape->width);
    }
    made.feedforward.norm = norm(arena, tensors, shape->width);
    made.feedforward.inner = packed(arena, shape, tensors, shape->inner * (1 + shape->gated), shape->width);
    made.feedforward.outer = packed(arena, shape, tensors, shape->width, shape->inner);
    return made;
}

void kente_free(Model *model) {
    for (int i = 0; i < ARENAS; i++)
        if (model->idle[i]) release(model->idle[i]), free(model->idle[i]);
    release(&model->owned);
    free(model);
}

/* A model of copies of these tensors, in the order of native_engine.py; NULL without memory for it. Those that are not there are NULL. */
Model *kente_model(const Shape *shape, const float *const *tensors) {
    Model *model = calloc(1, sizeof(Model));
    if (!model) return NULL;
    Arena *arena = &model->owned;
    int width = shape->width;
    model->shape = *shape;
    model->stride = filled(width, PANEL);
    model->encoder = take(arena, sizeof(Layer) * shape->encoder_layers);
    model->decoder = take(arena, sizeof(Layer) * shape->decoder_layers);
    long sizes[6] = {(long)shape->source_words * width, (long)shape->target_words * width, (long)shape->target_words * width,
                     shape->target_words, (long)shape->longest * width, (long)shape->longest * width};
    const float *const output[2] = {tensors[2], tensors[3]}, *const *both = output;
    for (int i = 0; i < 6; i++, tensors++) {
        int same = i == 2 && tensors[0] == tensors[-1] ? 1 : i == 1 && tensors[0] == tensors[-1] ? 0 : i;
        model->tables[i] = same == i ? copied(arena, *tensors, sizes[i]) : model->tables[same];
    }
    if (!arena->failed) {
        model->words = packed(arena, shape, &both, shape->target_words, width);
        if (shape->rounded && !arena->failed) model->output = rounded(arena, shape, output[0], shape->target_words, width);
        model->encoder_norm = norm(arena, &tensors, width);
        model->decoder_norm = norm(arena, &tensors, width);
        for (int l = 0; l < shape->encoder_layers; l++) model->encoder[l] = layer(arena, &tensors, shape, 0);
        for (int l = 0; l < shape->decoder_layers; l++) model->decoder[l] = layer(arena, &tensors, shape, 1);
    }
    if (!arena->failed) return model;
    kente_free(model);
    return NULL;
}

/* Whether this processor multiplies what is rounded to eight bits. */
int kente_can_round(void) { return CAN_ROUND; }

/* Answers to the questions; 0, or 1 where memory ran out. `stop` may be set by others at any time. Several searches may go on at once. */
int kente_search(Model *model, const Questions *asked, Answers *answers, const volatile int *stop) {
    Arena *arena = NULL;
    for (int i = 0; i < ARENAS && !arena; i++) arena = __atomic_exchange_n(&model->idle[i], NULL, __ATOMIC_ACQ_REL);
    if (!arena) arena = calloc(1, sizeof(Arena));
    if (!arena) return 1;
    for (long i = 0; i < (long)asked->sentences * asked->keep; i++) answers->lengths[i] = -1;
    search(model, asked, answers, stop, arena);
    int failed = arena->failed;
    if (failed || size_of(arena) > MOST_KEPT) release(arena);
    arena->failed = 0;
    give_back(arena);
    for (int i = 0; i < ARENAS && arena; i++) {
        Arena *nobody = NULL;
        if (__atomic_compare_exchange_n(&model->idle[i], &nobody, arena, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) arena = NULL;
    }
    if (arena) release(arena), free(arena);
    return failed;
}
