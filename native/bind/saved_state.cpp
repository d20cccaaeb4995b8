#include "bind/saved_state.hpp"

namespace onepass {

static std::string text_of_shape(const SavedState::Shape& shape) {
    std::string text;
    for (size_t length : shape) text += (text.empty() ? "" : " x ") + std::to_string(length);
    return text;
}

void SavedState::require_shape(const std::string& name, const Shape& expected, const Shape& got) {
    if (got == expected) return;
    raise("ModelFileError", "the array '" + name + "' has the wrong shape: expected " + text_of_shape(expected) +
                                ", got " + text_of_shape(got));
}

std::vector<double> SavedState::numbers(const std::string& name) const {
    const auto given = vector<double>(name);
    return {given.data(), given.data() + given.shape(0)};
}

std::vector<double> SavedState::numbers(const std::string& name, size_t length) const {
    const auto given = vector<double>(name, length);
    return {given.data(), given.data() + length};
}

std::vector<int64_t> SavedState::indices(const std::string& name, double end) const {
    std::vector<int64_t> out;
    for (double value : numbers(name)) {
        if (!(value >= 0.0 && value < end))
            raise("ModelFileError", "the array '" + name + "' holds an index outside its table");
        out.push_back(int64_t(value));
    }
    return out;
}

In2<double> SavedState::table(const std::string& name, size_t rows, size_t columns) const {
    const auto given = table(name);
    require_shape(name, {rows, columns}, {given.shape(0), given.shape(1)});
    return given;
}

}  // namespace onepass
