#include "bind/name_lists.hpp"

#include "bind/features.hpp"
#include "bind/saved.hpp"
#include "core/losses.hpp"
#include "core/model.hpp"
#include "core/rules.hpp"
#include "core/schedules.hpp"
#include "kernels/budgets.hpp"
#include "parse/csv_records.hpp"
#include "parse/feature_expansion.hpp"

namespace onepass {

size_t position_in(const char* names, const std::string& name, const std::string& what) {
    const size_t at = position_of(name, names);
    if (at == count_names(names))
        raise("ParameterError", what + "='" + name + "' has no compiled formula; expected one of " + names);
    return at;
}

std::vector<double> parameters_of(const std::string& what, const char* names, nb::dict given) {
    std::vector<double> out;
    each_name(names, [&](std::string_view view) {
        const std::string name(view);
        if (!given.contains(name.c_str()))
            raise("ParameterError", what + ": " + name + " is missing; the compiled formula reads " + names);
        const nb::object value = given[name.c_str()];
        if (!nb::isinstance<nb::str>(value)) out.push_back(nb::cast<double>(value));
        else if (name == "loss") out.push_back(double(value_of<Loss>("loss", value)));
        else out.push_back(double(value_of<Schedule>("schedule", value)));
    });
    if (nb::len(given) != out.size())
        raise("ParameterError",
              what + ": got " + std::to_string(nb::len(given)) + " parameters; the compiled formula reads " + names);
    return out;
}

static nb::tuple as_tuple(const char* names) {
    nb::list out;
    each_name(names, [&](std::string_view name) { out.append(nb::str(name.data(), name.size())); });
    return nb::tuple(out);
}

void bind_name_lists(nb::module_& module) {
    nb::dict rules;
    for (const rules::Entry& entry : rules::table())
        rules[entry.name] = nb::make_tuple(as_tuple(entry.parameters), as_tuple(entry.slots));
    module.attr("rules") = rules;
    nb::dict budgets;
    for (const BudgetEntry& entry : budget_table()) budgets[entry.name] = as_tuple(entry.parameters);
    module.attr("budgets") = budgets;
    nb::dict enums;
    enums["Task"] = as_tuple(names_of(Task{}));
    enums["Averaging"] = as_tuple(names_of(Averaging{}));
    enums["Against"] = as_tuple(names_of(Against{}));
    enums["Form"] = as_tuple(names_of(Form{}));
    enums["Loss"] = as_tuple(names_of(Loss{}));
    enums["Schedule"] = as_tuple(names_of(Schedule{}));
    enums["Coordinates"] = as_tuple(names_of(Coordinates{}));
    enums["KernelOp"] = as_tuple(names_of(KernelOp{}));
    enums["TermKind"] = as_tuple(names_of(TermKind{}));
    enums["RecordKind"] = as_tuple(names_of(RecordKind{}));
    module.attr("enums") = enums;
    nb::dict arrays;
    arrays["linear"] = as_tuple(saved::Linear::names);
    arrays["kernel"] = as_tuple(saved::Kernel::names);
    arrays["pocket"] = as_tuple(saved::Pocket::names);
    arrays["batch"] = as_tuple(saved::MiniBatch::names);
    arrays["machine"] = as_tuple(saved::Machine::names);
    module.attr("saved") = arrays;
}

}  // namespace onepass
