#include "bind/features.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "parse/hash.hpp"

namespace onepass {

// The version of a dict, which Python changes with every change of the dict. If it is the same again, the dict holds
// the same names and the same value objects. An example that was predicted then need not be read again to be learned,
// if its values were plain numbers, which cannot change. 0 if the mapping is no dict, or if Python has no versions
// (from 3.12).
static uint64_t dict_version_of([[maybe_unused]] PyObject* mapping) {
#if PY_VERSION_HEX < 0x030C0000
    if (PyDict_Check(mapping)) return reinterpret_cast<PyDictObject*>(mapping)->ma_version_tag;
#endif
    return 0;
}

static uint32_t hash_of(PyObject* name) {
    nb::object text = nb::borrow(name);
    if (!PyUnicode_Check(name)) text = nb::str(nb::handle(name));
    Py_ssize_t length = 0;
    const char* utf8 = PyUnicode_AsUTF8AndSize(text.ptr(), &length);
    if (utf8) return hash_name(utf8, size_t(length));
    PyErr_Clear();  // a lone surrogate, which has no UTF-8
    nb::object bytes = nb::steal(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "surrogatepass"));
    if (!bytes.is_valid()) throw nb::python_error();
    return hash_name(PyBytes_AS_STRING(bytes.ptr()), size_t(PyBytes_GET_SIZE(bytes.ptr())));
}

// Converts NumPy's scalars and other number types by __float__. None, lists and mappings are refused.
static double to_number(PyObject* name, PyObject* value) {
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

// Adds a name to the row's new names, and returns its negative index. A category "a=b" may have the same name as
// another feature of the row: if names may repeat, equal names get the same index.
static int64_t add_new_name(PyObject* name, NamedRow& row, bool may_repeat) {
    for (size_t i = 0; may_repeat && i < row.new_names.size(); ++i)
        if (PyUnicode_Check(name) && PyUnicode_Check(row.new_names[i]) &&
            PyUnicode_Compare(name, row.new_names[i]) == 0)
            return -1 - int64_t(i);
    row.new_names.push_back(name);
    return -int64_t(row.new_names.size());
}

Features::~Features() {
    drop_template();
    for (CachedName& cached : cache_) Py_XDECREF(cached.name);
}

// There are three ways, the fastest first. A dict with the names of the template needs only its values read. Another
// dict of strings to numbers is read by read_numbers, and anything else by read_items; then the index of each name is
// found. Each way is a few short loops one after the other, so that the processor fetches much memory at the same time.
void Features::read(nb::handle mapping, NamedRow& row, const double* weights, size_t pitch) {
    const uint64_t version = dict_version_of(mapping.ptr());
    if (version != 0 && row.dict_version == version && row.names_version == names_version_) return;
    row.clear();
    const bool dict = PyDict_Check(mapping.ptr());
    bool reusable = dict && read_with_template(mapping.ptr(), row), may_repeat = false;
    if (!reusable) {
        may_repeat = !(dict && read_numbers(mapping.ptr(), row));
        if (may_repeat) read_items(mapping, row);
        find_names(row, may_repeat, weights, pitch);
        reusable = !may_repeat && row.new_names.empty();
        if (reusable) store_template(row);
    }
    if (reusable) {
        row.dict_version = version;
        row.names_version = names_version_;
    }
    if (hashed() || may_repeat) add_repeated(row);
}

size_t Features::register_names(NamedRow& row) {
    if (row.new_names.empty()) return 0;
    const size_t before = size();
    for (PyObject* name : row.new_names) register_name(name);
    for (int64_t& index : row.index)
        if (index < 0) index = int64_t(before) - 1 - index;
    return row.new_names.size();
}

void Features::register_name(PyObject* name) {
    PyList_Append(names_.ptr(), name);
    nb::object index = nb::steal(PyLong_FromSize_t(size() - 1));
    PyDict_SetItem(index_.ptr(), name, index.ptr());
    cache_name(name, int64_t(size() - 1));
    if (2 * size() > cache_.size() && cache_.size() < largest_cache) grow_cache();
}

void Features::unregister_names(size_t count) {
    if (count == 0) return;
    for (size_t i = size() - count; i < size(); ++i) PyDict_DelItem(index_.ptr(), PyList_GET_ITEM(names_.ptr(), i));
    PyList_SetSlice(names_.ptr(), Py_ssize_t(size() - count), Py_ssize_t(size()), nullptr);
    clear_cache(cache_.size());
}

void Features::set_names(nb::list names) {
    names_ = nb::list();
    index_ = nb::dict();
    for (nb::handle name : names) {
        names_.append(name);
        index_[name] = nb::int_(names_.size() - 1);
    }
    clear_cache(cache_.size());
}

int64_t Features::find_uncached(PyObject* name) {
    int64_t index = -1;
    if (hashed()) {
        index = int64_t(hash_of(name) & ((uint64_t(1) << hash_bits_) - 1));
    } else {
        PyObject* found = PyDict_GetItemWithError(index_.ptr(), name);
        if (!found) {
            if (PyErr_Occurred()) throw nb::python_error();
            return -1;
        }
        index = PyLong_AsSsize_t(found);
    }
    // A name object that only this mapping refers to will not come again, so it is not cached.
    if (Py_REFCNT(name) > 1) cache_name(name, index);
    return index;
}

void Features::cache_name(PyObject* name, int64_t index) {
    CachedName& cached = cache_[slot_of(name)];
    Py_INCREF(name);
    Py_XDECREF(cached.name);
    cached = {name, index};
}

void Features::grow_cache() {
    std::vector<CachedName> old;
    old.swap(cache_);
    clear_cache(4 * old.size());
    for (CachedName& cached : old)
        if (cached.name) {
            cache_name(cached.name, cached.index);
            Py_DECREF(cached.name);
        }
}

void Features::clear_cache(size_t size) {
    ++names_version_;
    drop_template();
    for (CachedName& cached : cache_) Py_XDECREF(cached.name);
    cache_.assign(size, CachedName{nullptr, 0});
    cache_shift_ = 64;
    for (size_t s = size; s > 1; s /= 2) --cache_shift_;
}

// Rows of a table have the same names in the same order. If the dict has the names of the template, the row gets the
// template's indices. Returns false, and the row must be read in another way, if a name differs, or if a value is not a
// finite float other than 0. Two loops, so that the processor fetches many values at the same time.
bool Features::read_with_template(PyObject* mapping, NamedRow& row) {
    const size_t size = template_names_.size();
    if (size == 0 || size_t(PyDict_GET_SIZE(mapping)) != size) return false;
    // PyDict_Next reads the dict's table from its beginning to its end, so the table is prefetched. Its length is a
    // guess: to prefetch too much or too little does no harm.
    const char* table = reinterpret_cast<const char*>(reinterpret_cast<PyDictObject*>(mapping)->ma_keys);
    for (size_t byte = 0; byte < std::min<size_t>(20 * size, 4096); byte += 64) __builtin_prefetch(table + byte);
    values_read_.resize(size);
    PyObject *name, *value;
    Py_ssize_t position = 0;
    for (size_t i = 0; PyDict_Next(mapping, &position, &name, &value); ++i) {
        if (name != template_names_[i]) return false;
        __builtin_prefetch(value);
        values_read_[i] = value;
    }
    row.value.resize(size);
    for (size_t i = 0; i < size; ++i) {
        if (!PyFloat_CheckExact(values_read_[i])) return false;
        const double number = PyFloat_AS_DOUBLE(values_read_[i]);
        if (number == 0.0 || !std::isfinite(number)) return false;
        row.value[i] = number;
    }
    row.index = template_index_;
    template_interval_ = 1;
    return true;
}

// Stores a row as the template. To store costs time, and is useless where each row has other names, as texts have: the
// interval between two stored rows doubles until a row has the names of the template.
void Features::store_template(const NamedRow& row) {
    if (--rows_to_wait_ > 0) return;
    rows_to_wait_ = template_interval_ = std::min(2 * template_interval_, 4096);
    drop_template();
    template_names_ = row.names;
    template_index_ = row.index;
    for (PyObject* name : template_names_) Py_INCREF(name);
}

void Features::drop_template() {
    for (PyObject* name : template_names_) Py_DECREF(name);
    template_names_.clear();
    template_index_.clear();
}

// The common case in one fast loop: a dict of plain strings to finite floats, integers or booleans. Returns false for
// anything else: read_items then reads it, or refuses it with a message.
bool Features::read_numbers(PyObject* mapping, NamedRow& row) {
    PyObject *name, *value;
    Py_ssize_t position = 0;
    const size_t size = size_t(PyDict_GET_SIZE(mapping));
    row.names.resize(size);
    row.value.resize(size);
    size_t count = 0;
    while (PyDict_Next(mapping, &position, &name, &value)) {
        if (!PyUnicode_CheckExact(name)) return false;
        double number;
        if (PyFloat_CheckExact(value)) number = PyFloat_AS_DOUBLE(value);
        else if (PyLong_CheckExact(value) || PyBool_Check(value)) number = PyLong_AsDouble(value);
        else return false;
        if (!std::isfinite(number) || (number == -1.0 && PyErr_Occurred())) {
            PyErr_Clear();
            return false;
        }
        __builtin_prefetch(&cache_[slot_of(name)]);
        row.names[count] = name;
        row.value[count] = number;
        count += number != 0.0;
    }
    row.names.resize(count);
    row.value.resize(count);
    return true;
}

// Reads any mapping. A conversion may run Python code that changes the mapping, so the items are first copied to a
// list, which keeps them alive. The same name may come twice.
void Features::read_items(nb::handle mapping, NamedRow& row) {
    row.clear();
    nb::object items = nb::steal(PyMapping_Items(mapping.ptr()));
    if (!items.is_valid()) throw nb::python_error();
    row.made.push_back(items);
    row.names.resize(nb::len(items));
    row.value.resize(nb::len(items));
    size_t count = 0;
    for (nb::handle item : items) {
        if (!PyTuple_Check(item.ptr()) || PyTuple_GET_SIZE(item.ptr()) != 2)
            raise("InputError", "a mapping's items must be pairs of name and value, got " + text_of(item));
        count += read_item(PyTuple_GET_ITEM(item.ptr(), 0), PyTuple_GET_ITEM(item.ptr(), 1), row, count);
    }
    row.names.resize(count);
    row.value.resize(count);
}

// Reads an item to the given position of the row. Returns the number of its features: 1, or 0 if its value is 0.
size_t Features::read_item(PyObject* name, PyObject* value, NamedRow& row, size_t position) {
    if (!PyUnicode_CheckExact(name) && !PyLong_CheckExact(name)) {
        // NumPy's strings and whole numbers become plain ones.
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
    row.names[position] = name;
    row.value[position] = number;
    return 1;
}

void Features::find_names(NamedRow& row, bool may_repeat, const double* weights, size_t pitch) {
    row.index.resize(row.names.size());
    for (size_t i = 0; i < row.names.size(); ++i) {
        const int64_t index = find(row.names[i]);
        row.index[i] = index;
        if (index >= 0) __builtin_prefetch(weights + size_t(index) * pitch);
        else row.index[i] = add_new_name(row.names[i], row, may_repeat);
    }
}

// Adds up the values of each index, at the position of the first. `first_position_` is never cleared: an old entry is
// ignored, because at the position that it gives the row has no such index.
void Features::add_repeated(NamedRow& row) {
    size_t count = 0;
    for (size_t i = 0; i < row.index.size(); ++i) {
        const size_t entry = row.index[i] >= 0 ? size_t(row.index[i]) : size() + size_t(-1 - row.index[i]);
        if (entry >= first_position_.size())
            first_position_.resize(hashed() ? size_t(1) << hash_bits_ : entry + entry / 2 + 64);
        const size_t earlier = first_position_[entry];
        if (earlier < count && row.index[earlier] == row.index[i]) {
            row.value[earlier] += row.value[i];
            continue;
        }
        first_position_[entry] = uint32_t(count);
        row.index[count] = row.index[i];
        row.value[count] = row.value[i];
        ++count;
    }
    row.index.resize(count);
    row.value.resize(count);
}

}  // namespace onepass
