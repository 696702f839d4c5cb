#include "records.h"

#include <zlib.h>

#include <map>

namespace umbra::golden {

std::string read_gzip(const std::string& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  if (!file) fail<FileNotFoundError>("cannot read ", path);
  std::string out;
  std::vector<char> buffer(1 << 20);
  for (int n; (n = gzread(file, buffer.data(), static_cast<unsigned>(buffer.size()))) > 0;)
    out.append(buffer.data(), static_cast<size_t>(n));
  gzclose(file);
  return out;
}

Group Group::load(const std::string& folder, const std::string& name) {
  Group group{name, Json::parse(read_gzip(folder + "/" + name + ".json.gz")), ""};
  group.bytes = read_gzip(folder + "/" + name + ".bin.gz");
  return group;
}

namespace {

std::vector<int64_t> ints(const Json& json) { return json.get<std::vector<int64_t>>(); }

Tensor memory_of(const std::string& bytes, DType dtype) {
  int64_t count = static_cast<int64_t>(bytes.size()) / item_size(dtype);
  Tensor t = empty({count}, {.dtype = dtype});
  if (count) std::memcpy(t.raw_data(), bytes.data(), static_cast<size_t>(count * item_size(dtype)));
  return t;
}

double number(const Json& json) {
  if (!json.is_string()) return json.get<double>();
  std::string text = json.get<std::string>();
  return text == "nan" ? NAN : text == "inf" ? INFINITY : -INFINITY;
}

}  // namespace

Tensor dense_tensor(const std::string& bytes, DType dtype, const std::vector<int64_t>& sizes) {
  return memory_of(bytes, dtype).reshape(as_sym(sizes));
}

std::vector<Tensor> build_tensors(const Group& group, const Json& record, bool share) {
  std::map<std::pair<int64_t, int>, Tensor> bases;
  std::vector<Tensor> out;
  for (size_t i = 0; i < record["tensors"].size(); ++i) {
    const Json& d = record["tensors"][i];
    DType dtype = dtype_from_name(d["dtype"]);
    int64_t storage = d["storage"];
    std::pair<int64_t, int> key =
        share ? std::pair(storage, static_cast<int>(dtype)) : std::pair(-1 - static_cast<int64_t>(i), 0);
    if (!bases.count(key)) {
      const Tensor* other = nullptr;
      for (auto& [k, t] : bases)
        if (share && k.first == storage) other = &t;
      bases[key] = other ? other->view(dtype) : memory_of(group.blob(record["storages"][storage]), dtype);
    }
    Tensor base = bases[key];
    std::vector<int64_t> sizes = ints(d["sizes"]), strides = ints(d["strides"]);
    int64_t offset = d["storage_offset"];
    bool is_empty = std::find(sizes.begin(), sizes.end(), 0) != sizes.end();
    if (is_empty && offset > base.numel()) base = empty({offset}, {.dtype = dtype});
    Tensor t = base.as_strided(as_sym(sizes), as_sym(strides), SymInt(offset));
    if (d.value("conj", false)) t = t.conj();
    if (d.value("neg", false)) t = _neg_view(t);
    out.push_back(t);
  }
  return out;
}

Value to_value(const Json& json, const SchemaType& type, const std::vector<Tensor>& tensors) {
  using Base = SchemaType::Base;
  if (json.is_null()) return {};
  if (json.is_array()) {
    if (type.base == Base::Tensor) {
      std::vector<Tensor> list;
      for (const Json& item : json) list.push_back(item.is_null() ? Tensor() : tensors.at(item["tensor"]));
      return list;
    }
    SchemaType element = type;
    element.list = false;
    std::vector<Value> items;
    for (const Json& item : json) items.push_back(to_value(item, element, tensors));
    if (type.base == Base::Int || type.base == Base::SymInt) {
      std::vector<int64_t> out;
      for (const Value& v : items) out.push_back(v.to_int());
      return out;
    }
    if (type.base == Base::Bool) {
      std::vector<bool> out;
      for (const Value& v : items) out.push_back(v.to_bool());
      return out;
    }
    if (type.base == Base::Float) {
      std::vector<double> out;
      for (const Value& v : items) out.push_back(v.to_double());
      return out;
    }
    return items;
  }
  if (json.is_object()) {
    const std::string& kind = json.begin().key();
    const auto& x = json.begin().value();
    if (kind == "tensor") return tensors.at(x.get<size_t>());
    if (kind == "dtype") return dtype_from_name(x);
    if (kind == "device") return Device(x.get<std::string>());
    if (kind == "layout") return Layout::Strided;
    if (kind == "memory_format") {
      std::string name = x;
      return name == "channels_last"      ? MemoryFormat::ChannelsLast
             : name == "channels_last_3d" ? MemoryFormat::ChannelsLast3d
             : name == "preserve_format"  ? MemoryFormat::Preserve
                                          : MemoryFormat::Contiguous;
    }
    Scalar scalar = kind == "complex" ? Scalar(std::complex<double>(number(x[0]), number(x[1]))) : Scalar(number(x));
    return type.is_tensor() ? Value(wrapped_number(scalar)) : Value(scalar);
  }
  if (json.is_string()) return json.get<std::string>();
  if (type.base == Base::Layout || type.base == Base::MemoryFormat) {  // by its number in PyTorch's list
    auto number = json.get<int64_t>();
    check(number >= 0 && number <= (type.base == Base::Layout ? 2 : 3), "no constant has the number ", number);
    if (type.base == Base::Layout) return static_cast<Layout>(number);
    return static_cast<MemoryFormat>(number);
  }
  Scalar scalar = json.is_boolean() ? Scalar(json.get<bool>()) : Scalar(json.get<int64_t>());
  if (type.is_tensor()) return wrapped_number(scalar);
  if (type.list && (type.base == Base::Int || type.base == Base::SymInt))
    return std::vector<int64_t>(static_cast<size_t>(std::max(type.list_size, 1)), scalar.to_int());
  return scalar;
}

std::vector<Value> build_arguments(const Operator& op, const Json& record, const std::vector<Tensor>& tensors) {
  const auto& schema = op.schema().arguments;
  std::vector<Value> out;
  for (size_t i = 0; i < schema.size(); ++i) {
    if (i < record["args"].size()) out.push_back(to_value(record["args"][i], schema[i].type, tensors));
    else if (record["kwargs"].contains(schema[i].name))
      out.push_back(to_value(record["kwargs"][schema[i].name], schema[i].type, tensors));
    else {
      check(schema[i].default_value.has_value(), op.name(), ": the record lacks argument ", schema[i].name);
      out.push_back(*schema[i].default_value);
    }
  }
  return out;
}

std::vector<Tensor> flat_tensors(const std::vector<Value>& results) {
  std::vector<Tensor> out;
  for (const Value& v : results) v.each_tensor([&](TensorImpl* t) { out.emplace_back(IntrusivePtr<TensorImpl>(t)); });
  return out;
}

}  // namespace umbra::golden
