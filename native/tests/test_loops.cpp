// The native core without Python, meant for AddressSanitizer and UndefinedBehaviorSanitizer (scripts/check runs it so):
// every rule over every kind of batch on every instruction set gives the same bits; damaged batches are refused.
#include "parse/hash.hpp"
#include "tests/models.hpp"

// Every rule of the table has a case here, with as many parameters as it reads.
static void check_cases() {
    for (const rules::Entry& entry : rules::table())
        expect(std::ranges::any_of(cases(), [&](const Case& of) { return entry.name == std::string_view(of.rule); }),
               entry.name);
    for (const Case& of : cases()) {
        const rules::Entry* entry = rules::find(of.rule);
        expect(entry && of.params.size() == count_names(entry->parameters), of.rule);
    }
}

static bool close(const Model& p, const Model& q) {
    auto weight = [](const Weights& w, size_t j, size_t r) {
        return w.a * (w.l1.on ? w.l1.decode(w.v_of(j)[r]) : w.v_of(j)[r]);
    };
    for (size_t j = 0; j < p.w.features; ++j)
        for (size_t r = 0; r < p.w.outputs; ++r) {
            const double one = weight(p.w, j, r);
            if (std::abs(one - weight(q.w, j, r)) > 1e-9 * std::max(1.0, std::abs(one))) return false;
        }
    return true;
}

// Learns a batch of any kind, block by block.
template <class Batch>
static Outcome learn(const Loops* loops, Model& model, const Batch& X, Answers in) {
    return by_blocks(X, [&](const auto& block, size_t row) {
        Answers of = in;
        of.y += row;
        of.importance += row;
        of.base += row;
        return loops->learn(model, block, of);
    });
}

template <class V, class I>
static void check_cell(const Case& rule, Task task, size_t classes, Averaging averaging, double p = 2.0) {
    const size_t d = 53;
    const Rows<V, I> tidy(300, d, classes, task == Task::regress, 7, false),
        untidy(300, d, classes, task == Task::regress, 7, true);
    const Loops* first = loops_scalar();
    Model dense = make_model(rule, task, classes, averaging, d, p), csr = dense, disordered = dense;
    auto learn_dense = [&](const Loops* loops, Model& model) {
        return learn(loops, model, tidy.as_dense(), tidy.answers());
    };
    auto learn_csr = [&](const Loops* loops, Model& model, const Rows<V, I>& rows) {
        return learn(loops, model, rows.as_csr(), rows.answers());
    };
    expect(learn_dense(first, dense).status == Status::ok, "a dense batch is learned");
    expect(learn_csr(first, csr, tidy).status == Status::ok, "a CSR batch is learned");
    expect(learn_csr(first, disordered, untidy).status == Status::ok, "a disordered CSR batch is learned");
    // ROMMA grows on labels drawn at random, and with it every rounding.
    if (!is_one_of(rule, {"ROMMA", "AggressiveROMMA"})) expect(close(dense, csr), "dense and CSR agree");
    expect(same(csr, disordered), "the order of indices in a row does not matter");
    for (const Loops* loops : instruction_sets()) {
        Model again = make_model(rule, task, classes, averaging, d, p), other = again;
        learn_dense(loops, again);
        learn_csr(loops, other, tidy);
        expect(same(again, dense) && same(other, csr), loops->name);
    }
}

// The difference of two rows with its sign: φ of the pair, in both forms.
struct PairDirection {
    std::vector<double> dense, values;
    std::vector<int64_t> indices;  // first the features of the arriving row, then those that only the other row has

    PairDirection(const double* row, const double* other, size_t d, double sign) {
        for (size_t c = 0; c < d; ++c) dense.push_back(sign * (row[c] - other[c]));
        for (bool arrived : {true, false})
            for (size_t c = 0; c < d; ++c)
                if (arrived ? row[c] != 0.0 : row[c] == 0.0 && other[c] != 0.0) {
                    values.push_back(dense[c]);
                    indices.push_back(int64_t(c));
                }
    }
};

// Learns the differences of the pairs one by one: from dense rows, and from sparse rows.
static void learn_differences(const Rows<double, int32_t>& rows, const RankedRows& in, size_t first, Model& by_dense,
                              Model& by_sparse) {
    const size_t d = rows.columns;
    for (size_t i = first; i < rows.rows; ++i)
        for (size_t j = size_t(in.begin[i]); j < i; ++j) {
            if (in.relevance[i] == in.relevance[j]) continue;
            const double sign = in.relevance[j] < in.relevance[i] ? 1.0 : -1.0;
            const PairDirection phi(rows.dense.data() + i * d, rows.dense.data() + j * d, d, sign);
            const double importance = in.importance[i] * in.importance[j];
            loops_scalar()->learn_table(by_dense, {phi.dense.data(), 1, d},
                                        {nullptr, &importance, nullptr, nullptr, nullptr});
            loops_scalar()->learn_one(by_sparse, phi.values.data(), phi.indices.data(), phi.indices.size(), 1.0,
                                      importance, 1.0, nullptr, 0.0);
        }
}

// The pairs of queries give the same bits as learning their differences one by one, in every form and instruction set.
static void check_pairs(const Case& rule, Averaging averaging) {
    const size_t n = 120, d = 53, first = 5, room = 7, query = 20;
    const Rows<double, int32_t> rows(n, d, 3, false, 11, false);
    std::vector<int64_t> begin(n);
    for (size_t i = 0; i < n; ++i) begin[i] = int64_t(std::max(i / query * query, i > room ? i - room : 0));
    const RankedRows in{rows.y.data(), rows.importance.data(), begin.data(), first, nullptr};
    const Model fresh = make_model(rule, Task::direction, 1, averaging, d);
    Model by_dense = fresh, by_sparse = fresh;
    learn_differences(rows, in, first, by_dense, by_sparse);
    std::vector<uint32_t> place(d);
    std::vector<double> arrived(d + 1), x(2 * d + 1);
    std::vector<int32_t> index(2 * d + 1);
    Difference room_for{place.data(), arrived.data(), x.data(), index.data()};
    for (const Loops* loops : instruction_sets()) {
        Model dense = fresh, sparse = fresh, refused = fresh;
        loops->learn_pairs_table(dense, rows.as_dense(), in, room_for);
        const Outcome outcome = loops->learn_pairs_csr(sparse, rows.as_csr(), in, room_for);
        expect(outcome.status == Status::ok && outcome.row == n, "all examples are learned");
        expect(dense.t > 100 && same(dense, by_dense), "dense pairs are their differences");
        expect(same(sparse, by_sparse), "sparse pairs are their differences");
        expect(std::ranges::count(place, 0u) == ptrdiff_t(d), "no place is left marked");
        auto damaged = rows;
        damaged.indices[100] = 99;
        expect(loops->learn_pairs_csr(refused, damaged.as_csr(), in, room_for).status != Status::ok &&
                   same(refused, fresh),
               "an index past the last column is refused");
    }
}

static void check_damage() {
    Rows<double, int32_t> rows(40, 20, 2, false, 3, false);
    for (const Loops* loops : instruction_sets()) {
        auto status = [&](const Rows<double, int32_t>& damaged) {
            Model model = make_model(named("PA1"), Task::classify, 2, Averaging::none, 20);
            return loops->learn_csr(model, damaged.as_csr(), damaged.answers()).status;
        };
        auto damaged = rows;
        damaged.indices[100] = 20;
        expect(status(damaged) == Status::bad_index, "an index past the last column");
        damaged.indices[100] = -1;
        expect(status(damaged) == Status::bad_index, "a negative index");
        damaged = rows;
        damaged.starts[10] = 1 << 30;
        expect(status(damaged) == Status::bad_starts, "a row that ends past the data");
        damaged.starts[10] = -5;
        expect(status(damaged) == Status::bad_starts, "a row that starts before the data");
        damaged = rows;
        damaged.values[77] = NAN;
        expect(status(damaged) == Status::not_finite, "NaN");
        damaged.values[77] = -INFINITY;
        expect(status(damaged) == Status::not_finite, "infinity");
        damaged.values[77] = 1e200;
        expect(status(damaged) == Status::overflow, "a norm that overflows");
        damaged = rows;
        damaged.rows = 0;
        expect(status(damaged) == Status::ok, "no rows");
    }
}

// Float32 values and 64-bit indices come in blocks: the damaged row and its column are those of the batch.
static void check_blocks() {
    Rows<float, int64_t> rows(3000, 20, 2, false, 3, false);  // several blocks
    auto check = [](const auto& X) {
        return by_blocks(X, [](const auto& block, size_t) { return loops_scalar()->check(block, 0); });
    };
    expect(rows.values.size() > 2 * block_numbers && check(rows.as_csr()).status == Status::ok, "several blocks");
    const size_t late = 2900, at = size_t(rows.starts[late]);
    auto damaged = rows;
    damaged.values[at] = NAN;
    Outcome found = check(damaged.as_csr());
    expect(found.status == Status::not_finite && found.row == late && found.column == rows.indices[at],
           "NaN in a block");
    damaged = rows;
    damaged.dense[late * 20 + 3] = INFINITY;
    found = check(damaged.as_dense());
    expect(found.status == Status::not_finite && found.row == late && found.column == 3, "infinity in a block");
    for (int64_t outside : {int64_t(-1), int64_t(20), int64_t(1) << 32}) {  // the last is 0 in 32 bits
        damaged = rows;
        damaged.indices[at] = outside;
        found = check(damaged.as_csr());
        expect(found.status == Status::bad_index && found.row == late && found.column == outside, "an index outside");
    }
    for (int64_t start : {int64_t(-5), int64_t(1) << 40}) {
        damaged = rows;
        damaged.starts[late] = start;
        found = check(damaged.as_csr());
        expect(found.status == Status::bad_starts && found.row == late - 1, "damaged starts");
    }
}

// The same rows as doubles at 32-bit indices, which are not cut into blocks.
static Rows<double, int32_t> converted(const Rows<float, int64_t>& rows) {
    Rows<double, int32_t> out(0, rows.columns, 2, false, 0, false);
    out.rows = rows.rows;
    out.dense.assign(rows.dense.begin(), rows.dense.end());
    out.values.assign(rows.values.begin(), rows.values.end());
    out.indices.assign(rows.indices.begin(), rows.indices.end());
    out.starts.assign(rows.starts.begin(), rows.starts.end());
    return out;
}

// Learning across several blocks gives the same bits as learning all rows at once: with many rows in a block, and with
// rows that are longer than a block.
static void check_learning_in_blocks(size_t n, size_t d) {
    const Rows<float, int64_t> rows(n, d, 5, false, 5, false);
    const Rows<double, int32_t> whole = converted(rows);
    expect(rows.values.size() > 2 * block_numbers && rows.dense.size() > 2 * block_numbers, "several blocks");
    for (const char* rule : {"PA1", "AROW", "AdaGrad"})
        for (const Loops* loops : instruction_sets()) {
            Model dense = make_model(named(rule), Task::classify, 5, Averaging::none, d);
            Model sparse = dense, dense_in_blocks = dense, sparse_in_blocks = dense;
            learn(loops, dense, whole.as_dense(), rows.answers());
            learn(loops, sparse, whole.as_csr(), rows.answers());
            learn(loops, dense_in_blocks, rows.as_dense(), rows.answers());
            learn(loops, sparse_in_blocks, rows.as_csr(), rows.answers());
            expect(dense.t == double(n) && same(dense_in_blocks, dense), "dense rows in blocks");
            expect(sparse.t == double(n) && same(sparse_in_blocks, sparse), "sparse rows in blocks");
        }
}

static void check_weights() {
    Model model = make_model(named("PA1"), Task::classify, 2, Averaging::predictor, 3);
    const double x[] = {1, 2, 3}, y[] = {1};
    loops_scalar()->learn_table(model, {x, 1, 3}, {y, nullptr, nullptr, nullptr, nullptr});
    const double before = model.w.v_of(1)[0];
    model.w.set_outputs(3);
    const double* after = model.w.v_of(1);
    expect(after[0] == -before / 2 && after[1] == before / 2 && after[2] == 0.0,
           "a third class turns w into -w/2, +w/2, 0");
    model.w.set_outputs(20);
    model.w.set_features(100);
    model.size_scratch();
    expect(model.w.cells.size() == 100 * model.w.pitch, "rows and features grow");
    model.w.drop_features(3);
    expect(model.w.features == 3, "features are dropped again");
    expect(murmur3("hello", 5) == 0x248bfa47, "murmur3 of hello");
    expect(murmur3("", 0) == 0, "murmur3 of nothing");
}

// Copies of numbers that grew, shrank and were copied before; under the sanitisers, that nothing is lost or freed
// twice.
static void check_copies() {
    Buffer small, large, copy;
    small.grow(3);
    large.grow(1000);
    for (size_t i = 0; i < 1000; ++i) large.data()[i] = double(i);
    small.data()[2] = 7.0;
    copy.grow(5);
    copy = large;
    copy = copy;
    expect(copy.size() == 1000 && copy.data()[999] == 999.0, "a larger one copied");
    expect(reinterpret_cast<uintptr_t>(copy.data()) % 64 == 0, "a copy begins with a cache line");
    copy = small;
    expect(copy.size() == 3 && copy.data()[2] == 7.0, "a smaller one copied");
    copy.grow(900);
    bool zeros = true;
    for (size_t i = 3; i < 900; ++i) zeros &= copy.data()[i] == 0.0;
    expect(zeros, "what grows after a smaller copy is zero");
    copy.grow(5000);
    Buffer moved(std::move(copy));
    const Buffer again(moved);
    expect(again.size() == 5000 && again.data()[2] == 7.0, "a copy of what was moved");
}

int main() {
    check_cases();
    for (const Case& rule : cases())
        for (Averaging averaging : {Averaging::none, Averaging::predictor, Averaging::post}) {
            if (lazy(rule) && averaging != Averaging::none) continue;
            for (size_t classes : {2, 5, 20}) {
                check_cell<double, int32_t>(rule, Task::classify, classes, averaging);
                check_cell<float, int64_t>(rule, Task::classify, classes, averaging);
            }
            check_cell<double, int64_t>(rule, Task::regress, 1, averaging);
            if (rule.coordinates != Coordinates::vowpal)
                check_cell<float, int32_t>(rule, Task::direction, 1, averaging);
        }
    for (Form other :
         {Form::joseph, Form::chol}) {  // one that shares Sigma among classes and forgets; one that does not
        form = other;
        for (const char* name : {"RLS", "ONS"}) {
            const Case& rule = named(name);
            check_cell<double, int32_t>(rule, Task::classify, 5, Averaging::none);
            check_cell<float, int64_t>(rule, Task::regress, 1, Averaging::none);
        }
    }
    form = Form::gain;
    const Case& alma = named("ALMA");
    for (size_t classes : {2, 5}) check_cell<double, int32_t>(alma, Task::classify, classes, Averaging::none, 5.0);
    check_cell<float, int64_t>(alma, Task::direction, 1, Averaging::none, 5.0);
    for (const char* name : {"Perceptron", "PA1", "Pegasos", "MROC", "FOBOS", "AROW", "ONS", "AdaGrad", "FTRL"})
        for (Averaging averaging : {Averaging::none, Averaging::predictor})
            if (!lazy(named(name)) || averaging == Averaging::none) check_pairs(named(name), averaging);
    check_damage();
    check_blocks();
    check_learning_in_blocks(3000, 20);
    check_learning_in_blocks(4, block_numbers * 2);
    check_weights();
    check_copies();
    std::printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
