// Feature names from Python: mappings become rows of (index, value).
#pragma once
#include <nanobind/nanobind.h>

#include <cstdint>
#include <vector>

#include "bind/errors.hpp"
#include "bind/limits.hpp"
#include "bind/numbers.hpp"

namespace onepass {

// An example that is read from a mapping: its names, and for each name an index and a value.
struct NamedRow {
    std::vector<PyObject*> names;  // borrowed from the mapping, or from `made`
    std::vector<int64_t> index;
    std::vector<double> value;
    std::vector<PyObject*> new_names;  // not registered yet; borrowed as in `names`
    std::vector<nb::object> made;      // keeps alive the names that were made, such as "name=value" of a category
    // The versions of the dict and of the registered names when the dict was read. 0: unknown, so it is read again.
    uint64_t dict_version = 0, names_version = 0;
    void clear() {
        dict_version = 0;
        names.clear();
        index.clear();
        value.clear();
        new_names.clear();
        made.clear();
    }
};

class Features {
 public:
    // hash_bits < 0: every name has its own index, in the order of registration. Otherwise the index of a name is the
    // last `hash_bits` bits of its hash.
    explicit Features(int hash_bits) : hash_bits_(hash_bits) { clear_cache(1024); }
    Features(const Features&) = delete;
    Features& operator=(const Features&) = delete;
    ~Features();

    bool hashed() const { return hash_bits_ >= 0; }
    size_t slots() const { return size_t(1) << hash_bits_; }  // only if hashed()
    nb::list names() const { return names_; }
    nb::dict index() const { return index_; }
    size_t size() const { return size_t(PyList_GET_SIZE(names_.ptr())); }

    // Reads a mapping. New names are not registered: the index of new_names[i] is -1 - i until register_names.
    // Prefetches the weights of known names: those of index j are at weights + j * pitch.
    void read(nb::handle mapping, NamedRow& row, const double* weights, size_t pitch);

    // Registers the new names of a row and sets their indices. Returns how many there were.
    size_t register_names(NamedRow& row);

    // Registers one name, which must be new.
    void register_name(PyObject* name);

    // Unregisters the newest names, after their example was refused.
    void unregister_names(size_t count);

    // Replaces all registered names.
    void set_names(nb::list names);

    // The index of a name, or -1 for an unknown name.
    int64_t find(PyObject* name) {
        const CachedName& cached = cache_[slot_of(name)];
        return cached.name == name ? cached.index : find_uncached(name);
    }

 private:
    // A hash table from the address of a name object to the index of the name. It holds a reference to each of its
    // names, so that no other object can get the same address. Its size is bounded: a name replaces the one in its
    // slot.
    struct CachedName {
        PyObject* name;
        int64_t index;
    };
    int64_t find_uncached(PyObject* name);
    static constexpr size_t largest_cache = size_t(1) << 18;

    size_t slot_of(PyObject* name) const {
        return size_t((uint64_t(reinterpret_cast<uintptr_t>(name)) * 0x9E3779B97F4A7C15ull) >> cache_shift_);
    }
    void cache_name(PyObject* name, int64_t index);
    void grow_cache();
    void clear_cache(size_t size);

    bool read_with_template(PyObject* dict, NamedRow& row);
    bool read_numbers(PyObject* dict, NamedRow& row);
    void read_items(nb::handle mapping, NamedRow& row);
    size_t read_item(PyObject* name, PyObject* value, NamedRow& row, size_t position);
    void find_names(NamedRow& row, bool may_repeat, const double* weights, size_t pitch);
    void add_repeated(NamedRow& row);
    void store_template(const NamedRow& row);
    void drop_template();

    int hash_bits_;
    nb::list names_;
    nb::dict index_;
    std::vector<CachedName> cache_;
    int cache_shift_ = 64;
    std::vector<uint32_t> first_position_;  // of add_repeated: by index, where the index stands first in the row
    // The template: names and indices of an earlier row. It holds references to its names.
    std::vector<PyObject*> template_names_;
    std::vector<int64_t> template_index_;
    std::vector<PyObject*> values_read_;  // of read_with_template
    uint64_t names_version_ = 0;          // changes when an index may belong to another name
    // A template is stored from every `template_interval_`-th row that may be one; the next one comes after
    // `rows_to_wait_` such rows.
    int template_interval_ = 1, rows_to_wait_ = 1;
};

}  // namespace onepass
