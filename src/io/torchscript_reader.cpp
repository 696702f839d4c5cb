#include "io/text.h"
#include "io/torchscript_origins.h"
#include "umbra/io/pickle.h"
#include "umbra/io/torchscript.h"
#include "umbra/jit/interpreter.h"
#include "umbra/jit/source.h"

namespace umbra::io {
namespace {

using jit::TypeKind;
using jit::TypePtr;

constexpr int kDeepest = 200;
constexpr int64_t kMostWork = 1'000'000;  // rounds of loops and calls, for one object to restore itself

/// Values of a pickle as values of a program, by the types that the program's classes say.
class Values {
 public:
  Values(jit::SourceReader& source, std::string label) : source_(source), label_(std::move(label)) {}

  Value object(const PickleValue& v) {
    TypePtr type = source_.type(v.class_name());
    if (!type || !type->is(TypeKind::Class))
      refuse("it holds an object of '", v.class_name(), "', which its source does not define");
    return instance(v, type);
  }

 private:
  template <class... Args> [[noreturn]] void refuse(const Args&... args) const {
    fail<ValueError>("cannot load '", label_, "': ", args...);
  }

  Value instance(const PickleValue& v, const TypePtr& type) {
    if (auto found = known_.find(v.identity()); found != known_.end()) return found->second;
    if (v.kind() != PickleValue::Kind::Object)
      refuse("an object of ", type->annotation(), " is expected where it holds ", v.kind_name());
    TypePtr own = source_.type(v.class_name());
    if (!own || !jit::is_subtype(own, type))
      refuse("an object of ", type->annotation(), " is expected where it holds one of '", v.class_name(), "'");
    if (!own->is(TypeKind::Class)) refuse("'", v.class_name(), "' is no class of objects");
    auto made = make_counted<jit::Instance>(own->cls);
    known_[v.identity()] = Value::object(made);
    const PickleValue& state = v.state();
    if (jit::FunctionPtr set = own->cls->method("__setstate__")) {  // the program says itself what its state is
      if (set->parameters.size() != 2) refuse("__setstate__ of ", own->cls->name, " takes one value");
      jit::LimitedWork limit(kMostWork);
      jit::run(*set, {Value::object(made), value(state, set->parameters[1].type, 0)});
      return Value::object(made);
    }
    if (!state.is_dict()) refuse("the state of an object of '", v.class_name(), "' is no dict");
    for (size_t i = 0; i < own->cls->attributes.size(); ++i) {
      const jit::Attribute& a = own->cls->attributes[i];
      const PickleValue* entry = state.find(a.name);
      if (!entry) refuse("an object of '", v.class_name(), "' has no value for '", a.name, "'");
      made->slots[i] = value(*entry, a.type, 0);
    }
    return Value::object(made);
  }

  Value member(const PickleValue& v, const TypePtr& type) {
    if (v.kind() != PickleValue::Kind::Object || v.class_name() != type->cls->name)
      refuse("a member of ", type->cls->name, " is expected where it holds ", v.kind_name());
    Value wanted = value(v.state(), type->cls->enum_value, 0);
    for (size_t i = 0; i < type->cls->constants.size(); ++i)
      if (jit::equal(type->cls->constants[i].second, wanted))
        return Value::object(make_counted<jit::EnumValue>(type->cls, i));
    refuse("the enum ", type->cls->name, " has no member of the value that it holds");
  }

  /// The member of a union that a value is of: one that it need not be converted to.
  Value member_of_union(const PickleValue& v, const TypePtr& type, int depth) {
    for (const TypePtr& t : type->elements) {
      if (t->is(TypeKind::Float) && v.kind() != PickleValue::Kind::Float) continue;
      if (t->is(TypeKind::Tensor) && !v.is_tensor()) continue;
      if (--tries_ < 0) refuse("its values can be of too many types");
      try {
        return value(v, t, depth + 1);
      } catch (const ValueError&) {
        continue;
      }
    }
    refuse("a value of ", type->annotation(), " is expected where it holds ", v.kind_name());
  }

  Value value(const PickleValue& v, const TypePtr& type, int depth) {
    if (depth > kDeepest) refuse("its values are nested too deeply");
    auto wrong = [&]() -> Value {
      refuse("a value of ", type->annotation(), " is expected where it holds ", v.kind_name());
    };
    using Kind = PickleValue::Kind;
    switch (type->kind) {
      case TypeKind::Optional: return v.is_none() ? Value() : value(v, type->element(), depth + 1);
      case TypeKind::None: return v.is_none() ? Value() : wrong();
      case TypeKind::Tensor: {
        if (v.is_none()) return Value();
        if (!v.is_tensor()) return wrong();
        Tensor t = v.as_tensor();
        if (auto found = known_.find(v.identity()); found != known_.end()) return found->second;
        if (v.requires_grad() && !t.requires_grad()) t.requires_grad_();
        return known_[v.identity()] = Value(t);
      }
      case TypeKind::Bool: return v.kind() == Kind::Bool ? Value(v.as_bool()) : wrong();
      case TypeKind::Int: return v.kind() == Kind::Int ? Value(v.as_int()) : wrong();
      case TypeKind::Float: return v.kind() == Kind::Float || v.kind() == Kind::Int ? Value(v.as_float()) : wrong();
      case TypeKind::Number:
        return v.kind() == Kind::Int ? Value(v.as_int()) : v.kind() == Kind::Float ? Value(v.as_float()) : wrong();
      case TypeKind::String: return v.is_string() ? Value(v.as_string()) : wrong();
      case TypeKind::Device:
        return v.kind() == Kind::Device ? Value(v.as_device()) : v.is_string() ? Value(Device(v.as_string())) : wrong();
      case TypeKind::List: {
        if (!v.is_sequence()) return wrong();
        std::vector<Value> items;
        for (const PickleValue& item : v.items()) items.push_back(value(item, type->element(), depth + 1));
        return jit::make_list(type->element(), std::move(items));
      }
      case TypeKind::Tuple: {
        if (!v.is_sequence() || v.items().size() != type->elements.size()) return wrong();
        std::vector<Value> items;
        for (size_t i = 0; i < type->elements.size(); ++i)
          items.push_back(value(v.items()[i], type->elements[i], depth + 1));
        return Value(std::move(items));
      }
      case TypeKind::Dict: {
        if (!v.is_dict()) return wrong();
        auto dict = make_counted<jit::DictObject>(type->element(0), type->element(1));
        for (const auto& [k, item] : v.pairs())
          dict->items.emplace_back(value(k, type->element(0), depth + 1), value(item, type->element(1), depth + 1));
        return Value::object(dict);
      }
      case TypeKind::Class: return instance(v, type);
      case TypeKind::Enum: return member(v, type);
      case TypeKind::Union: return member_of_union(v, type, depth);
      default: refuse("an attribute of type ", type->annotation(), " is not supported in files");
    }
  }

  jit::SourceReader& source_;
  std::string label_;
  std::unordered_map<const void*, Value> known_;
  int tries_ = 100000;  // members of unions that are tried in all
};

int64_t version_of(ZipReader& zip, const std::string& root) {
  const ZipEntry* entry = zip.find(root + ".data/version");
  if (!entry) entry = zip.find(root + "version");
  check<ValueError>(entry, "cannot load '", zip.label(), "': it does not say its version");
  std::string text(zip.read(*entry).text());
  char* end = nullptr;
  int64_t version = std::strtoll(text.c_str(), &end, 10);
  check<ValueError>(end != text.c_str() && (*end == 0 || *end == '\n') && version > 0, "cannot load '", zip.label(),
                    "': its version is no number");
  check<ValueError>(version <= jit::kArchiveVersion, "cannot load '", zip.label(), "': it is of version ", version,
                    ", and the newest that is known is ", jit::kArchiveVersion);
  return version;
}

/// They are read to show where an error came from: broken ones are none.
jit::SourceOrigins origins_in(ZipReader& zip, const std::string& name) {
  try {
    return read_origins(read_pickle(zip, name, "", {.script_classes = true}));
  } catch (const Error&) {
    return {};
  }
}

Value read_archive(std::shared_ptr<ZipReader> zip, std::map<std::string, std::string>* extra_files) {
  std::string root = zip->root();
  auto refuse = [&](const char* why) { fail<ValueError>("cannot load '", zip->label(), "': ", why); };
  if (!zip->find(root + "data.pkl")) refuse("it is no TorchScript archive: it has no data.pkl");
  if (!zip->find(root + "constants.pkl"))
    refuse("it is a file of torch.save, not a TorchScript archive; load it with torch.load");
  PickleOptions options{.script_classes = true};
  PickleValue constants = read_pickle(*zip, root + "constants.pkl", root + "constants/", options);
  std::vector<Value> tensors;
  if (!constants.is_sequence()) refuse("its constants are no tuple");
  for (const PickleValue& c : constants.items()) {
    if (!c.is_tensor()) refuse("it has a constant that is no tensor");
    tensors.emplace_back(c.as_tensor());
  }
  auto load = [zip, root](const std::string& file) -> jit::SourcePtr {
    const ZipEntry* entry = zip->find(root + file);
    if (!entry) return nullptr;
    auto source = std::make_shared<jit::SourceText>();
    source->text = zip->read(*entry).text();
    source->file = file;
    std::string name = root + file + kOriginsSuffix;
    if (const ZipEntry* origins = zip->find(name)) {
      zip->read(*origins);  // a damaged archive is told now
      source->origins = std::make_shared<jit::LateOrigins>([zip, name] { return origins_in(*zip, name); });
    }
    check<ValueError>(is_utf8(source->text), "cannot load '", zip->label(), "': the source in ", file, " is not UTF-8");
    return source;
  };
  jit::SourceReader source(load, std::move(tensors), version_of(*zip, root));
  PickleValue data = read_pickle(*zip, root + "data.pkl", root + "data/", options);
  if (data.kind() != PickleValue::Kind::Object) refuse("its data are no module");
  if (extra_files)
    for (auto& [name, contents] : *extra_files)
      if (const ZipEntry* entry = zip->find(root + "extra/" + name)) contents = zip->read(*entry).text();
  return Values(source, zip->label()).object(data);
}

}  // namespace

Value read_torchscript(const Bytes& bytes, const std::string& label, std::map<std::string, std::string>* extra_files) {
  return read_archive(std::make_shared<ZipReader>(bytes, label), extra_files);
}

Value load_torchscript(const std::string& path, std::map<std::string, std::string>* extra_files) {
  return read_archive(std::make_shared<ZipReader>(ZipReader::open(path)), extra_files);
}

}  // namespace umbra::io
