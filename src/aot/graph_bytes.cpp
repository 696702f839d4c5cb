#include "aot/graph_bytes.h"

#include "umbra/generated/functions.h"
#include "umbra/graph/operator_value.h"
#include "umbra/sym/parse.h"
#include "umbra/sym/print.h"

namespace umbra::aot {

namespace {

constexpr int kDeepest = 8;  // lists inside of lists
enum ArgumentForm : uint8_t { OfNode, OfValue, OfList, OfTuple, OfOperator };
enum NodeForm : uint8_t { Placeholder, OperatorCall, FunctionCall, Attribute, Output };
enum SizeForm : uint8_t { OfNumber, OfSymbols };
enum Described : uint8_t { Nothing, OneTensor, ManyValues, PlainValue };

void require(bool holds, const char* what) { check<ValueError>(holds, "a stored graph is damaged: ", what); }

constexpr int64_t kLargestConstant = int64_t{1} << 20;  // in bytes
constexpr auto kLastDType = static_cast<uint8_t>(kDTypeCount - 1);
constexpr auto kLastDevice = static_cast<uint8_t>(DeviceType::HPU);

}  // namespace

// ---- writing ----

void ByteWriter::expression(const SymNode* node) {
  auto* e = static_cast<const sym::Expression*>(node);
  if (!e->has_hint()) throw NotStorable("sizes that only the run tells");
  std::string written = sym::to_text(e);
  if (sym::parse(e->env(), written) != e) throw NotStorable("a size whose text means another");
  text(written);
}

void ByteWriter::size(SymInt size) {
  number<uint8_t>(size.is_symbolic() ? OfSymbols : OfNumber);
  if (size.is_symbolic()) expression(size.node());
  else number<int64_t>(size.value());
}

void ByteWriter::sizes(const SymShape& sizes) {
  number<uint32_t>(static_cast<uint32_t>(sizes.size()));
  for (SymInt s : sizes) size(s);
}

void ByteWriter::contents(const Tensor& tensor) {
  bool plain_tensor = tensor.storage() && tensor.storage()->has_data() && !tensor.is_fake() && tensor.is_contiguous() &&
                      !tensor.is_conj() && !tensor.is_neg() && tensor.device().type == DeviceType::CPU &&
                      !tensor.keys().has(DispatchKey::Subclass) && !tensor.keys().has(DispatchKey::Sparse);
  int64_t bytes = plain_tensor ? tensor.numel() * tensor.item_size() : 0;
  if (!plain_tensor || bytes > kLargestConstant) throw NotStorable("a constant tensor");
  spec(TensorSpec(tensor.sym_sizes(), tensor.sym_strides(), tensor.dtype(), tensor.device()));
  text({reinterpret_cast<const char*>(tensor.data<std::byte>()), static_cast<size_t>(bytes)});
}

void ByteWriter::spec(const TensorSpec& spec) {
  sizes(spec.sizes);
  sizes(spec.strides);
  number<uint8_t>(static_cast<uint8_t>(spec.dtype));
  number<uint8_t>(static_cast<uint8_t>(spec.device.type));
  number<int8_t>(spec.device.index);
}

void ByteWriter::plain(const Value& value) {
  using Tag = Value::Tag;
  number<uint8_t>(static_cast<uint8_t>(value.tag()));
  auto list = [&](const auto& items, auto write) {
    number<uint32_t>(static_cast<uint32_t>(items.size()));
    for (size_t i = 0; i < items.size(); ++i) write(items[i]);
  };
  switch (value.tag()) {
    case Tag::None: return;
    case Tag::Int: return number<int64_t>(value.to_int());
    case Tag::UInt: return number<uint64_t>(value.to_scalar().to_uint());
    case Tag::Double: return number<double>(value.to_double());
    case Tag::Bool: return number<uint8_t>(value.to_bool());
    case Tag::String: return text(value.to_string());
    case Tag::DType: return number<uint8_t>(static_cast<uint8_t>(value.to_dtype()));
    case Tag::Layout: return number<uint8_t>(static_cast<uint8_t>(value.to_layout()));
    case Tag::MemoryFormat: return number<uint8_t>(static_cast<uint8_t>(value.to_memory_format()));
    case Tag::Device:
      number<uint8_t>(static_cast<uint8_t>(value.to_device().type));
      return number<int8_t>(value.to_device().index);
    case Tag::SymInt: return size(value.to_sym_int());
    case Tag::SymBool: return expression(value.to_sym_bool().node());
    case Tag::SymFloat: return expression(value.to_sym_float().node());
    case Tag::IntList: return list(value.int_list(), [&](SymInt n) { size(n); });
    case Tag::DoubleList: return list(value.double_list(), [&](double n) { number(n); });
    case Tag::BoolList: return list(value.bool_list(), [&](bool b) { number<uint8_t>(b); });
    case Tag::List: return list(value.list(), [&](const Value& v) { plain(v); });
    default: throw NotStorable(concat("a value of type ", tag_name(value.tag())));
  }
}

void ByteWriter::argument(const fx::Argument& argument, const std::vector<uint32_t>& places) {
  using Kind = fx::Argument::Kind;
  switch (argument.kind()) {
    case Kind::Node: number<uint8_t>(OfNode); return number<uint32_t>(places[argument.node()->id()]);
    case Kind::Value:
      if (const Operator* op = fx::operator_in(argument.value())) return number<uint8_t>(OfOperator), text(op->name());
      number<uint8_t>(OfValue);
      return plain(argument.value());
    case Kind::List:
    case Kind::Tuple:
      number<uint8_t>(argument.kind() == Kind::List ? OfList : OfTuple);
      number<uint32_t>(static_cast<uint32_t>(argument.items().size()));
      for (const fx::Argument& item : argument.items()) this->argument(item, places);
      return;
    default: throw NotStorable("a dict or a slice as an argument");
  }
}

void ByteWriter::described(const Value& value) {
  if (value.is_none()) return number<uint8_t>(Nothing);
  if (value.is_tensor()) {
    const Tensor& t = value.tensor_ref();
    if (t.is_conj() || t.is_neg() || t.keys().has(DispatchKey::Subclass) || t.keys().has(DispatchKey::Sparse))
      throw NotStorable("a tensor that is not plain");
    number<uint8_t>(OneTensor);
    return spec(TensorSpec(t.sym_sizes(), t.sym_strides(), t.dtype(), t.device()));
  }
  std::vector<Value> many;
  if (value.tag() == Value::Tag::TensorList) many.assign(value.tensor_list().begin(), value.tensor_list().end());
  else if (value.tag() == Value::Tag::List) many.assign(value.list().begin(), value.list().end());
  else return number<uint8_t>(PlainValue), plain(value);
  number<uint8_t>(ManyValues);
  number<uint32_t>(static_cast<uint32_t>(many.size()));
  for (const Value& v : many) described(v);
}

void ByteWriter::graph(const fx::Graph& graph) {
  std::vector<uint32_t> places(graph.id_bound());
  number<uint32_t>(static_cast<uint32_t>(graph.size()));
  uint32_t place = 0;
  for (fx::Node* node : graph.nodes()) {
    places[node->id()] = place++;
    const Operator* op = node->target().op();
    const fx::Function* function = node->target().function();
    if (node->op() == fx::Op::Placeholder) number<uint8_t>(Placeholder);
    else if (node->op() == fx::Op::Output) number<uint8_t>(Output);
    else if (op) number<uint8_t>(OperatorCall), text(op->name());
    else if (function && function->evaluate) number<uint8_t>(FunctionCall), text(function->name);
    else if (node->op() == fx::Op::GetAttr) number<uint8_t>(Attribute), text(node->target().name());
    else throw NotStorable("a graph that calls modules or has attributes");
    if (node->meta.custom) throw NotStorable("annotations of nodes");
    text(node->name());
    number<uint32_t>(static_cast<uint32_t>(node->args().size()));
    for (const fx::Argument& a : node->args()) argument(a, places);
    number<uint32_t>(static_cast<uint32_t>(node->kwargs().size()));
    for (const auto& [key, value] : node->kwargs()) text(key), argument(value, places);
    described(node->meta.val);
  }
}

void ByteWriter::module(const fx::GraphModule& module) {
  number<uint32_t>(static_cast<uint32_t>(module.attributes().size()));
  for (const fx::Attribute& a : module.attributes()) {
    if (!a.value.is_tensor()) throw NotStorable("a graph that calls modules");
    text(a.path);
    number<uint8_t>(static_cast<uint8_t>(a.kind));
    contents(a.value.tensor_ref());
  }
  graph(module.graph());
}

// ---- reading ----

std::string_view ByteReader::take(size_t count) {
  require(count <= bytes_.size(), "it ends too early");
  std::string_view taken = bytes_.substr(0, count);
  bytes_.remove_prefix(count);
  return taken;
}

size_t ByteReader::count(size_t least) {
  size_t count = number<uint32_t>();
  require(count <= bytes_.size() / least, "a count is larger than the file");
  return count;
}

std::vector<size_t> ByteReader::indices(size_t bound) {
  std::vector<size_t> out(count(sizeof(uint32_t)));
  for (size_t& i : out) {
    i = number<uint32_t>();
    require(i < bound, "an index is too large");
  }
  return out;
}

const sym::Expression* ByteReader::expression() {
  require(env_, "symbols where there are none");
  sym::ParseOptions options;
  options.symbol = [this](std::string_view name, std::optional<bool>) -> const sym::Expression* {
    for (const sym::Symbol& s : env_->symbols())
      if (s.name == name) return s.expression;
    fail<ValueError>("a stored graph is damaged: no such symbol");
  };
  std::string_view written = text();
  const sym::Expression* e = sym::parse(*env_, written, options);
  require(sym::to_text(e) == written, "an expression is another one here");
  return e;
}

SymInt ByteReader::size() {
  auto form = number<uint8_t>();
  require(form <= OfSymbols, "no such kind of size");
  return form == OfNumber ? SymInt(number<int64_t>()) : SymInt(expression());
}

SymShape ByteReader::sizes() {
  std::vector<SymInt> out(count(1 + sizeof(uint32_t)));
  require(out.size() <= 64, "too many dimensions");
  for (SymInt& s : out) {
    s = size();
    require(s.is_symbolic() || (s.value() >= 0 && s.value() < int64_t{1} << 48), "a size or stride is no size");
  }
  return SymShape(SymIntArrayRef(out));
}

Tensor ByteReader::contents() {
  TensorSpec look = spec();
  require(!any_symbolic(SymIntArrayRef(look.sizes)) && look.device.type == DeviceType::CPU, "no constant tensor");
  std::string_view data = text();
  SymInt elements = 1;
  for (SymInt s : look.sizes) elements = elements * s;
  require(static_cast<int64_t>(data.size()) == elements.value() * item_size(look.dtype), "a tensor of another size");
  Tensor out = empty(SymIntArrayRef(look.sizes), {.dtype = look.dtype});
  require(out.storage()->has_data(), "its constants have no data in the thread's mode");
  if (!data.empty()) std::memcpy(out.data<std::byte>(), data.data(), data.size());
  return out;
}

TensorSpec ByteReader::spec() {
  SymShape own = sizes(), strides = sizes();
  require(own.size() == strides.size(), "sizes and strides differ in number");
  if (any_symbolic(SymIntArrayRef(own)) || any_symbolic(SymIntArrayRef(strides))) return read_look(own, strides);
  int64_t last = 0;  // place of the last element
  for (size_t i = 0; i < own.size(); ++i) {
    int64_t reach = 0;
    bool fits = own[i].value() == 0 || !__builtin_mul_overflow(own[i].value() - 1, strides[i].value(), &reach);
    require(fits && !__builtin_add_overflow(last, reach, &last) && last < int64_t{1} << 56, "a tensor is too large");
  }
  int64_t elements = 1;
  for (SymInt s : own)
    require(!__builtin_mul_overflow(elements, s.value(), &elements) && elements < int64_t{1} << 56,
            "a tensor is too large");
  return read_look(own, strides);
}

TensorSpec ByteReader::read_look(const SymShape& sizes, const SymShape& strides) {
  uint8_t type = number<uint8_t>(), device = number<uint8_t>();
  int8_t index = number<int8_t>();
  require(type <= kLastDType, "no such type");
  require(device <= kLastDevice, "no such device");
  return TensorSpec(sizes, strides, static_cast<DType>(type), Device(static_cast<DeviceType>(device), index));
}

uint8_t ByteReader::small(uint8_t last) {
  uint8_t value = number<uint8_t>();
  require(value <= last, "no such value");
  return value;
}

Value ByteReader::plain(int depth) {
  using Tag = Value::Tag;
  require(depth < kDeepest, "lists are too deep");
  auto tag = static_cast<Tag>(number<uint8_t>());
  switch (tag) {
    case Tag::None: return {};
    case Tag::Int: return Value(number<int64_t>());
    case Tag::UInt: return Value(Scalar(number<uint64_t>()));
    case Tag::Double: return Value(number<double>());
    case Tag::Bool: return Value(small(1) != 0);
    case Tag::String: return Value(std::string(text()));
    case Tag::DType: return Value(static_cast<DType>(small(kLastDType)));
    case Tag::Layout: return Value(static_cast<Layout>(small(kLayoutCount - 1)));
    case Tag::MemoryFormat:
      return Value(static_cast<MemoryFormat>(small(static_cast<uint8_t>(MemoryFormat::ChannelsLast3d))));
    case Tag::Device: {
      auto type = static_cast<DeviceType>(small(kLastDevice));
      return Value(Device(type, number<int8_t>()));
    }
    case Tag::SymInt: return Value(size());
    case Tag::SymBool:
    case Tag::SymFloat: {
      const sym::Expression* e = expression();
      require((e->type() == sym::Type::Bool) == (tag == Tag::SymBool), "an expression of another type");
      return tag == Tag::SymBool ? Value(SymBool(e)) : Value(SymFloat(e));
    }
    default: return list(tag, depth);
  }
}

Value ByteReader::list(Value::Tag tag, int depth) {
  using Tag = Value::Tag;
  switch (tag) {
    case Tag::IntList: {
      std::vector<SymInt> out(count(1 + sizeof(uint32_t)));
      for (SymInt& n : out) n = size();
      return Value(std::move(out));
    }
    case Tag::DoubleList: {
      std::vector<double> out(count(sizeof(double)));
      for (double& n : out) n = number<double>();
      return Value(std::move(out));
    }
    case Tag::BoolList: {
      std::vector<bool> out(count(1));
      for (size_t i = 0; i < out.size(); ++i) out[i] = small(1) != 0;
      return Value(std::move(out));
    }
    case Tag::List: {
      std::vector<Value> out(count(1));
      for (Value& v : out) v = plain(depth + 1);
      return Value(std::move(out));
    }
    default: fail<ValueError>("a stored graph is damaged: no such kind of value");
  }
}

fx::Argument ByteReader::argument(const std::vector<fx::Node*>& nodes, int depth) {
  require(depth < kDeepest, "lists are too deep");
  auto form = number<uint8_t>();
  if (form == OfValue) return fx::Argument(plain());
  if (form == OfOperator) {
    const Operator* op = find_operator(text());
    require(op, "an operator that is not there");
    return fx::Argument(fx::operator_value(*op));
  }
  if (form == OfNode) {
    uint32_t place = number<uint32_t>();
    require(place < nodes.size(), "a node refers to a later one");
    return fx::Argument(nodes[place]);
  }
  require(form == OfList || form == OfTuple, "no such kind of argument");
  fx::Arguments items;
  for (size_t n = count(1); n > 0; --n) items.push_back(argument(nodes, depth + 1));
  return form == OfList ? fx::Argument::list(std::move(items)) : fx::Argument::tuple(std::move(items));
}

Value ByteReader::described(FakeModeImpl& mode, int depth) {
  require(depth < kDeepest, "lists are too deep");
  switch (number<uint8_t>()) {
    case Nothing: return {};
    case OneTensor: return Value(mode.make(spec()));
    case PlainValue: return plain();
    case ManyValues: {
      std::vector<Value> out(count(1));
      for (Value& v : out) v = described(mode, depth + 1);
      return Value(std::move(out));
    }
    default: fail<ValueError>("a stored graph is damaged: no such kind of result");
  }
}

fx::Node* ByteReader::node(fx::Graph& graph, const std::vector<fx::Node*>& nodes) {
  auto form = number<uint8_t>();
  require(form <= Output, "no such kind of node");
  bool named = form == OperatorCall || form == FunctionCall || form == Attribute;
  std::string target(named ? text() : std::string_view());
  std::string name(text());
  const Operator* op = form == OperatorCall ? find_operator(target) : nullptr;
  const fx::Function* function = form == FunctionCall ? fx::find_function(target) : nullptr;
  require(form != OperatorCall || op, "an operator that is not there");
  require(form != FunctionCall || function, "a function that is not there");
  fx::Arguments args;
  for (size_t n = count(1); n > 0; --n) args.push_back(argument(nodes, 0));
  fx::KeywordArguments kwargs;
  for (size_t n = count(1); n > 0; --n) {
    std::string key(text());
    kwargs.emplace_back(std::move(key), argument(nodes, 0));
  }
  if (form == Placeholder)
    return graph.create_node(fx::Op::Placeholder, name, std::move(args), std::move(kwargs), name);
  if (form == OperatorCall)
    return graph.create_node(fx::Op::CallFunction, *op, std::move(args), std::move(kwargs), name);
  if (form == FunctionCall)
    return graph.create_node(fx::Op::CallFunction, *function, std::move(args), std::move(kwargs), name);
  if (form == Attribute) return graph.create_node(fx::Op::GetAttr, target, {}, {}, name);
  require(args.size() == 1 && !graph.output_node(), "more than one output");
  return graph.output(std::move(args[0]));
}

IntrusivePtr<fx::Graph> ByteReader::graph(FakeModeImpl& mode) {
  auto graph = make_counted<fx::Graph>();
  std::vector<fx::Node*> nodes;
  for (size_t n = count(8); n > 0; --n) {
    nodes.push_back(node(*graph, nodes));
    nodes.back()->meta.val = described(mode, 0);
  }
  require(graph->output_node() != nullptr && graph->last() == graph->output_node(), "the output is not the end");
  return graph;
}

IntrusivePtr<fx::GraphModule> ByteReader::module(FakeModeImpl& mode) {
  std::vector<std::tuple<std::string, fx::AttributeKind, Tensor>> attributes;
  for (size_t n = count(8); n > 0; --n) {
    std::string path(text());
    uint8_t kind = number<uint8_t>();
    require(kind <= static_cast<uint8_t>(fx::AttributeKind::Constant), "no such kind of attribute");
    attributes.emplace_back(std::move(path), static_cast<fx::AttributeKind>(kind), contents());
  }
  auto out = make_counted<fx::GraphModule>(graph(mode));
  for (auto& [path, kind, tensor] : attributes) out->set(path, Value(tensor), kind);
  for (fx::Node* node : out->graph().nodes())
    require(node->op() != fx::Op::GetAttr || out->find(node->target().name()), "an attribute that is not there");
  if (env_) out->graph().keep_alive(mode.options().shape_env);
  return out;
}

}  // namespace umbra::aot
