#include "kernels/lasvm.hpp"

#include <algorithm>
#include <functional>

#include "core/memory.hpp"

namespace onepass {

void Machine::resize(size_t slots) {
    for (std::vector<double>* each : {&alpha, &gradient, &lower, &upper}) each->resize(slots, 0.0);
}

// With K alpha = y - gradient on S: W = 1/2 sum alpha (y + gradient).
double Machine::objective() const {
    double sum = 0.0;
    for (size_t s = 0; s < alpha.size(); ++s)
        if (alpha[s] != 0.0) sum += alpha[s] * (side(s) + gradient[s]);
    return sum / 2.0;
}

Lasvm::Lasvm(Kernel k, size_t kernel_slots, bool sparse, size_t columns, const LasvmOptions& o)
    : kernel(std::move(k)), options(o), points(sparse, columns, kernel_slots), cache(o.cache_bytes) {
    symmetric_ = symmetric();
}

// -- machines ---------------------------------------------------------------------------------------------------------

void Lasvm::add_machine(int64_t positive, int64_t negative) {
    Machine machine;
    machine.positive = positive;
    machine.negative = negative;
    machine.resize(slots());
    machines.push_back(std::move(machine));
}

void Lasvm::split() {
    Machine mirror = machines[0];
    std::swap(mirror.positive, mirror.negative);
    machines[0].negative = mirror.negative = Machine::any_other;
    mirror.lower.swap(mirror.upper);
    for (std::vector<double>* each : {&mirror.alpha, &mirror.gradient, &mirror.lower, &mirror.upper})
        for (double& value : *each) value = 0.0 - value;  // and not -0
    mirror.bias = 0.0 - mirror.bias;
    std::swap(mirror.saw_positive, mirror.saw_negative);
    for (size_t slot = 0; slot < slots(); ++slot) users_[slot] += mirror.holds(slot);
    machines.insert(machines.begin(), std::move(mirror));
}

void Lasvm::collect(size_t at) {
    Machine& machine = machines[at];
    for (size_t slot = 0; slot < slots() && machine.members < most_collected; ++slot) {
        const double y = machine.sign(labels[slot]);
        if (users_[slot] > 0 && y != 0.0) admit(machine, slot, y, weights[slot], y);
    }
}

void Lasvm::drop_machines(size_t count) {
    for (; count > 0 && !machines.empty(); --count) {
        for (size_t slot = 0; slot < slots(); ++slot) users_[slot] -= machines.back().holds(slot);
        machines.pop_back();
    }
}

void Lasvm::admit(Machine& machine, size_t slot, double y, double weight, double gradient) {
    machine.alpha[slot] = 0.0;
    machine.gradient[slot] = gradient;
    machine.lower[slot] = y < 0.0 ? -options.C * weight : 0.0;
    machine.upper[slot] = y > 0.0 ? options.C * weight : 0.0;
    (y > 0.0 ? machine.saw_positive : machine.saw_negative) = true;
    if (!machine.saw_both()) machine.bias = y;
    ++machine.members;
    ++users_[slot];
}

void Lasvm::evict(Machine& machine, size_t slot) {
    machine.lower[slot] = machine.upper[slot] = machine.gradient[slot] = 0.0;
    --machine.members;
    if (--users_[slot] == 0) release(slot);
}

// -- slots ------------------------------------------------------------------------------------------------------------

size_t Lasvm::place(const Query& x, int64_t label, double weight, int64_t id) {
    size_t slot = slots();
    if (free_.empty()) {
        points.push(x);
        labels.push_back(label);
        weights.push_back(weight);
        births_.push_back(0);
        users_.push_back(0);
        ids_.push_back(id);
        for (Machine& machine : machines) machine.resize(slots());
    } else {
        std::pop_heap(free_.begin(), free_.end(), std::greater<>());
        slot = free_.back();
        free_.pop_back();
        points.replace(slot, x);
        labels[slot] = label;
        weights[slot] = weight;
        ids_[slot] = id;
    }
    births_[slot] = ++clock_;
    if (id != stranger) slot_of_[id] = slot;
    return slot;
}

void Lasvm::release(size_t slot) {
    cache.drop(slot);
    if (ids_[slot] != stranger) slot_of_.erase(ids_[slot]);
    ids_[slot] = stranger;
    labels[slot] = 0;
    weights[slot] = 0.0;
    free_.push_back(slot);
    std::push_heap(free_.begin(), free_.end(), std::greater<>());
}

void Lasvm::compact() {
    if (free_.empty()) return;
    std::vector<size_t> from;
    for (size_t slot = 0; slot < slots(); ++slot)
        if (users_[slot] > 0) from.push_back(slot);
    const auto renumber = [&from](auto& values) {
        for (size_t to = 0; to < from.size(); ++to) values[to] = values[from[to]];
        values.resize(from.size());
    };
    std::vector<double> keep;
    for (size_t to = 0; to < from.size(); ++to)
        if (from[to] != to) points.replace(to, points.query(from[to], keep));
    while (points.size() > from.size()) points.remove(points.size() - 1);
    for (Machine& machine : machines) {
        renumber(machine.alpha);
        renumber(machine.gradient);
        renumber(machine.lower);
        renumber(machine.upper);
    }
    renumber(labels);
    renumber(weights);
    renumber(births_);
    renumber(users_);
    renumber(ids_);
    cache.renumber(from);
    ++epoch_;
    free_.clear();
    slot_of_.clear();
    for (size_t slot = 0; slot < slots(); ++slot)
        if (ids_[slot] != stranger) slot_of_[ids_[slot]] = slot;
}

void Lasvm::forget_ids() {
    slot_of_.clear();
    std::fill(ids_.begin(), ids_.end(), stranger);
}

void Lasvm::restore() {
    births_.assign(slots(), ++clock_);
    users_.assign(slots(), 0);
    ids_.assign(slots(), stranger);
    slot_of_.clear();
    free_.clear();
    for (Machine& machine : machines) {
        machine.members = 0;
        for (size_t slot = 0; slot < slots(); ++slot) {
            machine.members += machine.holds(slot);
            users_[slot] += machine.holds(slot);
        }
    }
    for (size_t slot = 0; slot < slots(); ++slot)
        if (users_[slot] == 0) free_.push_back(slot);  // rising: a heap
}

size_t Lasvm::support() const {
    size_t count = 0;
    for (size_t slot = 0; slot < slots(); ++slot)
        count +=
            std::any_of(machines.begin(), machines.end(), [slot](const Machine& m) { return m.alpha[slot] != 0.0; });
    return count;
}

// -- kernel rows ------------------------------------------------------------------------------------------------------

void Lasvm::evaluate(const Query& x, size_t from, size_t to, double* out) {
    kernel_loops->row(kernel, x, points, from, to, out);
    evaluations += to - from;
}

void Lasvm::prepare(const Query* rows, const int64_t* ids, size_t count, CachedRow* out) {
    const size_t n = slots();
    // As many stored vectors at a time as the processor's second cache holds: they serve all the rows.
    constexpr size_t numbers = size_t(1) << 15;
    const size_t columns = std::max<size_t>(1, points.columns());
    const size_t block = std::max<size_t>(1, numbers / columns / Points::line) * Points::line;
    for (size_t r = 0; r < count; ++r) {
        out[r].time = ids && holds(ids[r]) ? 0 : clock_;
        out[r].epoch = epoch_;
        if (out[r].values.size() < Points::lined(n)) out[r].values.resize(Points::lined(n));
    }
    for (size_t from = 0; from < n; from += block)
        for (size_t r = 0; r < count; ++r)
            if (out[r].time != 0) evaluate(rows[r], from, std::min(n, from + block), out[r].values.data() + from);
}

// Does K(a, b) have the same bits as K(b, a)? The terms of sparse rows are added in the order of one of the two.
bool Lasvm::symmetric() const {
    const std::function<bool(const Kernel&)> exact = [&exact](const Kernel& k) {
        return k.op != KernelOp::foreign && k.op != KernelOp::precomputed &&
               std::all_of(k.parts.begin(), k.parts.end(), exact);
    };
    return !points.sparse() && exact(kernel);
}

// Fills in the slots that were taken since the row was computed. Where K is symmetric to the last bit, a slot's own row
// may have the value; elsewhere every row is evaluated from its own vector, so that no result depends on the cache.
void Lasvm::complete(const Query& x, size_t slot, CachedRow& row) {
    const size_t n = slots();
    if (row.values.size() < Points::lined(n)) row.values.resize(Points::lined(n));
    if (row.time == 0) evaluate(x, 0, n, row.values.data());
    for (size_t s = 0; s < n && row.time != 0; ++s) {
        if (births_[s] <= row.time) continue;
        if (symmetric_ && slot != nowhere && cache.holds(s) && cache.at(s).time >= births_[slot]) {
            row.values[s] = cache.at(s).values[slot];
            continue;
        }
        double values[Points::line];
        const size_t from = s / Points::line * Points::line, to = std::min(n, from + Points::line);
        evaluate(x, from, to, values);
        std::copy_n(values, to - from, row.values.data() + from);
        s = to - 1;
    }
    // The diagonal's own formula adds up in another order: one of the two must hold everywhere.
    if (slot != nowhere) row.values[slot] = self(slot);
    row.time = clock_;
}

const double* Lasvm::row(size_t slot) {
    CachedRow& row = cache.use(slot, Points::lined(slots()));
    if (row.time != clock_) complete(points.query(slot, room_), slot, row);
    return row.values.data();
}

double Lasvm::self(size_t slot) const {
    return diagonal(kernel, points.norms()[slot], points.sums()[slot], points.selves(slot));
}

// -- the algorithm ----------------------------------------------------------------------------------------------------

LasvmStatus Lasvm::step(Machine& machine, size_t i, size_t j) {
    const double* k_i = row(i);
    const double* k_j = row(j);
    const double k_ii = self(i), k_jj = self(j), eta = k_ii + k_jj - 2.0 * k_i[j];
    const double scale = std::max(std::abs(k_ii), std::abs(k_jj));
    if (options.may_be_indefinite && eta < indefinite_below * scale) return LasvmStatus::indefinite;
    double* alpha = machine.alpha.data();
    double length = std::min(machine.upper[i] - alpha[i], alpha[j] - machine.lower[j]);
    // A flat direction (duplicates) goes to the bound.
    if (eta > epsilon * scale) length = std::min(length, (machine.gradient[i] - machine.gradient[j]) / eta);
    alpha[i] += length;
    alpha[j] -= length;
    lasvm_loops->descend(machine.gradient.data(), k_i, k_j, length, slots());
    for (const size_t s : {i, j}) {
        const double near = epsilon * (machine.upper[s] - machine.lower[s]);
        if (machine.upper[s] - alpha[s] <= near) alpha[s] = machine.upper[s];
        if (alpha[s] - machine.lower[s] <= near) alpha[s] = machine.lower[s];
    }
    if (std::fmod(++machine.steps, recompute_every) == 0.0) recompute(machine);
    return LasvmStatus::ok;
}

void Lasvm::recompute(Machine& machine) {
    for (size_t s = 0; s < slots(); ++s) machine.gradient[s] = machine.side(s);
    for (size_t s = 0; s < slots(); ++s)
        if (machine.alpha[s] != 0.0) kernel_loops->axpy(-machine.alpha[s], row(s), machine.gradient.data(), slots());
}

Extremes Lasvm::extremes(const Machine& m) const {
    return lasvm_loops->extremes(m.alpha.data(), m.gradient.data(), m.lower.data(), m.upper.data(), slots());
}

bool Lasvm::violates(const Machine& machine, const Extremes& pair) const {
    return pair.rise != Extremes::none && pair.fall != Extremes::none &&
           machine.gradient[pair.rise] - machine.gradient[pair.fall] > options.tau;
}

LasvmStatus Lasvm::reprocess(Machine& machine) {
    Extremes pair = extremes(machine);
    if (violates(machine, pair)) {
        const LasvmStatus status = step(machine, pair.rise, pair.fall);
        if (status != LasvmStatus::ok) return status;
        pair = extremes(machine);
    }
    if (pair.rise == Extremes::none || pair.fall == Extremes::none) {  // one class only
        machine.delta = std::numeric_limits<double>::infinity();
        return LasvmStatus::ok;
    }
    const double top = machine.gradient[pair.rise], bottom = machine.gradient[pair.fall];
    useless_.resize(slots());
    const size_t found = lasvm_loops->useless(machine.alpha.data(), machine.gradient.data(), machine.lower.data(),
                                              machine.upper.data(), slots(), top, bottom, useless_.data());
    for (size_t at = 0; at < found; ++at) evict(machine, useless_[at]);
    machine.bias = (top + bottom) / 2.0;
    machine.delta = top - bottom;
    return LasvmStatus::ok;
}

LasvmStatus Lasvm::process(const Query& x, CachedRow& row, int64_t label, double weight, int64_t id, bool stepping) {
    const auto known = id == stranger ? slot_of_.end() : slot_of_.find(id);
    size_t slot = known == slot_of_.end() ? nowhere : known->second;
    if (row.epoch != epoch_) row.time = 0;
    row.epoch = epoch_;
    if (slot == nowhere && row.time != clock_) complete(x, nowhere, row);
    const double* values = slot == nowhere ? row.values.data() : this->row(slot);
    // All gradients first: nothing is touched before x is known to be sound.
    newcomers_.clear();
    bool finite = std::isfinite(diagonal(kernel, x));
    for (size_t m = 0; m < machines.size(); ++m) {
        const Machine& machine = machines[m];
        const double y = machine.sign(label);
        if (y == 0.0 || (slot != nowhere && machine.holds(slot))) continue;
        const bool lonely = y > 0.0 ? !machine.saw_negative : !machine.saw_positive;
        if (lonely && machine.members >= most_collected) continue;
        const double gradient = y - kernel_loops->dot(machine.alpha.data(), values, slots());
        finite &= std::isfinite(gradient);
        newcomers_.push_back({m, y, gradient});
    }
    if (!finite) return LasvmStatus::not_finite;
    if (newcomers_.empty()) return LasvmStatus::ok;
    if (slot == nowhere) {
        slot = place(x, label, weight, id);
        if (row.values.size() < Points::lined(slots())) row.values.resize(Points::lined(slots()));
        row.values[slot] = diagonal(kernel, x);
        row.time = clock_;
        if (cache.has_room(row.values.size())) cache.adopt(slot, row);
    }
    for (const Newcomer& each : newcomers_) admit(machines[each.machine], slot, each.y, weight, each.gradient);
    if (!stepping) return LasvmStatus::ok;
    for (const Newcomer& each : newcomers_) {
        Machine& machine = machines[each.machine];
        Extremes pair = extremes(machine);
        (each.y > 0.0 ? pair.rise : pair.fall) = slot;
        if (!violates(machine, pair)) continue;
        if (!cache.holds(slot)) cache.adopt(slot, row);
        const LasvmStatus status = step(machine, pair.rise, pair.fall);
        if (status != LasvmStatus::ok) return status;
    }
    return LasvmStatus::ok;
}

bool Lasvm::has_room(const Query& x) const {
    const size_t values = points.sparse() ? 2 * x.n : points.columns();
    const double bytes = 8.0 * double(slots() + 1) * double(4 * machines.size() + values);
    return bytes <= small_tables || bytes <= memory_limit_of_rows();
}

LasvmStatus Lasvm::seed(const Query& x, CachedRow& row, int64_t label, double weight, int64_t id) {
    if (options.C * weight == 0.0) return LasvmStatus::ok;
    return process(x, row, label, weight, id, false);
}

LasvmStatus Lasvm::learn(const Query& x, CachedRow& row, int64_t label, double weight, int64_t id) {
    if (options.C * weight == 0.0) {
        ++t;
        return LasvmStatus::ok;
    }
    if (free_.empty() && !has_room(x)) return LasvmStatus::full;
    std::unique_ptr<Before> before;
    if (options.may_be_indefinite) before = remember();
    LasvmStatus status = process(x, row, label, weight, id, true);
    for (size_t m = 0; status == LasvmStatus::ok && m < machines.size(); ++m)
        if (machines[m].sign(label) != 0.0) status = reprocess_repeatedly(machines[m]);
    if (status != LasvmStatus::ok) {
        if (before) undo(*before);
        return status;
    }
    ++t;
    // Gaps cost kernel values: a quarter of them is too many.
    if (free_.size() >= 64 && free_.size() * 4 > slots()) compact();
    return status;
}

LasvmStatus Lasvm::reprocess_repeatedly(Machine& machine) {
    LasvmStatus status = LasvmStatus::ok;
    for (size_t i = 0; status == LasvmStatus::ok && i < options.reprocess_steps; ++i) {
        const double steps = machine.steps;
        const size_t members = machine.members;
        status = reprocess(machine);
        if (machine.steps == steps && machine.members == members) break;  // nor would it move anything again
    }
    const size_t most = most_repeats * machine.members;
    for (size_t i = 0; i < most && status == LasvmStatus::ok && std::isfinite(machine.delta) &&
                       machine.delta > std::max(options.reprocess_until, options.tau);
         ++i)
        status = reprocess(machine);
    return status;
}

bool Lasvm::finish(Machine& machine, LasvmStatus& status) {
    const size_t most = std::max<size_t>(1, most_repeats * machine.members);
    for (size_t i = 0; i < most; ++i) {
        status = reprocess(machine);
        if (status != LasvmStatus::ok || !(machine.delta > options.tau) || std::isinf(machine.delta)) return true;
    }
    return false;
}

// -- a refused example ------------------------------------------------------------------------------------------------

struct Lasvm::Before {
    std::vector<Machine> machines;
    std::vector<int64_t> labels, ids;
    std::vector<double> weights;
    std::vector<uint32_t> users;
    std::vector<size_t> free;
    std::unordered_map<int64_t, size_t> slot_of;
};

std::unique_ptr<Lasvm::Before> Lasvm::remember() const {
    return std::make_unique<Before>(Before{machines, labels, ids_, weights, users_, free_, slot_of_});
}

// The clock goes on, so that rows computed meanwhile are not taken for those of vectors that come later. A vector that
// was evicted meanwhile is still in its slot: the refused one took a free slot, or a new one.
void Lasvm::undo(Before& before) {
    machines = std::move(before.machines);
    labels = std::move(before.labels);
    weights = std::move(before.weights);
    ids_ = std::move(before.ids);
    users_ = std::move(before.users);
    free_ = std::move(before.free);
    slot_of_ = std::move(before.slot_of);
    births_.resize(slots());
    while (points.size() > slots()) points.remove(points.size() - 1);
    for (size_t slot = 0; slot <= slots(); ++slot)
        if (slot == slots() || users_[slot] == 0) cache.drop(slot);
}

// -- prediction -------------------------------------------------------------------------------------------------------

void Lasvm::score(const Query* rows, size_t count, double* out) {
    scored_.resize(std::max(scored_.size(), count));
    prepare(rows, nullptr, count, scored_.data());
    for (size_t r = 0; r < count; ++r)
        for (const Machine& machine : machines)
            *out++ = kernel_loops->dot(machine.alpha.data(), scored_[r].values.data(), slots()) + machine.bias;
}

}  // namespace onepass
