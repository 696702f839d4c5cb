// What stands behind a PickleValue that is not a plain number.
#pragma once

#include "umbra/io/pickle_value.h"

namespace umbra::io {

struct PickleValue::Node {
  std::string text;  // String, Bytes; the class of an Object; the name of a Global
  Items items;       // List, Tuple; keys and values of a Dict in turn; the state of an Object
  umbra::Tensor tensor;
  umbra::Device device;
  bool special = false;  // OrderedDict, torch.Size
  bool parameter = false, requires_grad = false;
};

}  // namespace umbra::io
