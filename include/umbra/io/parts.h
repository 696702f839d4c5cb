// Archives of named parts, as libtorch's programs write them: tensors, numbers and texts, in the form of torch.save.
//
//     io::OutputArchive archive;
//     archive.write("x", x);
//     archive.write("epoch", IValue(3));
//     archive.save_to("parts.pt");
#pragma once

#include <iosfwd>

#include "umbra/core/ivalue.h"
#include "umbra/io/pickle.h"

namespace UMBRA_API umbra {
namespace io {

void write_pickle(std::ostream& out, const PickleValue& value);
/// What is left of a stream.
PickleValue read_pickle(std::istream& in);

/// Parts by their names, which are written together. Parts of parts have names with dots.
class OutputArchive {
 public:
  void write(const std::string& key, const Tensor& tensor, bool is_buffer = false);
  void write(const std::string& key, const IValue& value);
  void write(const std::string& key, const OutputArchive& nested);
  void save_to(const std::string& path) const;
  void save_to(std::ostream& out) const;

 private:
  std::vector<PickleValue::Pair> parts_;
};

class InputArchive {
 public:
  void load_from(const std::string& path);
  void load_from(std::istream& in);
  /// A KeyError where there is no part of the name.
  void read(const std::string& key, Tensor& tensor, bool is_buffer = false) const;
  void read(const std::string& key, IValue& value) const;
  /// Whether there was one.
  bool try_read(const std::string& key, Tensor& tensor, bool is_buffer = false) const;

 private:
  PickleValue value_;
};

}  // namespace io
}  // namespace umbra
