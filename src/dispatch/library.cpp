#include "umbra/dispatch/library.h"

#include <map>

#include "dispatch/definition_check.h"
#include "dispatch/kernel_table.h"
#include "dispatch/layers.h"
#include "dispatch/library_writes.h"

namespace umbra {

// ---- keys ----

namespace {

constexpr const char* kNames[] = {"CPU",
                                  "CUDA",
                                  "Meta",
                                  "Fake",
                                  "AutogradCPU",
                                  "AutogradCUDA",
                                  "AutogradMeta",
                                  "Autograd",
                                  "CompositeExplicitAutogradNonFunctional",
                                  "CompositeExplicitAutograd",
                                  "CompositeImplicitAutograd",
                                  "AutocastCPU",
                                  "AutocastCUDA"};

// Keys of PyTorch's that have no layer here, with the backends that they exist for.
constexpr std::string_view kLayersNotBuilt[] = {"Undefined",
                                                "FPGA",
                                                "Vulkan",
                                                "Metal",
                                                "BackendSelect",
                                                "Python",
                                                "Functionalize",
                                                "Named",
                                                "Conjugate",
                                                "Negative",
                                                "ZeroTensor",
                                                "ADInplaceOrView",
                                                "Tracer",
                                                "AutocastXPU",
                                                "AutocastMPS",
                                                "FuncTorchBatched",
                                                "BatchedNestedTensor",
                                                "FuncTorchVmapMode",
                                                "Batched",
                                                "VmapMode",
                                                "FuncTorchGradWrapper",
                                                "DeferredInit",
                                                "PythonTLSSnapshot",
                                                "PythonDispatcher",
                                                "PreDispatch",
                                                "FuncTorchDynamicLayerFrontMode",
                                                "FuncTorchDynamicLayerBackMode",
                                                "AutogradOther",
                                                "AutogradFunctionality",
                                                "AutogradNestedTensor",
                                                "CompositeImplicitAutogradNestedTensor",
                                                "FuncTorchBatchedDecomposition",
                                                "Dense",
                                                "Quantized",
                                                "Sparse",
                                                "SparseCsr",
                                                "NestedTensor"};
constexpr std::string_view kBackendsNotBuilt[] = {"HIP",         "XLA",         "MPS",        "IPU",  "XPU",
                                                  "HPU",         "VE",          "Lazy",       "MTIA", "MAIA",
                                                  "PrivateUse1", "PrivateUse2", "PrivateUse3"};
constexpr std::string_view kPrefixes[] = {"", "Autograd", "Quantized", "Sparse", "SparseCsr", "NestedTensor"};

bool is_known_elsewhere(std::string_view name) {
  for (std::string_view known : kLayersNotBuilt)
    if (name == known) return true;
  for (std::string_view prefix : kPrefixes) {
    if (!name.starts_with(prefix)) continue;
    std::string_view backend = name.substr(prefix.size());
    for (std::string_view known : kBackendsNotBuilt)
      if (backend == known) return true;
    if (!prefix.empty() && (backend == "CPU" || backend == "CUDA" || backend == "Meta")) return true;
  }
  return false;
}

}  // namespace

const char* to_string(KernelKey key) { return kNames[static_cast<size_t>(key)]; }

KernelKey parse_kernel_key(std::string_view name) {
  for (size_t i = 0; i < static_cast<size_t>(KernelKey::Count); ++i)
    if (name == kNames[i] && name != "Fake") return static_cast<KernelKey>(i);
  if (is_known_elsewhere(name))
    fail<NotImplementedError>("kernels for the dispatch key ", std::string(name), " are not in Umbra yet");
  fail("could not parse dispatch key: ", std::string(name));
}

bool has_library_kernel(const Operator& op, KernelKey key) {
  return op.library_kernels() && op.library_kernels()->find(key);
}

// ---- libraries ----

struct Library::Registered final : RefCounted {
  struct Entry {
    KernelTable* table;
    KernelKey key;
    std::shared_ptr<const LibraryKernel> kernel;
  };
  std::vector<Entry> kernels;
  std::vector<Operator*> operators;
};

namespace {
std::mutex g_mutex;
// How many libraries of the kind Define a namespace has: one or none. PyTorch's own namespaces are taken.
std::map<std::string, int>& defining_libraries() {
  static auto* spaces = new std::map<std::string, int>{{"aten", 1}, {"prims", 1}};
  return *spaces;
}
}  // namespace

Library::Library(std::string space, Kind kind)
    : space_(std::move(space)), kind_(kind), registered_(make_counted<Registered>()) {
  if (kind_ != Kind::Define) return;
  std::lock_guard lock(g_mutex);
  int& count = defining_libraries()[space_];
  check(count == 0, "Only a single TORCH_LIBRARY can be used to register the namespace ", space_,
        "; please put all of your definitions in a single TORCH_LIBRARY block.");
  count = 1;
}

Library::~Library() {
  if (registered_) reset();
}
Library::Library(Library&&) noexcept = default;
Library& Library::operator=(Library&& other) noexcept {
  if (this == &other) return *this;
  if (registered_) reset();
  space_ = std::move(other.space_);
  kind_ = other.kind_;
  registered_ = std::move(other.registered_);
  return *this;
}

void Library::reset() {
  for (const auto& [table, key, kernel] : registered_->kernels) table->remove(key, kernel.get());
  for (Operator* op : registered_->operators) {
    KernelTable::of(op->name()).attach(nullptr);
    remove_functional_forms(*op);
    for (const Operator* other : all_operators())  // variants that follow from it
      if (other->functional() == op) remove_operator(*other);
    remove_operator(*op);
  }
  registered_ = make_counted<Registered>();
  if (kind_ != Kind::Define) return;
  std::lock_guard lock(g_mutex);
  defining_libraries()[space_] = 0;
  kind_ = Kind::Fragment;
}

Operator& Library::define(const std::string& text, TagSet tags) {
  check(kind_ != Kind::Implement, "def(\"", text,
        "\"): Cannot define an operator inside of a TORCH_LIBRARY_IMPL block: this library is for kernels alone");
  Schema schema = parse_schema(text);
  bool qualified = text.substr(0, text.find('(')).find("::") != std::string::npos;
  check(!qualified || schema.space == space_, "def(\"", text, "\"): Explicitly provided namespace (", schema.space,
        ") in schema string does not match namespace of enclosing library (", space_, ")");
  schema.space = space_;
  Operator& op = register_operator(std::move(schema));
  op.mutable_definition().tags.add(tags);
  registered_->operators.push_back(&op);
  KernelTable::of(op.name()).attach(&op);
  define_functional_form(op);
  return op;
}

std::string Library::full_name(const std::string& name) const {
  size_t colons = name.find("::");
  std::string full = colons == std::string::npos ? space_ + "::" + name : name;
  check(colons == std::string::npos || name.substr(0, colons) == space_, "impl(\"", name,
        "\", ...): Explicitly provided namespace (", name.substr(0, colons),
        ") in operator name does not match namespace of enclosing library (", space_, ")");
  if (full.ends_with(".default")) full.resize(full.size() - 8);
  return full;
}

namespace boxing {

namespace {
std::string schema_name(const CppType& type) {
  bool tells = type.base != CppType::Base::Spec && type.base != CppType::Base::Any;
  check<TypeError>(tells, "the function's types do not tell a schema: write it out");
  return to_string(type);
}
}  // namespace

std::string schema_text(const FunctionSignature& function) {
  std::string parameters, results;
  for (size_t i = 0; i < function.parameters.size(); ++i)
    parameters += concat(i == 0 ? "" : ", ", schema_name(function.parameters[i]), " a", i);
  for (size_t i = 0; i < function.results.size(); ++i)
    results += (i == 0 ? "" : ", ") + schema_name(function.results[i]);
  return "(" + parameters + ") -> " + (function.results.size() == 1 ? results : "(" + results + ")");
}

}  // namespace boxing

bool Library::is_defined(const std::string& name) const { return find_operator(full_name(name)) != nullptr; }

void Library::check_signature(const std::string& name, const FunctionSignature& function) const {
  const Operator* op = find_operator(full_name(name));
  check(op, "operator ", full_name(name), " is not defined");
  check_slot(*op, Slot::Real, &function);
}

Operator& Library::defined_here(const std::string& name) const {
  std::string full = full_name(name);
  for (Operator* op : registered_->operators)
    if (op->name() == full) return *op;
  fail("operator ", full, " was not defined by this library: gradients and batching rules belong to the definition");
}

void Library::add(const std::string& name, KernelKey key, KernelFunction function) {
  std::string full = full_name(name);
  KernelTable& table = KernelTable::of(full);
  const Operator* op = find_operator(full);
  if (op && !op->library_kernels()) table.attach(const_cast<Operator*>(op));
  auto kernel = std::make_shared<const LibraryKernel>(LibraryKernel{std::move(function)});
  registered_->kernels.push_back({&table, key, kernel});
  table.add(key, std::move(kernel));
}

void Library::implement_generic(const std::string& name, GenericFunction f, KernelKey key) {
  add(name, key, [f = std::move(f)](const Operator& op, Value* frame) {
    std::vector<Value> results = f(op, ArrayRef<Value>(frame, op.argument_count()));
    check(results.size() == op.return_count(), op.name(), ": the function gave ", results.size(),
          " results, the schema has ", op.return_count());
    for (size_t i = 0; i < results.size(); ++i) frame[i] = std::move(results[i]);
  });
}

void Library::fall_through(const std::string& name, KernelKey key) { add(name, key, nullptr); }

}  // namespace umbra
