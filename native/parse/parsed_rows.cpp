#include "parse/parsed_rows.hpp"

#include "parse/hash.hpp"

namespace onepass {

void ParsedRows::close() {
    value.release_if_empty();
    constexpr double beyond = 0x1p53;
    whole_labels.resize(rows());
    bool all = true;
    for (size_t i = 0; i < rows(); ++i) {
        const double y = label.data()[i];
        const bool inside = y > -beyond && y < beyond;  // NaN is not
        whole_labels[i] = int64_t(inside ? y : 0.5);
        all &= double(whole_labels[i]) == y;
    }
    if (!all) whole_labels.clear();
}

void ParsedRows::assign_columns(Names& names) {
    if (!assigned && new_names.size() > 0) {
        std::vector<int32_t> columns_of(new_names.size());
        for (size_t i = 0; i < new_names.size(); ++i)
            columns_of[i] = names.intern(new_names[i], hash_name(new_names[i].data(), new_names[i].size()));
        for (size_t i = 0; i < index.size(); ++i)
            if (index.data()[i] < 0) index.data()[i] = columns_of[size_t(-1 - index.data()[i])];
        assigned = true;
    }
    for (size_t i = 0; i < index.size(); ++i)
        if (index.data()[i] >= columns) columns = index.data()[i] + 1;
}

}  // namespace onepass
