/* Values of a model with control flow: tensors, lists of values, and none (NULL). Each is counted by
   those who hold it, and none changes while more than one does.

   Functions that may fail return 0, NO_MEMORY, or MISFIT, and give one more hold on what they make. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { NO_MEMORY = -1, MISFIT = 1 };
enum { BOOL, INT, UINT, OTHER };
enum { ALIGN = 64 };

/* Returns from a function on failure, with `site` where something does not fit. */
#define TRY(call, site)                                  \
    do {                                                 \
        int failed = (call);                             \
        if (failed != 0) return failed == MISFIT ? (site) : failed; \
    } while (0)

typedef struct {
    int32_t number; /* the same for the same type, and for no other */
    int32_t kind;
    int64_t bytes; /* of one element */
} type;

typedef struct value value;
struct value {
    int64_t holds;
    int is_list;
    int is_own;    /* whether the elements are in memory of the value */
    type type;     /* of the elements of a tensor */
    int64_t rank;
    int64_t count; /* elements of a tensor, values of a list */
    int64_t room;  /* for how many values a list has memory */
    int64_t *extents;
    const unsigned char *data;
    value **items;
};

static value *hold(value *v) {
    if (v != NULL) v->holds++;
    return v;
}

static void drop(value *v) {
    if (v == NULL || --v->holds > 0) return;
    for (int64_t k = 0; v->is_list && k < v->count; k++) drop(v->items[k]);
    free(v->items);
    free(v);
}

/* Puts a value where another one was. */
static inline void set(value **place, value *v) {
    value *old = *place;
    *place = v;
    drop(old);
}

/* A tensor with these elements, or with memory for them. */
static int tensor(type type, int64_t rank, const int64_t *extents, const void *data, value **to) {
    int64_t count = 1, bytes;
    for (int64_t k = 0; k < rank; k++) {
        if (extents[k] < 0 || __builtin_mul_overflow(count, extents[k], &count)) return NO_MEMORY;
    }
    if (__builtin_mul_overflow(count, type.bytes, &bytes)) return NO_MEMORY;
    size_t head = sizeof(value) + (size_t)rank * sizeof(int64_t);
    head = (head + ALIGN - 1) / ALIGN * ALIGN;
    if (bytes > INT64_MAX - (int64_t)head) return NO_MEMORY;
    void *memory;
    if (posix_memalign(&memory, ALIGN, head + (data == NULL ? (size_t)bytes : 0)) != 0) {
        return NO_MEMORY;
    }
    value *v = memory;
    *v = (value){.holds = 1, .is_own = data == NULL, .type = type, .rank = rank, .count = count};
    v->extents = (int64_t *)(v + 1);
    if (rank > 0) memcpy(v->extents, extents, (size_t)rank * sizeof(int64_t));
    v->data = data == NULL ? (const unsigned char *)memory + head : data;
    *to = v;
    return 0;
}

/* The elements of a tensor that was just made. */
static inline unsigned char *elements(value *v) { return (unsigned char *)v->data; }

static inline int64_t byte_count(const value *v) { return v->count * v->type.bytes; }

/* Whether a value is a tensor of a type. */
static inline int is_tensor(const value *v, int32_t number, int64_t rank) {
    return v != NULL && !v->is_list && v->type.number == number && v->rank == rank;
}

static inline int has_extents(const value *v, const int64_t *extents) {
    return v->rank == 0 || memcmp(v->extents, extents, (size_t)v->rank * sizeof(int64_t)) == 0;
}

/* An element of a tensor of integers. */
static int element(const value *v, int64_t at, int64_t *to) {
    const unsigned char *from = v->data + at * v->type.bytes;
#define READ(c)                               \
    do {                                      \
        c read;                               \
        memcpy(&read, from, sizeof read);     \
        *to = (int64_t)read;                  \
        return 0;                             \
    } while (0)
    switch (v->type.kind * 16 + v->type.bytes) {
    case BOOL * 16 + 1:
    case UINT * 16 + 1: READ(uint8_t);
    case UINT * 16 + 2: READ(uint16_t);
    case UINT * 16 + 4: READ(uint32_t);
    case UINT * 16 + 8: {
        uint64_t read;
        memcpy(&read, from, sizeof read);
        if (read > INT64_MAX) return MISFIT;
        *to = (int64_t)read;
        return 0;
    }
    case INT * 16 + 1: READ(int8_t);
    case INT * 16 + 2: READ(int16_t);
    case INT * 16 + 4: READ(int32_t);
    case INT * 16 + 8: READ(int64_t);
    default: return MISFIT;
    }
#undef READ
}

/* The one integer of a tensor. */
static int integer(const value *v, int64_t *to) {
    if (v == NULL || v->is_list || v->count != 1) return MISFIT;
    return element(v, 0, to);
}

/* A tensor of one integer. */
static int scalar(type type, int64_t number, value **to) {
    value *v;
    int failed = tensor(type, 0, NULL, NULL, &v);
    if (failed != 0) return failed;
    if (type.bytes == 1) *elements(v) = (unsigned char)number;
    else memcpy(elements(v), &number, sizeof number);
    *to = v;
    return 0;
}

/* Sizes: a tensor of so many integers that are not negative. */
static int sizes_of(const value *v, int64_t count, int64_t *to) {
    if (v == NULL || v->is_list || v->count != count) return MISFIT;
    for (int64_t k = 0; k < count; k++) {
        if (element(v, k, to + k) != 0 || to[k] < 0) return MISFIT;
    }
    return 0;
}

/* A list with memory for some values. */
static int list_of(int64_t count, value *const *items, int64_t room, value **to) {
    if (room < count) room = count;
    value *v = calloc(1, sizeof *v);
    if (v == NULL) return NO_MEMORY;
    *v = (value){.holds = 1, .is_list = 1, .count = count, .room = room};
    if (room > 0) {
        v->items = (uint64_t)room > SIZE_MAX / sizeof(value *) ? NULL
                                                                : malloc((size_t)room * sizeof(value *));
        if (v->items == NULL) {
            free(v);
            return NO_MEMORY;
        }
    }
    for (int64_t k = 0; k < count; k++) v->items[k] = hold(items[k]);
    *to = v;
    return 0;
}

/* Adds a value to the end of a list that nothing else holds. */
static int append(value *list, value *item) {
    if (list->count == list->room) {
        int64_t room = list->room < 4 ? 4 : 2 * list->room;
        value **items = realloc(list->items, (size_t)room * sizeof(value *));
        if (items == NULL) return NO_MEMORY;
        list->items = items;
        list->room = room;
    }
    list->items[list->count++] = hold(item);
    return 0;
}

/* A position below `end` in a list of `length`; a negative one counts from the end of the list. */
static int position(const value *at, int64_t length, int64_t end, int64_t *to) {
    int64_t given;
    if (integer(at, &given) != 0) return MISFIT;
    if (given < 0) given += length;
    if (given < 0 || given >= end) return MISFIT;
    *to = given;
    return 0;
}

static int normal_axis(int64_t axis, int64_t rank, int64_t *to) {
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) return MISFIT;
    *to = axis;
    return 0;
}

/* The product of extents from one axis to another. */
static int64_t product(const int64_t *extents, int64_t from, int64_t to) {
    int64_t all = 1;
    for (int64_t k = from; k < to; k++) all *= extents[k];
    return all;
}

/* Tensors joined along an axis; with `is_new` along one that they lack. */
static int join(int64_t count, value *const *parts, int64_t along, int is_new, value **to) {
    int64_t axis, inside = 1;
    if (count == 0 || parts[0] == NULL || parts[0]->is_list) return MISFIT;
    const value *first = parts[0];
    int64_t rank = first->rank + is_new;
    if (normal_axis(along, rank, &axis) != 0) return MISFIT;
    int64_t *extents = malloc((size_t)rank * sizeof(int64_t));
    if (extents == NULL) return NO_MEMORY;
    for (int64_t k = 0; k < rank; k++) {
        if (k == axis) extents[k] = 0;
        else extents[k] = first->extents[is_new && k > axis ? k - 1 : k];
        if (k > axis) inside *= extents[k];
    }
    for (int64_t p = 0; p < count; p++) {
        const value *part = parts[p];
        int fits = is_tensor(part, first->type.number, first->rank);
        for (int64_t k = 0; fits && k < first->rank; k++) {
            fits = (!is_new && k == axis) || part->extents[k] == first->extents[k];
        }
        int64_t length = fits ? (is_new ? 1 : part->extents[axis]) : 0;
        if (!fits || __builtin_add_overflow(extents[axis], length, &extents[axis])) {
            free(extents);
            return MISFIT;
        }
    }
    value *all;
    int failed = tensor(first->type, rank, extents, NULL, &all);
    int64_t outside = failed == 0 ? product(extents, 0, axis) : 0;
    free(extents);
    if (failed != 0) return failed;
    unsigned char *at = elements(all);
    for (int64_t o = 0; o < outside; o++) {
        for (int64_t p = 0; p < count; p++) {
            int64_t length = is_new ? 1 : parts[p]->extents[axis];
            size_t row = (size_t)(length * inside * first->type.bytes);
            if (row > 0) memcpy(at, parts[p]->data + (size_t)o * row, row);
            at += row;
        }
    }
    *to = all;
    return 0;
}

/* What iterations gave, along a new first axis; without iterations the shape is said. */
static int stack(const value *parts, type type, int64_t rank, const int64_t *extents, value **to) {
    if (parts->count > 0) return join(parts->count, parts->items, 0, 1, to);
    return tensor(type, rank, extents, NULL, to);
}

static int list_at(value *list, value *at, value **to) {
    int64_t k;
    if (list == NULL || !list->is_list || position(at, list->count, list->count, &k) != 0) {
        return MISFIT;
    }
    *to = hold(list->items[k]);
    return 0;
}

/* A list with one value more; `at` is where, or NULL for the end. */
static int list_insert(value *list, value *item, int is_placed, value *at, value **to) {
    if (list == NULL || !list->is_list) return MISFIT;
    int64_t k = list->count;
    if (is_placed && position(at, list->count, list->count + 1, &k) != 0) return MISFIT;
    value *longer;
    int failed = list_of(list->count, list->items, list->count + 1, &longer);
    if (failed != 0) return failed;
    memmove(longer->items + k + 1, longer->items + k, (size_t)(list->count - k) * sizeof(value *));
    longer->items[k] = hold(item);
    longer->count++;
    *to = longer;
    return 0;
}

static int list_erase(value *list, int is_placed, value *at, value **to) {
    if (list == NULL || !list->is_list || list->count == 0) return MISFIT;
    int64_t k = list->count - 1;
    if (is_placed && position(at, list->count, list->count, &k) != 0) return MISFIT;
    value *shorter;
    int failed = list_of(list->count, list->items, 0, &shorter);
    if (failed != 0) return failed;
    value *gone = shorter->items[k];
    shorter->count--;
    memmove(shorter->items + k, shorter->items + k + 1,
            (size_t)(shorter->count - k) * sizeof(value *));
    drop(gone);
    *to = shorter;
    return 0;
}

static int list_length(const value *list, type type, value **to) {
    if (list == NULL || !list->is_list) return MISFIT;
    return scalar(type, list->count, to);
}

static int list_join(const value *list, int64_t axis, int is_new, value **to) {
    if (list == NULL || !list->is_list) return MISFIT;
    return join(list->count, list->items, axis, is_new, to);
}

/* One part of a tensor: `length` positions of an axis, from `start` on. */
static int part_of(const value *x, int64_t axis, int64_t start, int64_t length, int drops, value **to) {
    int64_t extent = x->extents[axis], old = extent;
    int64_t outside = product(x->extents, 0, axis);
    size_t inside = (size_t)(product(x->extents, axis + 1, x->rank) * x->type.bytes);
    int64_t *extents = malloc((size_t)x->rank * sizeof(int64_t));
    if (extents == NULL) return NO_MEMORY;
    memcpy(extents, x->extents, (size_t)x->rank * sizeof(int64_t));
    extents[axis] = length;
    int64_t rank = x->rank;
    if (drops) {
        memmove(extents + axis, extents + axis + 1, (size_t)(rank - axis - 1) * sizeof(int64_t));
        rank--;
    }
    value *part;
    int failed = tensor(x->type, rank, extents, NULL, &part);
    free(extents);
    if (failed != 0) return failed;
    size_t row = (size_t)length * inside;
    for (int64_t o = 0; row > 0 && o < outside; o++) {
        memcpy(elements(part) + (size_t)o * row, x->data + (size_t)(o * old + start) * inside, row);
    }
    *to = part;
    return 0;
}

/* The parts of a tensor along an axis: of one position each, of `lengths` each where this is one
   number without axes, or of the lengths that it lists. */
static int list_split(const value *x, int is_listed, const value *lengths, int64_t along, int keeps,
                      value **to) {
    int64_t axis, each = 1, count, start = 0;
    if (x == NULL || x->is_list || normal_axis(along, x->rank, &axis) != 0) return MISFIT;
    int64_t extent = x->extents[axis];
    int lists = 0;
    if (is_listed) {
        if (lengths == NULL || lengths->is_list) return MISFIT;
        lists = lengths->rank > 0;
        if (!lists && (integer(lengths, &each) != 0 || each <= 0)) return MISFIT;
        if (lists && lengths->type.kind != INT && lengths->type.kind != UINT) return MISFIT;
    }
    count = lists ? lengths->count : extent / each + (extent % each != 0);
    value *parts = NULL;
    int failed = list_of(0, NULL, count, &parts);
    for (int64_t k = 0; failed == 0 && k < count; k++) {
        int64_t length = each < extent - start ? each : extent - start;
        if (lists && (element(lengths, k, &length) != 0 || length < 0 || length > extent - start)) {
            failed = MISFIT;
            break;
        }
        failed = part_of(x, axis, start, length, !is_listed && !keeps, parts->items + k);
        if (failed == 0) parts->count++;
        start += length;
    }
    if (failed == 0 && start != extent) failed = MISFIT;
    if (failed != 0) {
        drop(parts);
        return failed;
    }
    *to = parts;
    return 0;
}

/* The value of an optional. */
static int optional_get(value *v, value **to) {
    if (v == NULL) return MISFIT;
    *to = hold(v);
    return 0;
}
