#include "bind/features.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "parse/hash.hpp"

namespace onepass {

// A dict with an unchanged version holds the same names and values, which are immutable: an example that was predicted
// need not be read again to be learned. 0 if Python has no such number (from 3.12 on).
static uint64_t version_of([[maybe_unused]] PyObject* mapping) {
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

// The index of a new name. If names may repeat (a category spelled like another feature), equal names get one index.
static int64_t add_unknown(PyObject* name, NamedRow& row, bool names_repeat) {
    for (size_t i = 0; names_repeat && i < row.unknown.size(); ++i)
        if (PyUnicode_Check(name) && PyUnicode_Check(row.unknown[i]) && PyUnicode_Compare(name, row.unknown[i]) == 0)
            return -1 - int64_t(i);
    row.unknown.push_back(name);
    return -int64_t(row.unknown.size());
}

Features::~Features() {
    drop_stored_names();
    for (CachedName& cached : cache_) Py_XDECREF(cached.name);
}

// Short loops one after the other (values, indices, weights), so that the processor fetches many places of memory at
// the same time.
void Features::read(nb::handle mapping, NamedRow& row, const double* weights, size_t pitch) {
    const uint64_t version = version_of(mapping.ptr());
    if (version != 0 && row.version == version && row.names == names_version_) return;
    row.clear();
    const bool dict = PyDict_Check(mapping.ptr());
    bool reusable = dict && read_like_last(mapping.ptr(), row), names_repeat = false;
    if (!reusable) {
        names_repeat = !(dict && read_floats(mapping.ptr(), row));
        if (names_repeat) read_items(mapping, row);
        find_names(row, names_repeat, weights, pitch);
        reusable = !names_repeat && row.unknown.empty();
        if (reusable) store_names(row);
    }
    if (reusable) {
        row.version = version;
        row.names = names_version_;
    }
    if (hashed() || names_repeat) merge(row);
}

size_t Features::admit(NamedRow& row) {
    if (row.unknown.empty()) return 0;
    const size_t before = size();
    for (PyObject* name : row.unknown) append(name);
    for (int64_t& at : row.index)
        if (at < 0) at = int64_t(before) - 1 - at;
    return row.unknown.size();
}

void Features::append(PyObject* name) {
    PyList_Append(names_.ptr(), name);
    nb::object at = nb::steal(PyLong_FromSize_t(size() - 1));
    PyDict_SetItem(index_.ptr(), name, at.ptr());
    remember(name, int64_t(size() - 1));
    if (2 * size() > cache_.size() && cache_.size() < largest_cache) grow_cache();
}

void Features::forget(size_t count) {
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

int64_t Features::find(PyObject* name) {
    CachedName& cached = cache_[slot(name)];
    if (cached.name == name) return cached.at;
    int64_t at = -1;
    if (hashed()) {
        at = int64_t(hash_of(name) & ((uint64_t(1) << bits_) - 1));
    } else {
        PyObject* found = PyDict_GetItemWithError(index_.ptr(), name);
        if (!found) {
            if (PyErr_Occurred()) throw nb::python_error();
            return -1;
        }
        at = PyLong_AsSsize_t(found);
    }
    // A name that only this mapping refers to will not come again as the same object: it needs no place.
    if (Py_REFCNT(name) > 1) remember(name, at);
    return at;
}

void Features::remember(PyObject* name, int64_t at) {
    CachedName& cached = cache_[slot(name)];
    Py_INCREF(name);
    Py_XDECREF(cached.name);
    cached = {name, at};
}

void Features::grow_cache() {
    std::vector<CachedName> old;
    old.swap(cache_);
    clear_cache(4 * old.size());
    for (CachedName& cached : old)
        if (cached.name) {
            remember(cached.name, cached.at);
            Py_DECREF(cached.name);
        }
}

void Features::clear_cache(size_t size) {
    ++names_version_;
    drop_stored_names();
    for (CachedName& cached : cache_) Py_XDECREF(cached.name);
    cache_.assign(size, CachedName{nullptr, 0});
    cache_shift_ = 64;
    for (size_t s = size; s > 1; s /= 2) --cache_shift_;
}

// Rows of a table have the same names in the same order: if the names are those of the stored row, its indices are
// used. Only for dicts of finite floats other than 0: otherwise false. Two loops, so that many values are fetched at
// the same time.
bool Features::read_like_last(PyObject* mapping, NamedRow& row) {
    const size_t size = last_name_.size();
    if (size == 0 || size_t(PyDict_GET_SIZE(mapping)) != size) return false;
    // The dict's table is read from its beginning to its end: prefetch it. A wrong length does no harm.
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
    rows_between_ = 1;
    return true;
}

// Rows of words never repeat: while no row is like the stored one, rows are stored more and more rarely.
void Features::store_names(const NamedRow& row) {
    if (--rows_to_wait_ > 0) return;
    rows_to_wait_ = rows_between_ = std::min(2 * rows_between_, 4096);
    drop_stored_names();
    last_name_ = row.name;
    last_index_ = row.index;
    for (PyObject* name : last_name_) Py_INCREF(name);
}

void Features::drop_stored_names() {
    for (PyObject* name : last_name_) Py_DECREF(name);
    last_name_.clear();
    last_index_.clear();
}

// The common case in one fast loop: a dict of exact strings to finite floats, whole numbers or booleans. False for
// anything else, which read_items reads, or refuses with a message.
bool Features::read_floats(PyObject* mapping, NamedRow& row) {
    PyObject *name, *value;
    Py_ssize_t position = 0;
    const size_t size = size_t(PyDict_GET_SIZE(mapping));
    row.name.resize(size);
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
        __builtin_prefetch(&cache_[slot(name)]);
        row.name[count] = name;
        row.value[count] = number;
        count += number != 0.0;
    }
    row.name.resize(count);
    row.value.resize(count);
    return true;
}

// Any mapping. Conversions may run Python code that changes the mapping, so the items are copied to a list, which
// keeps them alive. Names may repeat.
void Features::read_items(nb::handle mapping, NamedRow& row) {
    row.clear();
    nb::object items = nb::steal(PyMapping_Items(mapping.ptr()));
    if (!items.is_valid()) throw nb::python_error();
    row.made.push_back(items);
    row.name.resize(nb::len(items));
    row.value.resize(nb::len(items));
    size_t count = 0;
    for (nb::handle item : items) {
        if (!PyTuple_Check(item.ptr()) || PyTuple_GET_SIZE(item.ptr()) != 2)
            raise("InputError", "a mapping's items must be pairs of name and value, got " + text_of(item));
        count += read_item(PyTuple_GET_ITEM(item.ptr(), 0), PyTuple_GET_ITEM(item.ptr(), 1), row, count);
    }
    row.name.resize(count);
    row.value.resize(count);
}

// Returns the number of features of an item: 1, or 0 if its value is 0.
size_t Features::read_item(PyObject* name, PyObject* value, NamedRow& row, size_t at) {
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
    row.name[at] = name;
    row.value[at] = number;
    return 1;
}

void Features::find_names(NamedRow& row, bool names_repeat, const double* weights, size_t pitch) {
    row.index.resize(row.name.size());
    for (size_t i = 0; i < row.name.size(); ++i) {
        const int64_t at = find(row.name[i]);
        row.index[i] = at;
        if (at >= 0) __builtin_prefetch(weights + size_t(at) * pitch);
        else row.index[i] = add_unknown(row.name[i], row, names_repeat);
    }
}

// Adds up values with the same index where the first of them stands. `where_` is a sparse set, which needs no
// clearing: an entry counts only if the row has that index there.
void Features::merge(NamedRow& row) {
    size_t count = 0;
    for (size_t i = 0; i < row.index.size(); ++i) {
        const size_t at = row.index[i] >= 0 ? size_t(row.index[i]) : size() + size_t(-1 - row.index[i]);
        if (at >= where_.size()) where_.resize(hashed() ? size_t(1) << bits_ : at + at / 2 + 64);
        const size_t earlier = where_[at];
        if (earlier < count && row.index[earlier] == row.index[i]) {
            row.value[earlier] += row.value[i];
            continue;
        }
        where_[at] = uint32_t(count);
        row.index[count] = row.index[i];
        row.value[count] = row.value[i];
        ++count;
    }
    row.index.resize(count);
    row.value.resize(count);
}

}  // namespace onepass
