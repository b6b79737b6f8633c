/* Runs a program over pieces: branches, loops, lists, and sizes that are found on the way.

   The program is `plan::program` of the runtime, written as a table of numbers; these functions are those
   of the runtime's `control`. Values lie in registers, sizes in slots, in which -1 is a size that is not
   known. A list in the table is its length and its numbers; a block is the list of its results, how many
   operations it has, and these. What an operation returns where something does not fit stands in the
   table as well. */

enum { CONSTANT, COPY, PIECE, BIND, SIZES, LIST, IF, LOOP };
enum { NUMBER, SLOT, ADD, SUB, MUL, DIV, MOD, MIN, MAX };
enum { OF, AT, INSERT, ERASE, LENGTH, SPLIT, JOIN, NOTHING, HAS, GET };

/* An input or output. */
typedef struct {
    type type;
    int64_t rank;
    const int64_t *extents; /* NULL where they lie in the shapes */
    int64_t place;          /* there, from this number on */
} port;

/* A plan by itself. Where its sizes are open, `shapes` computes how large everything is. */
typedef struct {
    int64_t input_count, output_count, size_count;
    const port *inputs, *outputs;
    const int64_t *sizes; /* of each: an input and its axis, or -1 and which size that a call passes */
    int32_t (*shapes)(const context_type *, const int64_t *, int64_t *);
    int32_t (*run)(const context_type *, const void *const *, void *const *, const void *const *, void *);
    int32_t (*run_open)(const context_type *, const int64_t *, const void *const *, void *const *,
                        const void *const *, void *);
    const void *const *constants;
    int64_t arena_bytes; /* or where this number lies in the shapes */
    int32_t base;        /* what is added to its results */
} piece;

typedef struct {
    const int64_t *code;
    int64_t body; /* where the block begins that runs */
    int64_t register_count, slot_count, shape_count;
    int64_t input_count, output_count;
    const port *inputs, *outputs;
    const int64_t *sizes; /* a list of slots with the numbers of the shapes that they get */
    const piece *pieces;
    const unsigned char *constants;
    const context_type *context;
    int32_t misfit; /* the result where a value is not what a piece takes */
    int32_t wrong_output;
} control_program;

/* One run. */
typedef struct {
    const control_program *program;
    const int64_t *given; /* shapes of inputs and outputs */
    value **registers;
    int64_t *slots;
    int64_t *shapes; /* those of the piece that runs, as its arena */
    void *arena;
    size_t arena_bytes;
} run_state;

static inline int64_t next(const int64_t **at) { return *(*at)++; }

static inline const int64_t *list(const int64_t **at) {
    const int64_t *all = *at;
    *at += 1 + all[0];
    return all;
}

static inline type type_at(const int64_t **at) {
    type read = {(int32_t)(*at)[0], (int32_t)(*at)[1], (*at)[2]};
    *at += 3;
    return read;
}

/* Forgets the values of registers. */
static void clear(run_state *m, const int64_t *registers) {
    for (int64_t k = 1; k <= registers[0]; k++) set(&m->registers[registers[k]], NULL);
}

/* Moves as many values as `to` has from some registers to others, all at the same time. */
static void copy(run_state *m, const int64_t *from, const int64_t *to, int64_t count) {
    value *copied[count + 1];
    for (int64_t k = 0; k < count; k++) copied[k] = hold(m->registers[from[k]]);
    for (int64_t k = 0; k < count; k++) set(&m->registers[to[k]], copied[k]);
}

/* A size, as `Dim::value` has it: whether it is known. */
static int size(const run_state *m, const int64_t **at, int64_t *to) {
    int64_t kind = next(at), a, b;
    if (kind == NUMBER || kind == SLOT) {
        a = next(at);
        *to = kind == NUMBER ? a : m->slots[a];
        return kind == NUMBER || *to >= 0;
    }
    int is_known = size(m, at, &a) & size(m, at, &b);
    if (!is_known) return 0;
    switch (kind) {
    case ADD: return !__builtin_add_overflow(a, b, to);
    case SUB: return !__builtin_sub_overflow(a, b, to);
    case MUL: return !__builtin_mul_overflow(a, b, to);
    case DIV: *to = b > 0 ? a / b : 0; return b > 0;
    case MOD: *to = b > 0 ? a % b : 0; return b > 0;
    case MIN: *to = a < b ? a : b; return 1;
    default: *to = a > b ? a : b; return 1;
    }
}

static const int64_t *extents_of(const port *p, const int64_t *shapes) {
    return p->extents != NULL || p->rank == 0 ? p->extents : shapes + p->place;
}

static int fits(const value *v, const port *p, const int64_t *shapes) {
    return is_tensor(v, p->type.number, p->rank) && has_extents(v, extents_of(p, shapes));
}

static int make_arena(run_state *m, size_t bytes) {
    if (bytes <= m->arena_bytes) return 0;
    free(m->arena);
    m->arena = NULL;
    m->arena_bytes = 0;
    if (posix_memalign(&m->arena, ALIGN, bytes) != 0) return NO_MEMORY;
    m->arena_bytes = bytes;
    return 0;
}

/* Runs a piece; its results are new values. */
static int call_piece(run_state *m, const piece *p, value *const *in, const int64_t *passed,
                      value **out) {
    int result = 0;
    int32_t misfit = m->program->misfit;
    const context_type *context = m->program->context;
    const void *inputs[p->input_count + 1];
    void *outputs[p->output_count + 1];
    for (int64_t k = 0; k < p->input_count; k++) {
        if (!is_tensor(in[k], p->inputs[k].type.number, p->inputs[k].rank)) return misfit;
        inputs[k] = in[k]->data;
    }
    size_t bytes = (size_t)p->arena_bytes;
    if (p->shapes != NULL) {
        int64_t sizes[p->size_count + 1];
        for (int64_t k = 0; k < p->size_count; k++) {
            int64_t input = p->sizes[2 * k], at = p->sizes[2 * k + 1];
            sizes[k] = input < 0 ? passed[at] : in[input]->extents[at];
        }
        result = p->shapes(context, sizes, m->shapes);
        if (result != 0) return result > 0 ? result + p->base : result;
        bytes = (size_t)m->shapes[p->arena_bytes];
    }
    for (int64_t k = 0; k < p->input_count; k++) {
        if (!fits(in[k], &p->inputs[k], m->shapes)) return misfit;
    }
    TRY(make_arena(m, bytes), 0);
    int64_t made = 0;
    for (; result == 0 && made < p->output_count; made += result == 0) {
        const port *output = &p->outputs[made];
        const int64_t *extents = extents_of(output, m->shapes);
        result = tensor(output->type, output->rank, extents, NULL, &out[made]);
        if (result == 0) outputs[made] = elements(out[made]);
    }
    if (result == 0) {
        if (p->shapes != NULL) {
            result = p->run_open(context, m->shapes, inputs, outputs, p->constants, m->arena);
        } else {
            result = p->run(context, inputs, outputs, p->constants, m->arena);
        }
        if (result > 0) result += p->base;
    }
    for (int64_t k = 0; result != 0 && k < made; k++) drop(out[k]);
    return result;
}

static int run_piece(run_state *m, const int64_t **at) {
    const piece *p = &m->program->pieces[next(at)];
    const int64_t *args = list(at), *sizes = list(at), *outs = list(at);
    value *in[args[0] + 1], *out[outs[0] + 1];
    int64_t passed[sizes[0] + 1];
    for (int64_t k = 0; k < args[0]; k++) in[k] = m->registers[args[k + 1]];
    for (int64_t k = 0; k < sizes[0]; k++) passed[k] = m->slots[sizes[k + 1]];
    int failed = call_piece(m, p, in, passed, out);
    if (failed != 0) return failed;
    for (int64_t k = 0; k < outs[0]; k++) set(&m->registers[outs[k + 1]], out[k]);
    return 0;
}

/* Takes sizes, and refuses other ones than those that are declared. */
static int bring(run_state *m, const int64_t **at, const int64_t *found, int64_t site) {
    const int64_t *brings = list(at); /* a position and its slot, for each */
    for (int64_t k = 1; k < brings[0]; k += 2) m->slots[brings[k + 1]] = found[brings[k]];
    for (int64_t k = 0, count = next(at); k < count; k++) {
        int64_t declared;
        if (size(m, at, &declared) && declared >= 0 && declared != found[k]) return (int)site;
    }
    return 0;
}

static int bind(run_state *m, const int64_t **at) {
    const value *of = m->registers[next(at)];
    int64_t number = next(at), rank = next(at), site = next(at);
    if (!is_tensor(of, (int32_t)number, rank)) return (int)site;
    return bring(m, at, of->extents, site);
}

static int find_sizes(run_state *m, const int64_t **at) {
    const value *of = m->registers[next(at)];
    int64_t count = next(at), site = next(at), found[count + 1];
    TRY(sizes_of(of, count, found), (int)site);
    return bring(m, at, found, site);
}

static int constant(run_state *m, const int64_t **at) {
    int64_t to = next(at), place = next(at);
    type type = type_at(at);
    const int64_t *extents = list(at);
    value *made;
    TRY(tensor(type, extents[0], extents + 1, m->program->constants + place, &made), 0);
    set(&m->registers[to], made);
    return 0;
}

static int list_operator(run_state *m, const int64_t **at) {
    int64_t which = next(at), site = next(at), axis = next(at), flag = next(at), to = next(at);
    type type = type_at(at); /* of a scalar that it makes */
    const int64_t *args = list(at);
    int64_t count = args[0];
    value *in[count + 3], *made = NULL;
    for (int64_t k = 0; k < count + 3; k++) in[k] = k < count ? m->registers[args[k + 1]] : NULL;
    int done = 0;
    switch (which) {
    case OF: done = list_of(count, in, 0, &made); break;
    case AT: done = list_at(in[0], in[1], &made); break;
    case INSERT: done = list_insert(in[0], in[1], count > 2, in[2], &made); break;
    case ERASE: done = list_erase(in[0], count > 1, in[1], &made); break;
    case LENGTH: done = list_length(in[0], type, &made); break;
    case SPLIT: done = list_split(in[0], count > 1, in[1], axis, flag != 0, &made); break;
    case JOIN: done = list_join(in[0], axis, flag != 0, &made); break;
    case HAS: done = scalar(type, in[0] != NULL, &made); break;
    case GET: done = optional_get(in[0], &made); break;
    default: break;
    }
    TRY(done, (int)site);
    set(&m->registers[to], made);
    return 0;
}

static int operation(run_state *m, const int64_t **at);

static int block(run_state *m, const int64_t *at) {
    list(&at);
    for (int64_t count = next(&at); count > 0; count--) {
        int failed = operation(m, &at);
        if (failed != 0) return failed;
    }
    return 0;
}

static int branch(run_state *m, const int64_t **at) {
    const value *of = m->registers[next(at)];
    int64_t site = next(at), then = next(at), otherwise = next(at), cond;
    const int64_t *outs = list(at);
    TRY(integer(of, &cond), (int)site);
    const int64_t *chosen = m->program->code + (cond != 0 ? then : otherwise);
    int failed = block(m, chosen);
    if (failed == 0) copy(m, chosen + 1, outs + 1, outs[0]);
    return failed;
}

/* What is carried and what is stacked lies in registers of the loop's own, so that it goes with the
   run where an iteration fails. */
static int repeat(run_state *m, const int64_t **at) {
    int64_t site = next(at), trip = INT64_MAX, go = 1;
    const int64_t *limit = list(at), *first = list(at); /* one register, or none */
    const int64_t *carried = list(at), *lost = list(at), *held = list(at), *lists = list(at);
    const int64_t *params = list(at), *body = m->program->code + next(at), *left = list(at);
    const int64_t *outs = list(at);
    value **registers = m->registers;
    if (limit[0] > 0) TRY(integer(registers[limit[1]], &trip), (int)site);
    if (first[0] > 0) TRY(integer(registers[first[1]], &go), (int)site);
    copy(m, carried + 1, held + 1, held[0]);
    clear(m, lost);
    for (int64_t k = 1; k <= lists[0]; k++) {
        value *made;
        TRY(list_of(0, NULL, 0, &made), 0);
        set(&registers[lists[k]], made);
    }
    type count_type = type_at(at);
    for (int64_t i = 0; go != 0 && i < trip; i++) {
        value *count;
        TRY(scalar(count_type, i, &count), 0);
        set(&registers[params[1]], count);
        copy(m, held + 1, params + 2, held[0]);
        clear(m, held);
        int failed = block(m, body);
        if (failed != 0) return failed;
        TRY(integer(registers[body[1]], &go), (int)site);
        copy(m, body + 2, held + 1, held[0]);
        for (int64_t k = 1; k <= lists[0]; k++) {
            TRY(append(registers[lists[k]], registers[body[1 + held[0] + k]]), 0);
        }
        clear(m, left);
    }
    copy(m, held + 1, outs + 1, held[0]);
    for (int64_t k = 1; k <= lists[0]; k++) {
        int64_t differs = next(at);
        type type = type_at(at);
        int64_t rank = next(at), extents[rank + 1];
        /* Without iterations, sizes that are not known count as zero. */
        extents[0] = 0;
        for (int64_t axis = 1; axis < rank; axis++) {
            if (!size(m, at, &extents[axis]) || extents[axis] < 0) extents[axis] = 0;
        }
        value *made;
        TRY(stack(registers[lists[k]], type, rank, extents, &made), (int)differs);
        set(&registers[outs[held[0] + k]], made);
    }
    clear(m, held);
    clear(m, lists);
    return 0;
}

static int operation(run_state *m, const int64_t **at) {
    int failed = 0;
    switch (next(at)) {
    case CONSTANT: failed = constant(m, at); break;
    case COPY: {
        const int64_t *from = (*at)++, *to = (*at)++;
        copy(m, from, to, 1);
        break;
    }
    case PIECE: failed = run_piece(m, at); break;
    case BIND: failed = bind(m, at); break;
    case SIZES: failed = find_sizes(m, at); break;
    case LIST: failed = list_operator(m, at); break;
    case IF: failed = branch(m, at); break;
    default: failed = repeat(m, at); break;
    }
    if (failed == 0) clear(m, list(at));
    return failed;
}

static void finish(run_state *m) {
    for (int64_t k = 0; m->registers != NULL && k < m->program->register_count; k++) {
        drop(m->registers[k]);
    }
    free(m->registers);
    free(m->slots);
    free(m->shapes);
    free(m->arena);
}

/* Runs the program on inputs of the given shapes; `finish` comes after it in any case. */
static int start(run_state *m, const control_program *program, const int64_t *given,
                 const void *const *inputs) {
    *m = (run_state){.program = program, .given = given};
    m->registers = calloc((size_t)program->register_count + 1, sizeof *m->registers);
    m->slots = malloc(((size_t)program->slot_count + 1) * sizeof *m->slots);
    m->shapes = malloc(((size_t)program->shape_count + 1) * sizeof *m->shapes);
    if (m->registers == NULL || m->slots == NULL || m->shapes == NULL) return NO_MEMORY;
    for (int64_t k = 0; k < program->slot_count; k++) m->slots[k] = -1;
    for (int64_t k = 0; k < program->input_count; k++) {
        const port *p = &program->inputs[k];
        TRY(tensor(p->type, p->rank, extents_of(p, given), inputs[k], &m->registers[k]), 0);
    }
    const int64_t *sizes = program->sizes;
    for (int64_t k = 1; k < sizes[0]; k += 2) m->slots[sizes[k]] = given[sizes[k + 1]];
    return block(m, program->code + program->body);
}

static const value *result_of(const run_state *m, int64_t k) {
    return m->registers[m->program->code[m->program->body + 1 + k]];
}

/* Copies the results to the caller's memory. */
static int write_outputs(const run_state *m, void *const *outputs) {
    for (int64_t k = 0; k < m->program->output_count; k++) {
        const value *v = result_of(m, k);
        if (!fits(v, &m->program->outputs[k], m->given)) return m->program->wrong_output;
        if (byte_count(v) > 0) memcpy(outputs[k], v->data, (size_t)byte_count(v));
    }
    return 0;
}

/* The results as values that stay when the inputs go. */
static int keep_outputs(const run_state *m, value **outputs) {
    for (int64_t k = 0; k < m->program->output_count; k++) {
        const port *p = &m->program->outputs[k];
        const value *v = result_of(m, k);
        if (!is_tensor(v, p->type.number, p->rank)) return m->program->wrong_output;
        if (v->is_own) {
            outputs[k] = hold((value *)v);
            continue;
        }
        TRY(tensor(v->type, v->rank, v->extents, NULL, &outputs[k]), 0);
        if (byte_count(v) > 0) memcpy(elements(outputs[k]), v->data, (size_t)byte_count(v));
    }
    return 0;
}
