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
        if (alpha[s] != 0.0) sum += alpha[s] * (y(s) + gradient[s]);
    return sum / 2.0;
}

Lasvm::Lasvm(Kernel k, size_t kernel_slots, bool sparse, size_t columns, const LasvmOptions& o)
    : kernel(std::move(k)), options(o), points(sparse, columns, kernel_slots), cache(o.cache_bytes) {
    exactly_symmetric_ = is_exactly_symmetric();
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
        for (double& value : *each) value = 0.0 - value;  // not -value: 0 stays +0
    mirror.bias = 0.0 - mirror.bias;
    std::swap(mirror.saw_positive, mirror.saw_negative);
    for (size_t slot = 0; slot < slots(); ++slot) users_[slot] += mirror.contains(slot);
    machines.insert(machines.begin(), std::move(mirror));
}

void Lasvm::collect(size_t at) {
    Machine& machine = machines[at];
    for (size_t slot = 0; slot < slots() && machine.members < most_of_one_class; ++slot) {
        const double y = machine.sign(labels[slot]);
        if (users_[slot] > 0 && y != 0.0) insert(machine, slot, y, weights[slot], y);
    }
}

void Lasvm::drop_machines(size_t count) {
    for (; count > 0 && !machines.empty(); --count) {
        for (size_t slot = 0; slot < slots(); ++slot) users_[slot] -= machines.back().contains(slot);
        machines.pop_back();
    }
}

void Lasvm::insert(Machine& machine, size_t slot, double y, double weight, double gradient) {
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

size_t Lasvm::store(const Query& x, int64_t label, double weight, int64_t id) {
    size_t slot = slots();
    if (free_.empty()) {
        points.push(x);
        labels.push_back(label);
        weights.push_back(weight);
        filled_.push_back(0);
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
    filled_[slot] = ++clock_;
    if (id != no_id) slot_of_[id] = slot;
    return slot;
}

void Lasvm::release(size_t slot) {
    cache.remove(slot);
    if (ids_[slot] != no_id) slot_of_.erase(ids_[slot]);
    ids_[slot] = no_id;
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
    std::vector<double> buffer;
    for (size_t to = 0; to < from.size(); ++to)
        if (from[to] != to) points.replace(to, points.query(from[to], buffer));
    while (points.size() > from.size()) points.remove(points.size() - 1);
    for (Machine& machine : machines) {
        renumber(machine.alpha);
        renumber(machine.gradient);
        renumber(machine.lower);
        renumber(machine.upper);
    }
    renumber(labels);
    renumber(weights);
    renumber(filled_);
    renumber(users_);
    renumber(ids_);
    cache.renumber(from);
    ++numbering_;
    free_.clear();
    slot_of_.clear();
    for (size_t slot = 0; slot < slots(); ++slot)
        if (ids_[slot] != no_id) slot_of_[ids_[slot]] = slot;
}

void Lasvm::forget_ids() {
    slot_of_.clear();
    std::fill(ids_.begin(), ids_.end(), no_id);
}

void Lasvm::restore() {
    filled_.assign(slots(), ++clock_);
    users_.assign(slots(), 0);
    ids_.assign(slots(), no_id);
    slot_of_.clear();
    free_.clear();
    for (Machine& machine : machines) {
        machine.members = 0;
        for (size_t slot = 0; slot < slots(); ++slot) {
            machine.members += machine.contains(slot);
            users_[slot] += machine.contains(slot);
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
    // So many stored vectors at a time as fit into the processor's second cache. They are used for all rows.
    constexpr size_t numbers = size_t(1) << 15;
    const size_t columns = std::max<size_t>(1, points.columns());
    const size_t block = std::max<size_t>(1, numbers / columns / Points::line) * Points::line;
    for (size_t r = 0; r < count; ++r) {
        out[r].time = ids && contains(ids[r]) ? 0 : clock_;
        out[r].numbering = numbering_;
        if (out[r].values.size() < Points::lined(n)) out[r].values.resize(Points::lined(n));
    }
    for (size_t from = 0; from < n; from += block)
        for (size_t r = 0; r < count; ++r)
            if (out[r].time != 0) evaluate(rows[r], from, std::min(n, from + block), out[r].values.data() + from);
}

// Whether K(a, b) has the same bits as K(b, a). For sparse vectors the order of the sum depends on the first argument.
bool Lasvm::is_exactly_symmetric() const {
    const std::function<bool(const Kernel&)> exact = [&exact](const Kernel& k) {
        return k.op != KernelOp::call && k.op != KernelOp::precomputed &&
               std::all_of(k.parts.begin(), k.parts.end(), exact);
    };
    return !points.sparse() && exact(kernel);
}

// Computes the values of slots that were filled after the row was computed. An exactly symmetric kernel can take a
// value from the row of the other slot. Otherwise every value is computed from the row's own vector, so that no result
// depends on what the cache contains.
void Lasvm::update_row(const Query& x, size_t slot, CachedRow& row) {
    const size_t n = slots();
    if (row.values.size() < Points::lined(n)) row.values.resize(Points::lined(n));
    if (row.time == 0) evaluate(x, 0, n, row.values.data());
    for (size_t s = 0; s < n && row.time != 0; ++s) {
        if (filled_[s] <= row.time) continue;
        if (exactly_symmetric_ && slot != nowhere && cache.contains(s) && cache.at(s).time >= filled_[slot]) {
            row.values[s] = cache.at(s).values[slot];
            continue;
        }
        double values[Points::line];
        const size_t from = s / Points::line * Points::line, to = std::min(n, from + Points::line);
        evaluate(x, from, to, values);
        std::copy_n(values, to - from, row.values.data() + from);
        s = to - 1;
    }
    // The formula of the diagonal sums in another order than the kernel row. The diagonal's value is used everywhere.
    if (slot != nowhere) row.values[slot] = diagonal_of(slot);
    row.time = clock_;
}

const double* Lasvm::kernel_row(size_t slot) {
    CachedRow& row = cache.use(slot, Points::lined(slots()));
    if (row.time != clock_) update_row(points.query(slot, stored_), slot, row);
    return row.values.data();
}

// The kernel row of an example: that of its slot, or `row`, brought up to date.
const double* Lasvm::arriving_row(const Query& x, CachedRow& row, size_t slot) {
    if (row.numbering != numbering_) row.time = 0;
    row.numbering = numbering_;
    if (slot != nowhere) return kernel_row(slot);
    if (row.time != clock_) update_row(x, nowhere, row);
    return row.values.data();
}

double Lasvm::diagonal_of(size_t slot) const {
    return diagonal(kernel, points.norms()[slot], points.sums()[slot], points.selves(slot));
}

// -- the algorithm ----------------------------------------------------------------------------------------------------

// Moves alpha_rise up and alpha_fall down by the same amount, to the maximum of W or to the nearer bound.
LasvmStatus Lasvm::step(Machine& machine, const Pair& pair) {
    const size_t i = pair.rise, j = pair.fall;
    const double* k_i = kernel_row(i);
    const double* k_j = kernel_row(j);
    const double k_ii = diagonal_of(i), k_jj = diagonal_of(j), eta = k_ii + k_jj - 2.0 * k_i[j];
    const double scale = std::max(std::abs(k_ii), std::abs(k_jj));
    if (options.may_be_indefinite && eta < indefinite_below * scale) return LasvmStatus::indefinite;
    double* alpha = machine.alpha.data();
    double length = std::min(machine.upper[i] - alpha[i], alpha[j] - machine.lower[j]);
    // In a flat direction (equal vectors) W has no maximum before the bound.
    if (eta > epsilon * scale) length = std::min(length, (machine.gradient[i] - machine.gradient[j]) / eta);
    alpha[i] += length;
    alpha[j] -= length;
    lasvm_loops->update_gradient(machine.gradient.data(), k_i, k_j, length, slots());
    for (const size_t s : {i, j}) {  // an alpha next to a bound is set to the bound
        const double near = epsilon * (machine.upper[s] - machine.lower[s]);
        if (machine.upper[s] - alpha[s] <= near) alpha[s] = machine.upper[s];
        if (alpha[s] - machine.lower[s] <= near) alpha[s] = machine.lower[s];
    }
    if (std::fmod(++machine.steps, recompute_every) == 0.0) recompute_gradients(machine);
    return LasvmStatus::ok;
}

void Lasvm::recompute_gradients(Machine& machine) {
    for (size_t s = 0; s < slots(); ++s) machine.gradient[s] = machine.y(s);
    for (size_t s = 0; s < slots(); ++s)
        if (machine.alpha[s] != 0.0)
            kernel_loops->axpy(-machine.alpha[s], kernel_row(s), machine.gradient.data(), slots());
}

Pair Lasvm::find_pair(const Machine& m) const {
    return lasvm_loops->find_pair(m.alpha.data(), m.gradient.data(), m.lower.data(), m.upper.data(), slots());
}

bool Lasvm::violates(const Machine& machine, const Pair& pair) const {
    return pair.exists() && machine.gradient[pair.rise] - machine.gradient[pair.fall] > options.tau;
}

LasvmStatus Lasvm::reprocess(Machine& machine) {
    Pair pair = find_pair(machine);
    if (violates(machine, pair)) {
        if (const LasvmStatus status = step(machine, pair); status != LasvmStatus::ok) return status;
        pair = find_pair(machine);
    }
    if (!pair.exists()) {  // one class only
        machine.delta = std::numeric_limits<double>::infinity();
        return LasvmStatus::ok;
    }
    const double top = machine.gradient[pair.rise], bottom = machine.gradient[pair.fall];
    removable_.resize(slots());
    const size_t found =
        lasvm_loops->find_removable(machine.alpha.data(), machine.gradient.data(), machine.lower.data(),
                                    machine.upper.data(), slots(), top, bottom, removable_.data());
    for (size_t at = 0; at < found; ++at) evict(machine, removable_[at]);
    machine.bias = (top + bottom) / 2.0;
    machine.delta = top - bottom;
    return LasvmStatus::ok;
}

size_t Lasvm::find_slot(int64_t id) const {
    const auto found = id == no_id ? slot_of_.end() : slot_of_.find(id);
    return found == slot_of_.end() ? nowhere : found->second;
}

// Computes g_x = y - sum_s alpha_s k_sx for all machines that insert x, into `insertions_`. Returns whether all of them
// are finite. Nothing is changed before that is known.
bool Lasvm::compute_gradients(const Query& x, const double* k, size_t slot, int64_t label) {
    insertions_.clear();
    bool finite = std::isfinite(diagonal(kernel, x));
    for (size_t m = 0; m < machines.size(); ++m) {
        const Machine& machine = machines[m];
        const double y = machine.sign(label);
        if (y == 0.0 || (slot != nowhere && machine.contains(slot))) continue;
        const bool one_class = y > 0.0 ? !machine.saw_negative : !machine.saw_positive;
        if (one_class && machine.members >= most_of_one_class) continue;
        const double gradient = y - kernel_loops->dot(machine.alpha.data(), k, slots());
        finite &= std::isfinite(gradient);
        insertions_.push_back({m, y, gradient});
    }
    return finite;
}

// Stores x, and its kernel row where the cache has room.
size_t Lasvm::store_with_row(const Query& x, CachedRow& row, int64_t label, double weight, int64_t id) {
    const size_t slot = store(x, label, weight, id);
    if (row.values.size() < Points::lined(slots())) row.values.resize(Points::lined(slots()));
    row.values[slot] = diagonal(kernel, x);
    row.time = clock_;
    if (cache.has_room(row.values.size())) cache.insert(slot, row);
    return slot;
}

// The step of PROCESS: x and the vector that violates most with it.
LasvmStatus Lasvm::process_step(Machine& machine, size_t slot, double y, CachedRow& row) {
    Pair pair = find_pair(machine);
    (y > 0.0 ? pair.rise : pair.fall) = slot;
    if (!violates(machine, pair)) return LasvmStatus::ok;
    if (!cache.contains(slot)) cache.insert(slot, row);
    return step(machine, pair);
}

LasvmStatus Lasvm::process(const Query& x, CachedRow& row, int64_t label, double weight, int64_t id, bool stepping) {
    size_t slot = find_slot(id);
    const double* k = arriving_row(x, row, slot);
    if (!compute_gradients(x, k, slot, label)) return LasvmStatus::not_finite;
    if (insertions_.empty()) return LasvmStatus::ok;
    if (slot == nowhere) slot = store_with_row(x, row, label, weight, id);
    for (const Insertion& each : insertions_) insert(machines[each.machine], slot, each.y, weight, each.gradient);
    for (const Insertion& each : insertions_) {
        if (!stepping) break;
        const LasvmStatus status = process_step(machines[each.machine], slot, each.y, row);
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
    begin();
    LasvmStatus status = process(x, row, label, weight, id, true);
    for (size_t m = 0; status == LasvmStatus::ok && m < machines.size(); ++m)
        if (machines[m].sign(label) != 0.0) status = reprocess_repeatedly(machines[m]);
    if (status != LasvmStatus::ok) {
        roll_back();
        return status;
    }
    commit();
    ++t;
    // Kernel values of free slots are computed for nothing, so at most a quarter of the slots may be free.
    if (free_.size() >= 64 && free_.size() * 4 > slots()) compact();
    return status;
}

LasvmStatus Lasvm::reprocess_repeatedly(Machine& machine) {
    LasvmStatus status = LasvmStatus::ok;
    for (size_t i = 0; status == LasvmStatus::ok && i < options.reprocess_steps; ++i) {
        const double steps = machine.steps;
        const size_t members = machine.members;
        status = reprocess(machine);
        if (machine.steps == steps && machine.members == members) break;  // it would change nothing again
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

// -- one example as a transaction -------------------------------------------------------------------------------------

void Lasvm::begin() {
    if (options.may_be_indefinite) saved_ = Saved{machines, labels, ids_, weights, users_, free_, slot_of_};
}

// The clock does not go back, so that kernel rows which were computed in between do not count as those of later
// vectors.
void Lasvm::roll_back() {
    if (!saved_) return;
    machines = std::move(saved_->machines);
    labels = std::move(saved_->labels);
    weights = std::move(saved_->weights);
    ids_ = std::move(saved_->ids);
    users_ = std::move(saved_->users);
    free_ = std::move(saved_->free);
    slot_of_ = std::move(saved_->slot_of);
    saved_.reset();
    filled_.resize(slots());
    while (points.size() > slots()) points.remove(points.size() - 1);
    for (size_t slot = 0; slot <= slots(); ++slot)
        if (slot == slots() || users_[slot] == 0) cache.remove(slot);
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
