// Feature names from Python: mappings become rows of (index, value).
#pragma once
#include <nanobind/nanobind.h>

#include <cstdint>
#include <vector>

#include "bind/errors.hpp"
#include "bind/limits.hpp"
#include "bind/numbers.hpp"

namespace onepass {

// A sparse row under construction.
struct NamedRow {
    std::vector<PyObject*> name;
    std::vector<int64_t> index;
    std::vector<double> value;
    std::vector<PyObject*> unknown;   // new names (borrowed from the mapping, or from `made`)
    std::vector<nb::object> made;     // objects that keep names alive, such as the "name=value" of categorical features
    uint64_t version = 0, names = 0;  // of the dict and of the names that this row was read from; 0: unknown
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
    // bits < 0: every name has its own index. Otherwise the index is the hash of the name, cut to so many bits.
    explicit Features(int bits) : bits_(bits) { clear_cache(1024); }
    Features(const Features&) = delete;
    Features& operator=(const Features&) = delete;
    ~Features();

    bool hashed() const { return bits_ >= 0; }
    size_t slots() const { return size_t(1) << bits_; }  // if hashed
    nb::list names() const { return names_; }
    nb::dict index() const { return index_; }
    size_t size() const { return size_t(PyList_GET_SIZE(names_.ptr())); }

    // Reads a mapping. A new name gets the index -1 - its position in row.unknown; `admit` registers it.
    void read(nb::handle mapping, NamedRow& row, const double* weights, size_t pitch);

    // Registers the new names of a row and sets their indices. Returns how many are new.
    size_t admit(NamedRow& row);

    // Registers one name, which must be new.
    void append(PyObject* name);

    // Unregisters the newest names, after their example was refused.
    void forget(size_t count);

    void set_names(nb::list names);

    // The index of a name, or -1 for an unknown name.
    int64_t find(PyObject* name);

 private:
    // The cache of indices by the address of the name object. It holds a reference to each name in it, so that no
    // other object can have the same address. It is bounded: a new name replaces the name in its place.
    struct CachedName {
        PyObject* name;
        int64_t at;
    };
    static constexpr size_t largest_cache = size_t(1) << 18;

    size_t slot(PyObject* name) const {
        return size_t((uint64_t(reinterpret_cast<uintptr_t>(name)) * 0x9E3779B97F4A7C15ull) >> cache_shift_);
    }
    void remember(PyObject* name, int64_t at);
    void grow_cache();
    void clear_cache(size_t size);

    bool read_like_last(PyObject* mapping, NamedRow& row);
    bool read_floats(PyObject* mapping, NamedRow& row);
    void read_items(nb::handle mapping, NamedRow& row);
    size_t read_item(PyObject* name, PyObject* value, NamedRow& row, size_t at);
    void find_names(NamedRow& row, bool names_repeat, const double* weights, size_t pitch);
    void merge(NamedRow& row);
    void store_names(const NamedRow& row);
    void drop_stored_names();

    int bits_;
    nb::list names_;
    nb::dict index_;
    std::vector<CachedName> cache_;
    int cache_shift_ = 64;
    std::vector<uint32_t> where_;       // of `merge`
    std::vector<PyObject*> last_name_;  // the stored names of an earlier row, with references
    std::vector<PyObject*> last_value_;
    std::vector<int64_t> last_index_;
    uint64_t names_version_ = 0;               // changes when an index may belong to another name
    int rows_between_ = 1, rows_to_wait_ = 1;  // rows between two whose names are stored; rows until the next
};

}  // namespace onepass
