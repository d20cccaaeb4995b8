#include "bind/instruction_sets.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "bind/engine.hpp"
#include "bind/kernels.hpp"
#include "loops/lasvm_loops.hpp"
#include "loops/learner_loops.hpp"
#include "parse/namespace_reader.hpp"

namespace onepass {

using namespace nb::literals;

const Loops* loops = nullptr;

// Those of this processor, the narrowest first.
static std::vector<const Loops*> available_loops() {
    std::vector<const Loops*> out = {loops_scalar()};
#ifdef ONEPASS_X86
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2")) out.push_back(loops_avx2());
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        out.push_back(loops_avx512());
#endif
    return out;
}

// The loops of kernels and of other learners, and the parsers, use the same set.
static void use(const Loops* chosen) {
    const std::string name = chosen->name;
    loops = chosen;
    use_packs(name == "avx512");
    kernel_loops = kernel_loops_scalar();
    lasvm_loops = lasvm_loops_scalar();
    learner_loops = learner_loops_scalar();
#ifdef ONEPASS_X86
    if (name == "avx2") {
        kernel_loops = kernel_loops_avx2();
        lasvm_loops = lasvm_loops_avx2();
        learner_loops = learner_loops_avx2();
    }
    if (name == "avx512") {
        kernel_loops = kernel_loops_avx512();
        lasvm_loops = lasvm_loops_avx512();
        learner_loops = learner_loops_avx512();
    }
#endif
}

static std::vector<std::string> available_names() {
    std::vector<std::string> names;
    for (const Loops* each : available_loops()) names.push_back(each->name);
    return names;
}

static std::string list_available() {
    std::string list;
    for (const std::string& name : available_names()) list += (list.empty() ? "" : ", ") + name;
    return list;
}

// Null if this processor has no instruction set of that name.
static const Loops* find_loops(const std::string& name) {
    for (const Loops* each : available_loops())
        if (name == each->name) return each;
    return nullptr;
}

// The instruction set that ONEPASS_ISA names, by default the widest. An exception here becomes an ImportError.
static const Loops* first_loops() {
    const char* name = std::getenv("ONEPASS_ISA");
    if (!name || !*name) return available_loops().back();
    if (const Loops* found = find_loops(name)) return found;
    throw std::runtime_error("ONEPASS_ISA=" + std::string(name) +
                             ": expected scalar, avx2 or avx512; this machine has " + list_available() +
                             ". Set it to one of these, or leave it out for the last");
}

static void use_named(const std::string& name) {
    const Loops* found = find_loops(name);
    if (!found)
        raise("ParameterError",
              "instruction set '" + name + "' is not available on this machine, which has " + list_available());
    use(found);
}

void bind_instruction_sets(nb::module_& module) {
    use(first_loops());
    module.def("isa", [] { return std::string(loops->name); });
    module.def("isas", available_names);
    module.def("use_isa", use_named, "name"_a);
    module.def("uses_packs", uses_packs);  // whether the parsers use AVX-512
}

}  // namespace onepass
