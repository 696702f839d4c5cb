// Pickles as TorchScript's archives hold them.
#pragma once

#include "io/pickle_opcodes.h"
#include "umbra/core/array_ref.h"

namespace umbra::io {

/// The parts that programs of pickles are put together from.
class ScriptPickleWriter {
 protected:
  template <class F> std::string program(F&& body) {
    opcode(op::kProto);
    out_ += '\2';
    body();
    opcode(op::kStop);
    return std::move(out_);
  }
  void opcode(unsigned char code) { out_ += static_cast<char>(code); }
  void bytes(uint64_t value, size_t count) { out_.append(reinterpret_cast<const char*>(&value), count); }
  void integer(int64_t v) {
    if (v == static_cast<int32_t>(v)) {
      opcode(op::kBinInt);
      bytes(static_cast<uint64_t>(v), 4);
    } else {
      opcode(op::kLong1);
      bytes(8, 1);
      bytes(static_cast<uint64_t>(v), 8);
    }
  }
  void text(std::string_view v) {
    opcode(op::kBinUnicode);
    bytes(v.size(), 4);
    out_ += v;
  }
  void global(const std::string& module, const std::string& name) {
    opcode(op::kGlobal);
    out_ += module + "\n" + name + "\n";
  }
  void boolean(bool v) { opcode(v ? op::kNewTrue : op::kNewFalse); }
  void integers(IntArrayRef values) {
    opcode(op::kMark);
    for (int64_t v : values) integer(v);
    opcode(op::kTuple);
  }

  std::string out_;
};

}  // namespace umbra::io
