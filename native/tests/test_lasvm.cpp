// LASVM without Python, meant for AddressSanitizer and UndefinedBehaviorSanitizer (scripts/check runs it so): neither
// the instruction set nor the size of the cache nor the size of the block of prepared rows changes a bit, and a refused
// example leaves no trace.
#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/lasvm.hpp"

using namespace onepass;

namespace onepass {
const KernelLoops* kernel_loops = kernel_loops_scalar();
const LasvmLoops* lasvm_loops = lasvm_loops_scalar();
}  // namespace onepass

static int passed = 0, failed = 0;

static void expect(bool holds, const char* what) {
    holds ? ++passed : ++failed;
    if (!holds) std::printf("FAILED: %s\n", what);
}

struct Sets {
    const KernelLoops* kernels;
    const LasvmLoops* lasvm;
};

static std::vector<Sets> instruction_sets() {
    std::vector<Sets> out = {{kernel_loops_scalar(), lasvm_loops_scalar()}};
#ifdef ONEPASS_X86
    if (__builtin_cpu_supports("avx2")) out.push_back({kernel_loops_avx2(), lasvm_loops_avx2()});
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        out.push_back({kernel_loops_avx512(), lasvm_loops_avx512()});
#endif
    return out;
}

struct Stream {
    size_t rows, columns = 5;
    std::vector<double> values, weights;
    std::vector<int64_t> labels, indices;

    Stream(size_t n, uint64_t seed) : rows(n) {
        std::mt19937_64 random(seed);
        std::normal_distribution<double> normal;
        for (size_t i = 0; i < rows; ++i) {
            labels.push_back(int64_t(random() % 3));
            weights.push_back(random() % 10 == 0 ? 0.0 : 0.5 + double(random() % 4));
            for (size_t j = 0; j < columns; ++j) values.push_back(normal(random) + 0.7 * double(labels[i]));
        }
        for (size_t j = 0; j < columns; ++j) indices.push_back(int64_t(j));
    }
    Query query(const Kernel& kernel, size_t i, bool sparse) const {
        Query out;
        out.x = values.data() + i * columns;
        out.index = sparse ? indices.data() : nullptr;
        out.n = columns;
        kernel_loops->prepare(kernel, out);
        return out;
    }
};

// Everything that a file would hold.
static std::vector<double> learned(Lasvm& svm) {
    std::vector<double> out(svm.labels.begin(), svm.labels.end());
    for (const Machine& m : svm.machines) {
        out.insert(out.end(), m.alpha.begin(), m.alpha.end());
        out.insert(out.end(), m.lower.begin(), m.lower.end());
        out.insert(out.end(), m.upper.begin(), m.upper.end());
        for (size_t s = 0; s < m.gradient.size(); ++s) out.push_back(m.contains(s) ? m.gradient[s] : 0.0);
        out.insert(out.end(), {m.bias, m.delta, m.steps});
    }
    return out;
}

static Lasvm make(const Kernel& kernel, bool sparse, size_t cache, bool one_against_one, bool indefinite) {
    LasvmOptions options;
    options.C = 3.0;
    options.cache_bytes = cache;
    options.may_be_indefinite = indefinite;
    Lasvm svm(kernel, 0, sparse, 5, options);
    for (int64_t k = 0; k < 3; ++k)
        if (one_against_one) svm.add_machine((k + 1) % 3, k);
        else svm.add_machine(k, Machine::any_other);
    return svm;
}

static std::vector<double> run(const Kernel& kernel, bool sparse, size_t cache, size_t together, bool one_against_one,
                               bool identify) {
    const Stream stream(90, 7);
    Lasvm svm = make(kernel, sparse, cache, one_against_one, false);
    std::vector<CachedRow> rows(together);
    for (int pass = 0; pass < 2; ++pass)
        for (size_t start = 0; start < stream.rows; start += together) {
            const size_t here = std::min(together, stream.rows - start);
            std::vector<Query> queries;
            std::vector<int64_t> ids;
            for (size_t i = 0; i < here; ++i) {
                queries.push_back(stream.query(kernel, start + i, sparse));
                ids.push_back(identify ? int64_t(start + i) : Lasvm::no_id);
            }
            svm.prepare(queries.data(), ids.data(), here, rows.data());
            for (size_t i = 0; i < here; ++i)
                svm.learn(queries[i], rows[i], stream.labels[start + i], stream.weights[start + i], ids[i]);
        }
    expect(svm.cache.bytes() <= cache || svm.cache.count() <= 2, "the cache keeps to its bytes");
    LasvmStatus status = LasvmStatus::ok;
    for (Machine& machine : svm.machines) {
        svm.finish(machine, status);  // or gives up: the polynomial kernel takes many steps
        double sum = 0.0;
        for (const double alpha : machine.alpha) sum += alpha;
        expect(std::abs(sum) < 1e-9 * 3.0 * 180.0, "the coefficients add up to 0");
    }
    svm.compact();
    expect(svm.stored() == svm.slots(), "no gaps are left");
    std::vector<double> out = learned(svm), scores(3);
    const Query x = stream.query(kernel, 0, sparse);
    svm.score(&x, 1, scores.data());
    out.insert(out.end(), scores.begin(), scores.end());
    return out;
}

static bool same(const std::vector<double>& a, const std::vector<double>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

static void test_same_bits() {
    for (const KernelOp op : {KernelOp::rbf, KernelOp::polynomial}) {
        Kernel kernel;
        kernel.op = op;
        kernel.p[KernelParams::gamma] = 0.4;
        kernel.p[KernelParams::r] = 1.0;
        kernel.p[KernelParams::degree] = 2.0;
        for (const bool sparse : {false, true})
            for (const bool one_against_one : {false, true}) {
                std::vector<double> expected;
                for (const Sets& sets : instruction_sets()) {
                    kernel_loops = sets.kernels;
                    lasvm_loops = sets.lasvm;
                    for (const size_t cache : {size_t(0), size_t(1) << 28})
                        for (const size_t together : {size_t(1), size_t(8), size_t(33)}) {
                            const auto out = run(kernel, sparse, cache, together, one_against_one, !sparse);
                            if (expected.empty()) expected = out;
                            expect(same(out, expected), "bits do not depend on sets, cache or blocks");
                        }
                }
            }
    }
}

static void test_refusals() {
    Kernel kernel;
    kernel.op = KernelOp::sigmoid;
    kernel.p[KernelParams::gamma] = 0.8;
    kernel.p[KernelParams::r] = -0.5;
    const Stream stream(200, 3);
    Lasvm svm = make(kernel, false, 1 << 16, false, true), clean = make(kernel, false, 1 << 16, false, true);
    size_t refused = 0;
    for (size_t i = 0; i < stream.rows; ++i) {
        const Query x = stream.query(kernel, i, false);
        CachedRow row, other;
        if (svm.learn(x, row, stream.labels[i], stream.weights[i], Lasvm::no_id) != LasvmStatus::ok) ++refused;
        else clean.learn(x, other, stream.labels[i], stream.weights[i], Lasvm::no_id);
        expect(same(learned(svm), learned(clean)), "a refused example leaves no trace");
    }
    expect(refused > 5, "the kernel is found to be indefinite");
    const double huge[5] = {1e200, 1e200, 0.0, 0.0, 0.0};
    kernel.op = KernelOp::linear;
    Lasvm linear = make(kernel, false, 1 << 16, false, false);
    Query x;
    x.x = huge;
    x.n = 5;
    kernel_loops->prepare(kernel, x);
    CachedRow row;
    expect(linear.learn(x, row, 1, 1.0, Lasvm::no_id) == LasvmStatus::not_finite, "an overflow is refused");
    expect(linear.slots() == 0 && linear.t == 0, "and not stored");
}

int main() {
    test_same_bits();
    test_refusals();
    std::printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
