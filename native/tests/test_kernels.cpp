// Kernel learning without Python, meant for AddressSanitizer and UndefinedBehaviorSanitizer (scripts/check runs it so):
// every kernel and every budget, dense and sparse, on every instruction set gives the same bits and stays within B.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

#include "core/rules.hpp"
#include "kernels/kernel_round.hpp"

using namespace onepass;

const KernelLoops* onepass::kernel_loops = kernel_loops_scalar();

static int passed = 0, failed = 0;

static void expect(bool holds, const char* what, int which = 0) {
    holds ? ++passed : ++failed;
    if (!holds) std::printf("FAILED: %s (%d)\n", what, which);
}

static std::vector<const KernelLoops*> instruction_sets() {
    std::vector<const KernelLoops*> out = {kernel_loops_scalar()};
#ifdef ONEPASS_X86
    if (__builtin_cpu_supports("avx2")) out.push_back(kernel_loops_avx2());
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        out.push_back(kernel_loops_avx512());
#endif
    return out;
}

struct Examples {
    std::vector<std::vector<double>> x;
    std::vector<std::vector<int64_t>> index;
    std::vector<double> y;
    size_t columns = 5;

    explicit Examples(bool sparse, size_t n = 150) {
        std::mt19937_64 random(7);
        std::uniform_real_distribution<double> number(0.0, 1.0);
        for (size_t i = 0; i < n; ++i) {
            x.emplace_back();
            index.emplace_back();
            double sum = 0.0;
            for (size_t j = 0; j < columns; ++j) {
                // Some rows are repeated, one is empty.
                const double value = i % 17 == 3 ? 0.5 : (i == 20 ? 0.0 : number(random));
                if (sparse && value < 0.3) continue;
                x.back().push_back(value);
                index.back().push_back(int64_t(j));
                sum += (j % 2 ? 1.0 : -1.0) * value;
            }
            y.push_back(sum > 0.0 ? 1.0 : 0.0);
        }
    }
};

static Kernel kernel_of(KernelOp op) {
    Kernel out;
    out.op = op;
    out.p[KernelParams::c] = out.p[KernelParams::gamma] = 0.7;
    out.p[KernelParams::r] = 0.5;
    out.p[KernelParams::degree] = 3.0;
    if (op == KernelOp::sum || op == KernelOp::product)
        out.parts = {kernel_of(KernelOp::rbf), kernel_of(KernelOp::chi2)};
    if (op == KernelOp::normalized) out.parts = {kernel_of(KernelOp::polynomial)};
    return out;
}

struct Learned {
    Expansion f;
    Budget budget;
    Model model;
};

static bool is_one_of(const BudgetEntry& entry, std::initializer_list<std::string_view> names) {
    return std::ranges::find(names, std::string_view(entry.name)) != names.end();
}

static std::vector<double> learn(Learned& out, const Kernel& kernel, const Examples& rows, bool sparse,
                                 const BudgetEntry& entry, size_t B, size_t classes) {
    const bool passive_aggressive = is_one_of(entry, {"BPAS", "BPANN", "BPAP"});
    out.budget.admit = entry.admit;
    out.budget.every_round = entry.every_round;
    out.budget.B = B;
    for (double& each : out.budget.p) each = 0.5;
    if (passive_aggressive) {
        out.budget.p[BPAParams::ramp] = out.budget.p[BPAParams::squared] = 0.0;
        out.budget.p[BPAParams::C] = 1.0;
    }
    if (is_one_of(entry, {"BudgetPerceptron"})) out.budget.p[BudgetPerceptronParams::beta] = 0.0;
    out.f.stores_gram = entry.gram;
    out.f.stores_inverse = entry.inverse;
    out.f.stores_values = entry.values;
    out.f.tracks_norm = entry.norm;
    out.f.stores_covariance = entry.covariance;
    out.f.initialise(&kernel, sparse, rows.columns, 0);
    out.f.set_outputs(classes);
    out.model.w.set_outputs(classes);
    out.model.size_scratch();
    const rules::Entry& rule = *rules::find(passive_aggressive ? "PA1" : "Perceptron");
    out.model.step = rule.step;
    out.model.params[position_of(passive_aggressive ? "C" : "eta", rule.parameters)] = 1.0;
    for (size_t i = 0; i < rows.x.size(); ++i) {
        Query x{rows.x[i].data(), sparse ? rows.index[i].data() : nullptr, rows.x[i].size()};
        kernel_loops->prepare(kernel, x);
        const double y = classes > 2 ? double(i % classes) : rows.y[i];
        const Status status = learn_kernel_round(out.model, out.f, out.budget, x, y, 1.0, nullptr);
        expect(status == Status::ok, entry.name);
        expect(B == 0 || out.f.size() <= B, entry.name);
    }
    std::vector<double> coefficients;
    for (const auto& row : out.f.coef) coefficients.insert(coefficients.end(), row.begin(), row.end());
    return coefficients;
}

// Several kernel rows at once have the same bits as one after the other, in every instruction set.
static void check_several_rows(size_t columns, size_t count, size_t stored) {
    std::mt19937_64 random(columns + count);
    std::normal_distribution<double> normal;
    std::vector<double> x((count + stored) * columns);
    for (double& each : x) each = normal(random);
    for (size_t i = 0; count > 7 && i < count * columns; ++i)  // features that are 0 or -0 in all rows
        if (i % columns % 3 != 1) x[i] *= 0.0;
    for (KernelOp op : {KernelOp::linear, KernelOp::rbf, KernelOp::epanechnikov, KernelOp::laplacian}) {
        const Kernel kernel = kernel_of(op);
        std::vector<double> first;
        for (const KernelLoops* loops : instruction_sets()) {
            Points points(false, columns, 0), panel(false, columns, 0);
            for (size_t i = 0; i < stored; ++i) {
                Query z{x.data() + (count + i) * columns, nullptr, columns};
                loops->prepare(kernel, z);
                points.push(z);
            }
            const size_t room = Points::lined(stored);
            std::vector<Query> rows(count);
            std::vector<double> out(count * room), one(room);
            std::vector<double*> outs;
            for (size_t q = 0; q < count; ++q) {
                rows[q] = Query{x.data() + q * columns, nullptr, columns};
                outs.push_back(out.data() + q * room);
            }
            loops->prepare_rows(kernel, rows.data(), count, panel);
            const size_t half = stored / 16 * 8;  // in two parts, the first in two again
            loops->rows(kernel, rows.data(), 0, count, panel, points, half, stored, outs.data(), nullptr);
            loops->rows(kernel, rows.data(), 8, count, panel, points, 0, half, outs.data(), x.data());
            loops->rows(kernel, rows.data(), 0, std::min<size_t>(8, count), panel, points, 0, half, outs.data(),
                        x.data());
            bool same = panel.size() == count;
            same &= panel.used.size() == (count > 7 ? (columns + 1) / 3 : columns);
            for (size_t q = 0; q < count; ++q) {
                Query alone{x.data() + q * columns, nullptr, columns};
                loops->prepare(kernel, alone);
                loops->row(kernel, alone, points, 0, stored, one.data());
                same &= alone.norm == rows[q].norm && alone.sum == rows[q].sum && panel.same(q, alone);
                same &= std::equal(one.begin(), one.begin() + ptrdiff_t(stored), outs[q]);
            }
            expect(same, "several rows at once differ from one after the other", int(op));
            if (first.empty()) first = out;
            expect(out == first, "instruction sets differ on several rows", int(op));
        }
    }
}

// Scans find the value at every place, and the first of equal ones.
static void check_scans(size_t n) {
    for (const KernelLoops* loops : instruction_sets())
        for (size_t at = 0; at < n; ++at) {
            std::vector<double> numbers(n);
            for (size_t i = 0; i < n; ++i) numbers[i] = double(i * 7 % 50);
            numbers[at] = numbers[n - 1] = -100.0;
            expect(loops->first_least(numbers.data(), n) == at, "the least is not found", int(n));
            expect(loops->largest(numbers.data(), n) == 100.0, "the largest is not found", int(n));
            expect(loops->finite(numbers.data(), n), "finite numbers are refused", int(n));
            numbers[at] = NAN;
            expect(!loops->finite(numbers.data(), n), "NaN is accepted", int(n));
            numbers[at] = -INFINITY;
            expect(!loops->finite(numbers.data(), n), "infinity is accepted", int(n));
        }
}

// Vectors that are written later have the same values as vectors written at once, in whatever order they are added,
// removed and read.
static void check_unwritten_vectors(size_t columns) {
    std::mt19937_64 random(columns);
    std::vector<std::vector<double>> rows(200, std::vector<double>(columns));
    for (auto& row : rows)
        for (double& each : row) each = double(random() % 1000);
    Points waiting(false, columns, 0), written(false, columns, 0);
    std::vector<double> keep;
    bool same = true;
    size_t next = 0;  // sometimes slots are used in turn, so that many of one group are not yet written
    for (const auto& row : rows) {
        Query x{row.data(), nullptr, columns};
        const size_t what = random() % 8;
        if (waiting.size() > 20 && what == 0) {
            const size_t gone = random() % waiting.size();
            waiting.remove(gone);
            written.remove(gone);
        }
        const size_t at = waiting.size() ? (what < 4 ? random() : next++) % waiting.size() : 0;
        const bool in_place = waiting.size() > 12 && what < 5;
        in_place ? written.replace(at, x) : written.push(x);
        x.lasting = random() % 4 > 0;
        in_place ? waiting.replace(at, x) : waiting.push(x);
        for (size_t i = 0; what == 7 && i < written.size(); ++i) same &= waiting.same(i, written.query(i, keep));
    }
    waiting.settle();
    rows.clear();
    for (size_t i = 0; i < written.size(); ++i) same &= waiting.same(i, written.query(i, keep));
    expect(same && waiting.size() == written.size(), "vectors that are written later differ from those written at once",
           int(columns));
}

// Learns the rows in every instruction set: all of them must end with the same coefficients. Returns how many rounds
// changed the model.
static double learn_everywhere(const Kernel& kernel, const Examples& rows, bool sparse, const BudgetEntry& budget,
                               size_t B, size_t classes, const char* differs, int which) {
    std::vector<double> first;
    double k = INFINITY;
    for (const KernelLoops* loops : instruction_sets()) {
        kernel_loops = loops;
        Learned learned;
        const std::vector<double> coefficients = learn(learned, kernel, rows, sparse, budget, B, classes);
        if (first.empty()) first = coefficients;
        expect(coefficients == first, differs, which);
        k = std::min(k, learned.model.k);
    }
    return k;
}

static void check_kernels(const Examples& rows, bool sparse) {
    for (int op = 0; op <= int(KernelOp::box); ++op)
        if (KernelOp(op) != KernelOp::precomputed && KernelOp(op) != KernelOp::call)
            learn_everywhere(kernel_of(KernelOp(op)), rows, sparse, *find_budget("Unlimited"), 0, 2,
                             "instruction sets differ on a kernel", op);
}

// Is there such a budget of B vectors (0: without a limit) for so many classes?
static bool is_valid(const BudgetEntry& budget, size_t B, size_t classes) {
    const bool limited = !is_one_of(budget, {"Unlimited", "Shrinking"});
    const bool optional_limit = is_one_of(budget, {"BudgetPerceptron", "Projectron", "ALD"});
    const bool two_classes_only = is_one_of(budget, {"BudgetPerceptron", "Forgetron", "ProjectronPP", "ALD"});
    if (two_classes_only && classes > 2) return false;
    return limited ? B > 0 || optional_limit : B == 0;
}

static void check_budgets(const Examples& rows, bool sparse) {
    const Kernel rbf = kernel_of(KernelOp::rbf);
    for (const BudgetEntry& budget : budget_table())
        for (size_t B : {size_t(0), size_t(1), size_t(40)})
            for (size_t classes : {size_t(2), size_t(3)}) {
                if (!is_valid(budget, B, classes)) continue;
                const double k = learn_everywhere(rbf, rows, sparse, budget, B, classes, budget.name, int(B));
                expect(k > 0.0, budget.name, int(B));
            }
}

// The last vector takes the slot of a removed one, in more columns than before.
static void check_removal() {
    Points points(false, 3, 0);
    std::vector<double> keep, x = {1.0, 2.0, 3.0};
    for (size_t i = 0; i < 70; ++i) {
        x[0] = double(i);
        points.push(Query{x.data(), nullptr, 3});
    }
    points.remove(3);
    points.widen(5);
    expect(points.query(3, keep).x[0] == 69.0 && points.value(3, 4) == 0.0, "a removed slot is not the last one's");
    while (points.size()) points.remove(0);
}

int main() {
    for (size_t columns : {size_t(3), size_t(41)})
        for (size_t count : {size_t(1), size_t(7), size_t(16), size_t(23)})
            for (size_t stored : {size_t(1), size_t(9), size_t(37)}) check_several_rows(columns, count, stored);
    for (bool sparse : {false, true}) {
        const Examples rows(sparse);
        check_kernels(rows, sparse);
        check_budgets(rows, sparse);
    }
    check_removal();
    for (const KernelLoops* loops : instruction_sets()) {
        kernel_loops = loops;
        for (size_t columns : {1, 3, 64, 65, 200}) check_unwritten_vectors(columns);
    }
    for (size_t n : {1, 7, 9, 31, 32, 64, 65, 200}) check_scans(n);
    std::printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
