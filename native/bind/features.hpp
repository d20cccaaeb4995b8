// Feature names as Python gives them: mappings to rows of (index, value). The one header that knows Python.
#pragma once
#include <nanobind/nanobind.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bind/numbers.hpp"
#include "core/memory.hpp"
#include "parse/hash.hpp"

namespace onepass {

namespace nb = nanobind;

// Raises onepass.errors.<kind>(message).
[[noreturn]] inline void raise(const char* kind, const std::string& message) {
    nb::object type = nb::module_::import_("onepass.errors").attr(kind);
    PyErr_SetString(type.ptr(), message.c_str());
    throw nb::python_error();
}

// Refuses so many features, by an error of that name; `most`: the model's own limit, or 0.
inline void require_few(size_t count, size_t most, const char* error) {
    if (most == 0 && count <= (size_t(1) << 16)) return;  // so few that nobody's limit is looked up
    try {
        if (const std::string wrong = too_many_features(count, most); !wrong.empty()) raise(error, wrong);
    } catch (const std::invalid_argument& wrong) {
        raise("ParameterError", wrong.what());
    }
}

// Refuses tables that take more than the limit of memory, by an error of that name.
inline void require_memory(double bytes, const std::string& what, const std::string& advice, const char* error) {
    if (bytes <= small_tables) return;
    try {
        if (const std::string wrong = too_large(bytes, what, advice); !wrong.empty()) raise(error, wrong);
    } catch (const std::invalid_argument& wrong) {
        raise("ParameterError", wrong.what());
    }
}

inline std::string text_of(nb::handle object) { return nb::cast<std::string>(nb::repr(object)); }

// A sparse row in the making.
struct NamedRow {
    std::vector<PyObject*> name;
    std::vector<int64_t> index;
    std::vector<double> value;
    std::vector<PyObject*> unknown;   // names not seen before (borrowed from the mapping, or from `made`)
    std::vector<nb::object> made;     // "name=value" strings of categorical features
    uint64_t version = 0, names = 0;  // of the dict and of the names that it still holds; 0 where it may not
    void clear() {
        version = 0;
        name.clear();
        index.clear();
        value.clear();
        unknown.clear();
        made.clear();
    }
};

class Features {
 public:
    // bits < 0: every name has its own index. Otherwise index = hash of the name, cut to bits.
    explicit Features(int bits) : bits_(bits) { clear_cache(1024); }
    Features(const Features&) = delete;
    Features& operator=(const Features&) = delete;
    ~Features() {
        forget_last();
        for (Seen& seen : cache_) Py_XDECREF(seen.name);
    }

    bool hashed() const { return bits_ >= 0; }
    size_t slots() const { return size_t(1) << bits_; }  // of hashed ones
    nb::list names() const { return names_; }
    nb::dict index() const { return index_; }

    // Reads a mapping. Unknown names get index -1 - position in row.unknown; nothing is remembered yet.
    // Three short loops, so that the many places in memory are asked for together: values, indices, weights.
    void read(nb::handle mapping, NamedRow& row, const double* weights, size_t pitch) {
        const uint64_t version = version_of(mapping.ptr());
        if (version != 0 && row.version == version && row.names == names_version_) return;
        row.clear();
        bool categorical = false;
        if (PyDict_Check(mapping.ptr()) && read_like_last(mapping.ptr(), row)) {
            if (hashed()) merge(row);
            row.version = version;
            row.names = names_version_;
            return;
        }
        if (!(PyDict_Check(mapping.ptr()) && read_plain(mapping.ptr(), row))) {
            // Anything that may run Python code while it is read is read from a list of its items, which holds them.
            row.clear();
            categorical = true;  // names may repeat
            nb::object items = nb::steal(PyMapping_Items(mapping.ptr()));
            if (!items.is_valid()) throw nb::python_error();
            row.made.push_back(items);
            row.name.resize(nb::len(items));
            row.value.resize(nb::len(items));
            size_t kept = 0;
            for (nb::handle item : items) {
                if (!PyTuple_Check(item.ptr()) || PyTuple_GET_SIZE(item.ptr()) != 2)
                    raise("InputError", "a mapping's items must be pairs of name and value, got " + text_of(item));
                kept += read_item(PyTuple_GET_ITEM(item.ptr(), 0), PyTuple_GET_ITEM(item.ptr(), 1), row, kept);
            }
            row.name.resize(kept);
            row.value.resize(kept);
        }
        row.index.resize(row.name.size());
        for (size_t i = 0; i < row.name.size(); ++i) {
            const int64_t at = find(row.name[i]);
            row.index[i] = at;
            if (at >= 0) __builtin_prefetch(weights + size_t(at) * pitch);
            else row.index[i] = set_aside(row.name[i], row, categorical);
        }
        if (!categorical && row.unknown.empty()) {
            keep_names(row);
            row.version = version;
            row.names = names_version_;
        }
        if (hashed() || categorical) merge(row);
    }

    // Gives the unknown names of a row their indices. Returns how many are new.
    size_t admit(NamedRow& row) {
        if (row.unknown.empty()) return 0;
        const size_t before = size();
        for (PyObject* name : row.unknown) append(name);
        for (int64_t& at : row.index)
            if (at < 0) at = int64_t(before) - 1 - at;
        return row.unknown.size();
    }

    // One more name, which must be new.
    void append(PyObject* name) {
        PyList_Append(names_.ptr(), name);
        nb::object at = nb::steal(PyLong_FromSize_t(size() - 1));
        PyDict_SetItem(index_.ptr(), name, at.ptr());
        remember(name, int64_t(size() - 1));
        if (2 * size() > cache_.size() && cache_.size() < largest_cache) grow_cache();
    }

    // Forgets the newest names again, after a round that was refused.
    void forget(size_t count) {
        if (count == 0) return;
        for (size_t i = size() - count; i < size(); ++i) PyDict_DelItem(index_.ptr(), PyList_GET_ITEM(names_.ptr(), i));
        PyList_SetSlice(names_.ptr(), Py_ssize_t(size() - count), Py_ssize_t(size()), nullptr);
        clear_cache(cache_.size());
    }

    void set_names(nb::list names) {
        names_ = nb::list();
        index_ = nb::dict();
        for (nb::handle name : names) {
            names_.append(name);
            index_[name] = nb::int_(names_.size() - 1);
        }
        clear_cache(cache_.size());
    }

    size_t size() const { return size_t(PyList_GET_SIZE(names_.ptr())); }

    // The index of a name, or -1 where it is unknown.
    int64_t find(PyObject* name) {
        Seen& seen = cache_[slot(name)];
        if (seen.name == name) return seen.at;
        int64_t at = -1;
        if (hashed()) {
            at = int64_t(hash(name) & ((uint64_t(1) << bits_) - 1));
        } else {
            PyObject* found = PyDict_GetItemWithError(index_.ptr(), name);
            if (!found) {
                if (PyErr_Occurred()) throw nb::python_error();
                return -1;
            }
            at = PyLong_AsSsize_t(found);
        }
        // A name that only this mapping holds will not come again as the same object: not worth a place.
        if (Py_REFCNT(name) > 1) remember(name, at);
        return at;
    }

 private:
    // Names that came as the very same object are not hashed again. A name held here cannot be freed, so its address
    // stays its own; the table is bounded, a newcomer takes its place.
    struct Seen {
        PyObject* name;
        int64_t at;
    };
    static constexpr size_t largest_cache = size_t(1) << 18;

    size_t slot(PyObject* name) const {
        return size_t((uint64_t(reinterpret_cast<uintptr_t>(name)) * 0x9E3779B97F4A7C15ull) >> cache_shift_);
    }

    void remember(PyObject* name, int64_t at) {
        Seen& seen = cache_[slot(name)];
        Py_INCREF(name);
        Py_XDECREF(seen.name);
        seen = {name, at};
    }

    void grow_cache() {
        std::vector<Seen> old;
        old.swap(cache_);
        clear_cache(4 * old.size());
        for (Seen& seen : old)
            if (seen.name) {
                remember(seen.name, seen.at);
                Py_DECREF(seen.name);
            }
    }

    // What a dict held when it had this version, it holds while it has it: numbers and strings do not change. Learned
    // right after it was predicted, it need not be read again. 0 where there is no such number, as from Python 3.12 on.
    static uint64_t version_of([[maybe_unused]] PyObject* mapping) {
#if PY_VERSION_HEX < 0x030C0000
        if (PyDict_Check(mapping)) return reinterpret_cast<PyDictObject*>(mapping)->ma_version_tag;
#endif
        return 0;
    }

    // Rows of a table have the same names in the same order: compared with those of an earlier row, they need not be
    // found. Rows of words never do; then fewer and fewer rows are kept to be compared with. Floats only, none of
    // them 0: false where there is anything else. Two loops, so that many values are fetched together.
    bool read_like_last(PyObject* mapping, NamedRow& row) {
        const size_t size = last_name_.size();
        if (size == 0 || size_t(PyDict_GET_SIZE(mapping)) != size) return false;
        // Its table is read from end to end: asked for at once. It may be longer or shorter; that does no harm.
        const char* table = reinterpret_cast<const char*>(reinterpret_cast<PyDictObject*>(mapping)->ma_keys);
        for (size_t at = 0; at < std::min<size_t>(20 * size, 4096); at += 64) __builtin_prefetch(table + at);
        last_value_.resize(size);
        PyObject *name, *value;
        Py_ssize_t position = 0;
        for (size_t i = 0; PyDict_Next(mapping, &position, &name, &value); ++i) {
            if (name != last_name_[i]) return false;
            __builtin_prefetch(value);
            last_value_[i] = value;
        }
        row.value.resize(size);
        for (size_t i = 0; i < size; ++i) {
            if (!PyFloat_CheckExact(last_value_[i])) return false;
            const double number = PyFloat_AS_DOUBLE(last_value_[i]);
            if (number == 0.0 || !std::isfinite(number)) return false;
            row.value[i] = number;
        }
        row.index = last_index_;
        between_ = 1;
        return true;
    }

    void keep_names(const NamedRow& row) {
        if (--until_kept_ > 0) return;
        until_kept_ = between_ = std::min(2 * between_, 4096);
        forget_last();
        last_name_ = row.name;
        last_index_ = row.index;
        for (PyObject* name : last_name_) Py_INCREF(name);
    }

    void forget_last() {
        for (PyObject* name : last_name_) Py_DECREF(name);
        last_name_.clear();
        last_index_.clear();
    }

    void clear_cache(size_t size) {
        ++names_version_;
        forget_last();
        for (Seen& seen : cache_) Py_XDECREF(seen.name);
        cache_.assign(size, Seen{nullptr, 0});
        cache_shift_ = 64;
        for (size_t s = size; s > 1; s /= 2) --cache_shift_;
    }

    static uint32_t hash(PyObject* name) {
        nb::object text = nb::borrow(name);
        if (!PyUnicode_Check(name)) text = nb::str(nb::handle(name));
        Py_ssize_t length = 0;
        const char* utf8 = PyUnicode_AsUTF8AndSize(text.ptr(), &length);
        if (utf8) return hash_name(utf8, size_t(length));
        PyErr_Clear();  // lone surrogates: hashed as they are
        nb::object bytes = nb::steal(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "surrogatepass"));
        if (!bytes.is_valid()) throw nb::python_error();
        return hash_name(PyBytes_AS_STRING(bytes.ptr()), size_t(PyBytes_GET_SIZE(bytes.ptr())));
    }

    // A dict of exact strings to exact floats, the common case, in one fast loop; false where there is anything else.
    bool read_plain(PyObject* mapping, NamedRow& row) {
        PyObject *name, *value;
        Py_ssize_t position = 0;
        const size_t size = size_t(PyDict_GET_SIZE(mapping));
        row.name.resize(size);
        row.value.resize(size);
        size_t kept = 0;
        while (PyDict_Next(mapping, &position, &name, &value)) {
            if (!PyUnicode_CheckExact(name)) return false;
            double number;
            if (PyFloat_CheckExact(value)) number = PyFloat_AS_DOUBLE(value);
            else if (PyLong_CheckExact(value) || PyBool_Check(value)) number = PyLong_AsDouble(value);
            else return false;
            if (!std::isfinite(number) || (number == -1.0 && PyErr_Occurred())) {
                PyErr_Clear();
                return false;  // the slow loop says what is wrong
            }
            __builtin_prefetch(&cache_[slot(name)]);
            row.name[kept] = name;
            row.value[kept] = number;
            kept += number != 0.0;
        }
        row.name.resize(kept);
        row.value.resize(kept);
        return true;
    }

    // Any item; returns how many features it makes: one, or none where the value is zero.
    size_t read_item(PyObject* name, PyObject* value, NamedRow& row, size_t at) {
        if (!PyUnicode_CheckExact(name) && !PyLong_CheckExact(name)) {
            // NumPy's strings and whole numbers are names too, as the plain ones they stand for.
            nb::object plain;
            if (PyUnicode_Check(name)) plain = nb::steal(PyUnicode_FromObject(name));
            else if (PyIndex_Check(name) && !PyBool_Check(name)) plain = nb::steal(PyNumber_Index(name));
            if (!plain.is_valid()) {
                PyErr_Clear();
                raise("FeatureError", "feature names must be strings or whole numbers, got " + text_of(name) + " (" +
                                          Py_TYPE(name)->tp_name + "); convert it with str()");
            }
            row.made.push_back(plain);
            name = plain.ptr();
        }
        double number;
        if (PyUnicode_Check(value)) {
            nb::object made = nb::steal(PyUnicode_FromFormat("%S=%U", name, value));
            if (!made.is_valid()) throw nb::python_error();
            row.made.push_back(made);
            name = made.ptr();
            number = 1.0;
        } else {
            number = to_number(name, value);
        }
        if (number == 0.0) return 0;
        if (!std::isfinite(number))
            raise("InputError", "feature " + text_of(name) + " must be a finite number, got " + text_of(value) +
                                    "; leave the feature out where its value is missing");
        row.name[at] = name;
        row.value[at] = number;
        return 1;
    }

    static int64_t set_aside(PyObject* name, NamedRow& row, bool categorical) {
        // The same new name twice (a category spelled like another feature) must not become two features.
        for (size_t i = 0; categorical && i < row.unknown.size(); ++i)
            if (PyUnicode_Check(name) && PyUnicode_Check(row.unknown[i]) &&
                PyUnicode_Compare(name, row.unknown[i]) == 0)
                return -1 - int64_t(i);
        row.unknown.push_back(name);
        return -int64_t(row.unknown.size());
    }

    static double to_number(PyObject* name, PyObject* value) {
        // NumPy scalars and other number types convert through __float__; None, lists and mappings do not.
        const PyNumberMethods* methods = Py_TYPE(value)->tp_as_number;
        double number = -1.0;
        if (methods && (methods->nb_float || methods->nb_index)) number = real_of(value);
        else PyErr_SetString(PyExc_TypeError, "");
        if (number == -1.0 && PyErr_Occurred()) {
            PyErr_Clear();
            raise("InputError", "feature " + text_of(name) + " must be a number, a string or a boolean, got " +
                                    text_of(value) + " (" + Py_TYPE(value)->tp_name + ")");
        }
        return number;
    }

    // Adds up entries with the same index, keeping the order of first appearance (a sparse set: where_ needs no
    // clearing).
    void merge(NamedRow& row) {
        size_t kept = 0;
        for (size_t i = 0; i < row.index.size(); ++i) {
            const size_t at = row.index[i] >= 0 ? size_t(row.index[i]) : size() + size_t(-1 - row.index[i]);
            if (at >= where_.size()) where_.resize(hashed() ? size_t(1) << bits_ : at + at / 2 + 64);
            const size_t earlier = where_[at];
            if (earlier < kept && row.index[earlier] == row.index[i]) {
                row.value[earlier] += row.value[i];
                continue;
            }
            where_[at] = uint32_t(kept);
            row.index[kept] = row.index[i];
            row.value[kept] = row.value[i];
            ++kept;
        }
        row.index.resize(kept);
        row.value.resize(kept);
    }

    int bits_;
    nb::list names_;
    nb::dict index_;
    std::vector<Seen> cache_;
    int cache_shift_ = 64;
    std::vector<uint32_t> where_;
    std::vector<PyObject*> last_name_;  // of an earlier row, held
    std::vector<PyObject*> last_value_;
    std::vector<int64_t> last_index_;
    uint64_t names_version_ = 0;        // changes where an index may stand for another name
    int between_ = 1, until_kept_ = 1;  // rows between those that are kept; until the next
};

}  // namespace onepass
