#include "bind/lock.hpp"

#include <pthread.h>
#include <structmember.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <new>
#include <vector>

#include "bind/errors.hpp"
#include "bind/signal_watch.hpp"

namespace onepass {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

// A queue of waiting threads, shared by many locks. It is not a part of the lock: after a fork all queues are created
// anew, because a thread that the child does not have may have been changing them.
struct Place {
    std::mutex mutex;
    std::condition_variable changed;
    struct Waiting {
        const Lock* lock;
        uint64_t thread;
        bool operator==(const Waiting&) const = default;
    };
    std::vector<Waiting> queue;  // in the order of arrival

    uint32_t waiting(const Lock* lock) const { return uint32_t(std::ranges::count(queue, lock, &Waiting::lock)); }
    bool is_first(const Waiting& one) const { return *std::ranges::find(queue, one.lock, &Waiting::lock) == one; }
};

constexpr size_t places = 64;
Place* const place = new Place[places];  // never destroyed: a thread may wait while the process ends
Place& place_of(const Lock* lock) { return place[(reinterpret_cast<uintptr_t>(lock) >> 5) % places]; }

std::atomic<uint64_t> threads{0};
uint64_t forked = 0, survivor = 0, last_before = 0;

void after_fork() {
    for (size_t i = 0; i < places; ++i) new (place + i) Place;
    ++forked;
    survivor = this_thread();
    last_before = threads.load();
}

// True for a thread of a parent process.
bool is_gone(uint64_t thread) { return thread != 0 && thread <= last_before && thread != survivor; }

}  // namespace

uint64_t number_thread() { return thread_number = threads.fetch_add(1) + 1; }

uint64_t forks() { return forked; }

Lock::Lock() {
    static const int once = pthread_atfork(nullptr, nullptr, after_fork);
    (void)once;
}

void Lock::wait(uint64_t me) {
    SignalWatch watch;
    bool left_behind = false, interrupted = false;
    {
        nb::gil_scoped_release unlocked;  // the holder may need the interpreter to finish
        Place& here = place_of(this);
        const Place::Waiting self{this, me};
        std::unique_lock guard(here.mutex);
        while (true) {
            // Not only the first time: a signal handler may have forked, and in the child all queues are empty.
            if (std::ranges::find(here.queue, self) == here.queue.end()) here.queue.push_back(self);
            waiting_ = here.waiting(this);
            uint64_t nobody = 0;
            if (here.is_first(self) && owner_.compare_exchange_strong(nobody, me)) break;
            if ((left_behind = is_gone(owner_))) break;
            here.changed.wait_for(guard, std::chrono::milliseconds(50));
            guard.unlock();
            interrupted = watch.check();
            guard.lock();
            if (interrupted) break;
        }
        std::erase(here.queue, self);
        waiting_ = here.waiting(this);
        here.changed.notify_all();
    }
    if (left_behind)
        raise("ForkedError",
              "another thread was using this learner when the process was forked, so that here it may be half changed "
              "and cannot be used; fork while no thread uses it, or copy or load it in the child");
    if (interrupted) throw nb::python_error();
}

void Lock::wake() {
    Place& here = place_of(this);
    std::lock_guard guard(here.mutex);
    here.changed.notify_all();
}

void OneCall::refuse(const char* message) {
    lock_.release();
    PyErr_SetString(PyExc_RuntimeError, message);
    throw nb::python_error();
}

// A function that holds the lock of its first argument (`_lock`) while it runs. Written in C: a wrapper in Python would
// cost more than some of the functions.
struct LockedFunction {
    PyObject_HEAD PyObject *function, *attributes;
    vectorcallfunc call;
};

static PyObject* lock_name;
static PyTypeObject* lock_type;

static PyObject* call_locked(PyObject* self, PyObject* const* arguments, size_t count, PyObject* names) {
    PyObject* const function = reinterpret_cast<LockedFunction*>(self)->function;
    if (PyVectorcall_NARGS(count) == 0) return PyObject_Vectorcall(function, arguments, count, names);
    PyObject* const held = PyObject_GetAttr(arguments[0], lock_name);
    if (!held) return nullptr;
    if (!Py_IS_TYPE(held, lock_type)) {
        Py_DECREF(held);
        return PyErr_Format(PyExc_TypeError, "%R has no lock", arguments[0]);
    }
    PyObject* result = nullptr;
    try {
        const Lock::Held lock(*nb::inst_ptr<Lock>(held));
        result = PyObject_Vectorcall(function, arguments, count, names);
    } catch (nb::python_error& error) {
        error.restore();
    }
    Py_DECREF(held);
    return result;
}

static PyObject* bound(PyObject* self, PyObject* object, PyObject*) {
    return object == nullptr || object == Py_None ? Py_NewRef(self) : PyMethod_New(self, object);
}

static int visit(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(reinterpret_cast<LockedFunction*>(self)->function);
    Py_VISIT(reinterpret_cast<LockedFunction*>(self)->attributes);
    return 0;
}

static int drop(PyObject* self) {
    Py_CLEAR(reinterpret_cast<LockedFunction*>(self)->function);
    Py_CLEAR(reinterpret_cast<LockedFunction*>(self)->attributes);
    return 0;
}

static void destroy(PyObject* self) {
    PyTypeObject* const type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    drop(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMemberDef members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(LockedFunction, call), READONLY, nullptr},
                                {"__dictoffset__", T_PYSSIZET, offsetof(LockedFunction, attributes), READONLY, nullptr},
                                {nullptr, 0, 0, 0, nullptr}};
static PyGetSetDef properties[] = {{"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
                                   {nullptr, nullptr, nullptr, nullptr, nullptr}};
static PyType_Slot locked_slots[] = {{Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                                     {Py_tp_descr_get, reinterpret_cast<void*>(bound)},
                                     {Py_tp_traverse, reinterpret_cast<void*>(visit)},
                                     {Py_tp_clear, reinterpret_cast<void*>(drop)},
                                     {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
                                     {Py_tp_members, members},
                                     {Py_tp_getset, properties},
                                     {0, nullptr}};
static PyType_Spec locked_spec = {
    "onepass._native.LockedFunction", sizeof(LockedFunction), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR, locked_slots};

void bind_lock(nb::module_& module) {
    nb::class_<Lock> lock(module, "Lock");
    lock_type = reinterpret_cast<PyTypeObject*>(lock.ptr());
    lock.def(nb::init<>())
        .def("__enter__", &Lock::acquire)
        .def("__exit__", [](Lock& self, nb::args) { self.release(); })
        .def_prop_ro("mine", &Lock::mine);
    lock_name = PyUnicode_InternFromString("_lock");
    nb::object type = nb::steal(PyType_FromSpec(&locked_spec));
    if (!type.is_valid()) throw nb::python_error();
    module.attr("LockedFunction") = type;
    module.def(
        "locked",
        [type](nb::object function) {
            auto* const made = PyObject_GC_New(LockedFunction, reinterpret_cast<PyTypeObject*>(type.ptr()));
            if (!made) throw nb::python_error();
            made->function = function.inc_ref().ptr();
            made->attributes = nullptr;
            made->call = call_locked;
            PyObject_GC_Track(made);
            return nb::steal(reinterpret_cast<PyObject*>(made));
        },
        "function"_a);
}

}  // namespace onepass
