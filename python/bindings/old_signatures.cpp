#include "old_signatures.h"

#include <array>
#include <atomic>
#include <string_view>

#include "tensor_type.h"
#include "umbra/core/warning.h"

namespace umbra::python {

namespace {

/// A family of functions. Forms spell the arguments, self included: a number (n) or a tensor (t).
struct OldForm {
  std::vector<std::string_view> functions, factors, as_method, as_function;
};

const std::array<OldForm, 3>& old_forms() {
  static const std::array<OldForm, 3> forms{{
      {{"add", "sub"}, {"alpha"}, {"tnt", "tnn"}, {"tnt", "tnn"}},
      {{"addcmul", "addcdiv"}, {"value"}, {"tntt"}, {"tntt"}},
      {{"addmm", "addmv", "addr", "addbmm", "baddbmm"}, {"beta", "alpha"}, {"tntt", "tnntt"}, {"nttt", "ntntt"}},
  }};
  return forms;
}

template <class List> bool contains(const List& list, std::string_view text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

std::string spelling(const CallArguments& call) {
  std::string out;
  for (size_t i = 0; i < call.positional; ++i)
    out += is_tensor(call.values[i]) ? 't' : PyNumber_Check(call.values[i]) ? 'n' : '?';
  return out;
}

RewrittenCall rewritten(const CallArguments& call, const std::vector<std::string_view>& factors) {
  RewrittenCall out;
  std::vector<PyObject*> numbers;
  for (size_t i = 0; i < call.positional; ++i) {
    bool factor = !is_tensor(call.values[i]) && numbers.size() < factors.size();
    (factor ? numbers : out.values).push_back(call.values[i]);  // a number behind the factors stands for a tensor
  }
  out.positional = out.values.size();
  nb::list names;
  for (size_t i = 0; i < numbers.size(); ++i) {
    out.values.push_back(numbers[i]);
    names.append(nb::str(factors[i].data(), factors[i].size()));
  }
  for (size_t k = 0; k < call.keyword_count(); ++k) {
    out.values.push_back(call.keyword_value(k));
    names.append(nb::borrow(call.keyword(k)));
  }
  out.keywords = nb::tuple(names);
  return out;
}

const OldForm* form_of(std::string_view function) {
  if (function.ends_with('_')) function.remove_suffix(1);
  for (const OldForm& form : old_forms())
    if (contains(form.functions, function)) return &form;
  return nullptr;
}

}  // namespace

bool has_unnamed_factors(const std::string& function) { return form_of(function); }

std::optional<RewrittenCall> with_named_factors(const std::string& function, Reading reading,
                                                const CallArguments& call) {
  const OldForm* form = reading == Reading::Operator ? nullptr : form_of(function);
  if (!form || !contains(reading == Reading::Method ? form->as_method : form->as_function, spelling(call)))
    return std::nullopt;
  return rewritten(call, form->factors);
}

void warn_of_unnamed_factors(const std::string& function) {
  static std::atomic<bool> told = false;
  if (!tells_once(told)) return;
  warn("This overload of ", function, " is deprecated: give its factors by name, as in add(other, alpha=2)");
}

}  // namespace umbra::python
