// Ranking pairs and structured output: several directions that are learned together.
#include <algorithm>
#include <type_traits>

#include "bind/engine.hpp"

namespace onepass {

static size_t longest(const Csr& X) {
    size_t most = 0;
    for (size_t i = 0; i < X.rows; ++i)
        if (X.starts[i + 1] > X.starts[i]) most = std::max(most, size_t(X.starts[i + 1] - X.starts[i]));
    return std::min(most, X.nonzeros);  // damaged starts are found by the loop
}

template <class Batch>
void Engine::learn_pairs(const Batch& X, Vector<double> relevance, Vector<double> importance, Vector<int64_t> begin,
                         size_t first, nb::object scores, Count learned) {
    auto lock = own();
    RankedRows in{relevance.data(), importance.data(), begin.data(), first, nullptr};
    if (relevance.shape(0) != X.rows || importance.shape(0) != X.rows || begin.shape(0) != X.rows || first > X.rows)
        raise("InputError", "relevance, importance and begin must have an entry for each row");
    for (size_t i = 0; i < X.rows; ++i)
        if (in.begin[i] < 0 || size_t(in.begin[i]) > i) raise("InputError", "a row can meet earlier rows only");
    if (!scores.is_none()) {
        auto out = nb::cast<Out>(scores);
        if (out.shape(0) != X.rows - first || out.shape(1) != 1) raise("InputError", "scores has the wrong shape");
        in.scores = out.data();
    }
    set_features(X.columns);
    const RuleScope scope(python_ ? &callback_ : nullptr);
    Difference phi{};
    std::vector<double> numbers;
    std::vector<int32_t> index;
    if constexpr (!std::is_same_v<Batch, Table>) {
        const size_t most = longest(X);
        numbers.resize(3 * most + 2);
        index.resize(2 * most + 1);
        places_.grow(X.columns);
        phi = {places_.data(), numbers.data(), numbers.data() + most + 1, index.data()};
    }
    Outcome outcome;
    if (python_) {
        outcome = loops->learn_pairs(model, X, in, phi);
    } else {
        nb::gil_scoped_release release;
        outcome = loops->learn_pairs(model, X, in, phi);
    }
    outcome.row -= first;
    learned.data()[0] = int64_t(outcome.row);
    if (outcome.status != Status::ok) refuse(outcome);
}

void Engine::learn_together(nb::list directions, Vector<double> importance) {
    auto lock = own();
    if (importance.shape(0) != nb::len(directions))
        raise("InputError", "importance must have an entry for each direction");
    const size_t known = features.size();
    model.transaction.begin_example(model);
    RollbackGuard all_or_none(model);
    try {
        for (size_t i = 0; i < importance.shape(0); ++i) {
            Read row;
            read(directions[i], row, true);
            teach(row, 1.0, importance.data()[i], 1.0);
        }
    } catch (...) {
        if (!features.hashed()) features.unregister_names(features.size() - known);
        throw;
    }
    all_or_none.commit();
}

template void Engine::learn_pairs(const Table&, Vector<double>, Vector<double>, Vector<int64_t>, size_t, nb::object,
                                  Count);
template void Engine::learn_pairs(const Csr&, Vector<double>, Vector<double>, Vector<int64_t>, size_t, nb::object,
                                  Count);

}  // namespace onepass
